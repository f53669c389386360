package words

import (
	"cmp"
	"fmt"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/model"
)

// StateWidth is the most cells that the word for a device's state takes.
const StateWidth = len("throttled")

// Kind is the word for a kind of condition: "slow link".
func Kind(k model.ConditionKind) string { return Escape(k.Row().Word) }

// StateMark is the sign for a state where a device has a single cell.
func StateMark(k model.ConditionKind) string { return k.Row().Mark }

// What says a condition with its cause, as far as that is known:
// "throttled by heat".
func What(c *model.Condition) string {
	switch c.Cause {
	case model.ByHeat, model.ByPower, model.ByCurrent, model.ByVoltage, model.BySoftware, model.ByFirmware:
		return Kind(c.Kind) + " by " + string(c.Cause)
	}
	return Kind(c.Kind)
}

// Held says for how long a condition has held: "12 min", "≥3 h" where it held
// already when ttmon first looked; empty where that is not known.
func Held(s *model.Snapshot, c *model.Condition) string {
	if c.Since.IsZero() {
		return ""
	}
	mark := ""
	if c.Older {
		mark = Mark(model.AtLeast)
	}
	return mark + Span(s.Time.Sub(c.Since))
}

// Facts says by what a condition was found: "80 °C (limit 75), 746 of 1000
// MHz"; for one that the driver states, why.
func Facts(s *model.Snapshot, c *model.Condition) string {
	var parts []string
	d := s.Device(c.Device)
	switch {
	case c.Kind == model.ConditionUnbound:
		parts = append(parts, unboundText(s))
	case d == nil:
	case c.Kind == model.ConditionLinkDown, c.Kind == model.ConditionWeakLink:
		return linkFacts(s, c)
	case c.Kind == model.ConditionMemoryFailed, c.Kind == model.ConditionMemoryErrors:
		return moduleFacts(d, c.Kind)
	case c.Kind == model.ConditionReadStalled:
		return TelemetryCause(model.ReadStalled)
	case len(c.Facts) == 0:
		if text := cause(d, ""); text != "" {
			parts = append(parts, text)
		}
	}
	for i := range c.Facts {
		if text := fact(c, i); text != "" {
			parts = append(parts, text)
		}
	}
	return strings.Join(parts, ", ")
}

// ConditionLine says a condition, for how long it has held and by what it was
// found: "throttled by heat for 12 min: 80 °C (limit 75), 746 of 1000 MHz".
func ConditionLine(s *model.Snapshot, c *model.Condition) string {
	text := What(c)
	if held := Held(s, c); held != "" {
		text += " for " + held
	}
	if facts := Facts(s, c); facts != "" {
		text += ": " + facts
	}
	return text
}

// fact says one fact. A link is two of them, and one text.
func fact(c *model.Condition, i int) string {
	f := &c.Facts[i]
	limited := func(value, limit string) string {
		if f.Limit == 0 {
			return value
		}
		return value + " (limit " + limit + ")"
	}
	switch f.Kind {
	case model.FactTemperature:
		return limited(Temperature(f.Value), Whole(f.Limit))
	case model.FactPower:
		return limited(Watts(f.Value), Whole(f.Limit))
	case model.FactCurrent:
		return limited(Whole(f.Value)+" A", Whole(f.Limit))
	case model.FactClock:
		return Whole(f.Value) + " of " + MHz(f.Limit)
	case model.FactLinkGen:
		if i+1 < len(c.Facts) && c.Facts[i+1].Kind == model.FactLinkWidth {
			w := &c.Facts[i+1]
			return link(f.Value, w.Value) + " instead of " + link(f.Limit, w.Limit)
		}
	case model.FactTrips:
		return "shut down for heat " + plural(int(f.Value), "time", "times") + " since power-on"
	case model.FactFill:
		return "DRAM " + Percent(f.Value) + " full"
	case model.FactBytes:
		return Bytes(uint64(f.Value))
	case model.FactSilence:
		text := "nothing completed for " + Span(spanOf(f.Value))
		if f.Limit > 0 {
			text += " (its longest program took " + ProgramTime(spanOf(f.Limit)) + ")"
		}
		return text
	case model.FactWorkPower:
		return Whole(f.Value) + " W (" + Whole(f.Limit) + " W at work)"
	case model.FactResting:
		if f.Value == 0 {
			return "power tells nothing"
		}
	case model.FactWaited:
		return "the host has waited in " + string(c.Cause) + " for " + Span(spanOf(f.Value))
	}
	return ""
}

