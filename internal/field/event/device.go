package event

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func (c *comparison) devices() {
	old := byBus(c.old)
	for i := range c.now.Devices {
		d := &c.now.Devices[i]
		p := old[d.BusID]
		delete(old, d.BusID)
		if p == nil {
			c.device(model.EventAppeared, model.Warning, d, "appeared", "appeared: "+words.Foreign(d.Board)+" at "+words.Escape(d.BusID))
			continue
		}
		c.conditions(p, d)
		if p.ThermalTrips.Known() && d.ThermalTrips.Known() && d.ThermalTrips.V > p.ThermalTrips.V {
			c.device(model.EventTripped, model.Critical, d, "tripped", "shut itself down for heat")
		}
	}
	for i := range c.old.Devices { // in the order of the devices, not of the map
		if p := &c.old.Devices[i]; old[p.BusID] != nil {
			c.device(model.EventRemoved, model.Critical, p, "removed", "is gone: "+words.Escape(p.BusID))
		}
	}
}

func byBus(s *model.Snapshot) map[string]*model.Device {
	m := make(map[string]*model.Device, len(s.Devices))
	for i := range s.Devices {
		m[s.Devices[i].BusID] = &s.Devices[i]
	}
	return m
}

// device adds an event of one device.
func (c *comparison) device(k model.EventKind, l model.Level, d *model.Device, short, text string) {
	name := fmt.Sprintf("device %d ", d.Index)
	c.add(k, l, []string{d.BusID}, fmt.Sprintf("%d %s", d.Index, short), name+text)
}

// conditions notes which conditions of a device began and which are over. A
// condition whose value can no longer be read ends without an event: whether it
// has ended is unknown.
func (c *comparison) conditions(p, d *model.Device) {
	was, is := c.was.About(p.Index), c.is.About(d.Index)
	has := func(list []model.Condition, k model.ConditionKind) bool {
		return slices.ContainsFunc(list, func(c model.Condition) bool { return c.Kind == k })
	}
	for i := range is {
		if k := is[i].Kind.Row(); k.Event != "" && !has(was, is[i].Kind) && !stillHot(&is[i], was) {
			text := begun(&is[i])
			if is[i].Process.PID != 0 {
				text += ", " + named(c.now, is[i].Process)
			}
			if facts := words.Facts(c.now, &is[i]); facts != "" {
				text += ": " + facts
			}
			c.device(k.Event, is[i].Level, d, k.Word, text)
		}
	}
	for i := range was {
		k := was[i].Kind.Row()
		if k.Event == "" || has(is, was[i].Kind) || d.State != model.StateOK { // of one that is in another state now, that was said above
			continue
		}
		if stillHot(&was[i], is) {
			continue
		}
		short, text := c.ended(&was[i])
		if at := slices.IndexFunc(is, func(x model.Condition) bool { return stillHot(&x, was) }); at >= 0 && throttledByHeat(&was[i]) {
			text += "; it is still hot: " + words.Facts(c.now, &is[at])
		}
		c.device(k.Event, model.Info, d, short, text)
	}
}

// named is a process as people know it: its pid and program.
func named(s *model.Snapshot, id model.ProcessID) string {
	text := "pid " + strconv.Itoa(id.PID)
	for i := range s.Processes {
		if p := &s.Processes[i]; p.ID() == id {
			text += " (" + words.Program(p) + ")"
		}
	}
	return text
}

// begun says that a device has come into a condition.
func begun(c *model.Condition) string {
	return cmp.Or(c.Kind.Row().Begun, "is "+words.What(c))
}

// stillHot reports whether a condition is a device's heat, and others are that it was,
// or now is, throttled by it: two words for one course, whose change is one event.
func stillHot(c *model.Condition, others []model.Condition) bool {
	return c.Kind == model.ConditionHot && slices.ContainsFunc(others, func(x model.Condition) bool { return throttledByHeat(&x) })
}

func throttledByHeat(c *model.Condition) bool {
	return c.Kind == model.ConditionThrottled && c.Cause == model.ByHeat
}

// ended says that a condition of a device is over, and for how long it held.
func (c *comparison) ended(x *model.Condition) (short, text string) {
	k, held := x.Kind.Row(), words.Held(c.now, x)
	if k.Ended == "" {
		short, text = "ok again", "is ok again, it was "+words.What(x)
		if held != "" {
			text += " for " + held
		}
		return short, text
	}
	text = k.EndedText
	if text == "" {
		text = "is no longer " + words.What(x)
	}
	if held != "" {
		text += ", after " + held
	}
	return k.Ended, text
}
