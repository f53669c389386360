package event

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/lazy"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

func (c *comparison) devices() {
	old := byBus(c.old)
	for i := range c.now.Devices {
		d := &c.now.Devices[i]
		p := old[d.BusID]
		delete(old, d.BusID)
		if p == nil {
			c.device(Appeared, words.Warning, d, "appeared", "appeared: "+words.Foreign(d.Board)+" at "+words.Escape(d.BusID))
			continue
		}
		c.conditions(p, d)
		if p.ThermalTrips.Known() && d.ThermalTrips.Known() && d.ThermalTrips.V > p.ThermalTrips.V {
			c.device(Tripped, words.Critical, d, "tripped", "shut itself down for heat")
		}
	}
	for i := range c.old.Devices { // in the order of the devices, not of the map
		if p := &c.old.Devices[i]; old[p.BusID] != nil {
			c.device(Removed, words.Critical, p, "removed", "is gone: "+words.Escape(p.BusID))
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
func (c *comparison) device(k Kind, l words.Level, d *model.Device, short, text string) {
	name := fmt.Sprintf("device %d ", d.Index)
	c.add(k, l, []string{d.BusID}, fmt.Sprintf("%d %s", d.Index, short), name+text)
}

// kinds are the kinds of the events about conditions. Memory that fills or is
// left behind is told by other events.
var kinds = lazy.Value[map[model.ConditionKind]Kind]{New: func() map[model.ConditionKind]Kind {
	return map[model.ConditionKind]Kind{
		model.ConditionThrottled:    Throttle,
		model.ConditionHot:          Throttle,
		model.ConditionSlowLink:     Link,
		model.ConditionMemoryFailed: State,
		model.ConditionMemoryErrors: State,
		model.ConditionReadStalled:  State,
		model.ConditionResetting:    State,
		model.ConditionUnknown:      State,
		model.ConditionHung:         State,
		model.ConditionLost:         State,
		model.ConditionStuck:        State,
	}
}}

// conditions notes which conditions of a device began and which are over. A
// condition whose value can no longer be read ends without an event: whether it
// has ended is unknown.
func (c *comparison) conditions(p, d *model.Device) {
	was, is := c.was.About(p.Index), c.is.About(d.Index)
	has := func(list []model.Condition, k model.ConditionKind) bool {
		return slices.ContainsFunc(list, func(c model.Condition) bool { return c.Kind == k })
	}
	for i := range is {
		if k, ours := kinds.Get()[is[i].Kind]; ours && !has(was, is[i].Kind) {
			text := begun(&is[i])
			if is[i].Kind == model.ConditionStuck {
				text = "has a process that may be stuck, " + named(c.now, is[i].Process)
			}
			if facts := words.Facts(c.now, &is[i]); facts != "" {
				text += ": " + facts
			}
			c.device(k, is[i].Level, d, words.Kind(is[i].Kind), text)
		}
	}
	for i := range was {
		k, ours := kinds.Get()[was[i].Kind]
		if !ours || has(is, was[i].Kind) || d.State != model.StateOK { // of one that is in another state now, that was said above
			continue
		}
		short, text := ended(&was[i])
		if held := words.Held(c.now, &was[i]); held != "" {
			text += " for " + held
		}
		c.device(k, words.Info, d, short, text)
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
	switch c.Kind {
	case model.ConditionSlowLink:
		return "has a slow PCIe link"
	case model.ConditionResetting:
		return "is being reset"
	case model.ConditionMemoryFailed:
		return "has failed GDDR"
	case model.ConditionMemoryErrors:
		return "has GDDR errors"
	case model.ConditionReadStalled:
		return "does not answer reads of its telemetry table"
	}
	return "is " + words.What(c)
}

// ended says that a condition of a device is over, and as the end of the
// sentence what it was.
func ended(c *model.Condition) (short, text string) {
	switch c.Kind {
	case model.ConditionSlowLink:
		return "link ok", "has its full PCIe link again, it was slow"
	case model.ConditionHot:
		return "cool again", "is no longer hot, it was"
	case model.ConditionStuck:
		return "not stuck", "has no process any more that seems stuck, it had one"
	case model.ConditionMemoryFailed:
		return "GDDR ok", "has working GDDR again, it was failed"
	case model.ConditionMemoryErrors:
		return "GDDR ok", "has no GDDR errors any more, it had some"
	case model.ConditionReadStalled:
		return "answers", "answers reads of its telemetry table again, it did not"
	case model.ConditionThrottled:
		return "full clock", "is no longer throttled, it was " + words.What(c)
	}
	return "ok again", "is ok again, it was " + words.What(c)
}