func spanOf(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// link says a link of numbers, of which 0 is not known.
func link(gen, width float64) string {
	is := func(v float64) model.Reading[int] {
		if v == 0 {
			return model.Reading[int]{}
		}
		return model.Value(int(v))
	}
	return Link(is(gen), is(width))
}

func unboundText(s *model.Snapshot) string {
	n := len(s.Host.Unbound)
	text := Escape(strings.Join(s.Host.Unbound, ", ")) + ": "
	if !s.Host.DriverLoaded {
		return text + plural(n, "board", "boards") + ", and the driver is not loaded"
	}
	return text + plural(n, "board that the driver has not bound", "boards that the driver has not bound")
}

// Affected names the processes that a condition affects: "serve.py (root,
// slurm 4711)"; Nothing where there is none that can be seen.
func Affected(s *model.Snapshot, c *model.Condition) string {
	list := assess.Affected(s, c)
	if len(list) == 0 {
		return Nothing
	}
	p := list[0]
	text := Program(p) + " (" + Foreign(p.User)
	if job := Job(p); job != Nothing {
		text += ", " + job
	}
	text += ")"
	if n := len(list) - 1; n > 0 {
		text += " and " + plural(n, "other", "others")
	}
	return text
}

// Program is the name of what a process runs: the script, where its program
// is an interpreter.
func Program(p *model.Process) string {
	return cmp.Or(ProgramOf(p.Cmdline.V, p.Name.V), "pid "+strconv.Itoa(p.PID))
}

// ProgramOf is Program by the command line or, without one, the name of a process; empty:
// neither is known.
func ProgramOf(command, process string) string {
	args := strings.Fields(command)
	if len(args) == 0 {
		return Escape(process)
	}
	name := path.Base(args[0])
	if strings.HasPrefix(name, "python") && len(args) > 1 && !strings.HasPrefix(args[1], "-") {
		name = path.Base(args[1])
	}
	return Escape(name)
}

// Remedy says what to do about a condition of some devices.
func Remedy(s *model.Snapshot, c *model.Condition, devices []int) string {
	switch c.Remedy {
	case model.RemedyReset:
		return Reset(s, devices)
	case model.RemedyResetAgain:
		return "wait; if it lasts: " + Reset(s, devices)
	case model.RemedyPower:
		return "check power and seating, reboot; see dmesg"
	case model.RemedyLoadDriver:
		return "modprobe tenstorrent"
	case model.RemedyKernelLog:
		return "dmesg | grep tenstorrent"
	case model.RemedyCool:
		if trays := traysOf(s, devices); trays != "" {
			return "check the fans of " + trays
		}
		return "check fans and airflow"
	case model.RemedyPowerBudget:
		return "check the power supply and the load"
	case model.RemedyReseat:
		return "reseat the board, check the slot"
	case model.RemedyLink:
		if broker(s) != "" {
			return "check the cable; ttmon topo --links"
		}
		return "reset both ends, check the cable; ttmon topo --links"
	case model.RemedyInnerLink:
		if broker(s) != "" {
			return "ttmon topo --links"
		}
		return "reset both ends; if it lasts, replace the board; ttmon topo --links"
	case model.RemedyClockCap:
		return "software has limited the clock"
	case model.RemedyBoard:
		return Reset(s, devices) + "; if it lasts, replace the board"
	case model.RemedyFree:
		return "ttmon mem"
	case model.RemedyStale:
		return "ttmon mem --stale"
	case model.RemedyOperations:
		return "ttmon why " + strconv.Itoa(c.Process.PID)
	}
	return ""
}

// traysOf names the trays of devices: "tray 2", "trays 1-3".
func traysOf(s *model.Snapshot, devices []int) string {
	var trays []int
	for _, index := range devices {
		if d := s.Device(index); d != nil && d.Tray > 0 {
			trays = appendNew(trays, d.Tray)
		}
	}
	switch len(trays) {
	case 0:
		return ""
	case 1:
		return "tray " + strconv.Itoa(trays[0])
	}
	return "trays " + Ranges(trays)
}

// State is the word for a device's state. One that is ok only as far as can be
// told has the mark of figures that are unsure.
func State(a *assess.Assessment, d *model.Device) string {
	k := a.Device(d.Index).Kind
	if k == model.ConditionOK && d.StateReason.Cause != "" {
		return "~ok"
	}
	return Kind(k)
}

// Throttling says whether a device runs below its clock while it is used, and
// by what.
func Throttling(a *assess.Assessment, d *model.Device) string {
	c, ok := a.Find(d.Index, model.ConditionThrottled)
	switch {
	case !d.AICLK.Known() || !d.AICLKMax.Known():
		return Nothing + " (the clock or its maximum is not known)"
	case !ok:
		return "no"
	}
	by, clock := "by "+string(c.Cause), Whole(d.AICLK.V)+" of "+MHz(d.AICLKMax.V)
	if c.Concluded {
		return fmt.Sprintf("~%s (%s; inferred; the driver gives no reason)", by, clock)
	}
	return fmt.Sprintf("%s (%s)", by, clock)
}
