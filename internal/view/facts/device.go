// Package facts makes the sheets of a device, of a process and of a run: all that is known
// of it, one fact a line, and the full reason where something is not. smi -q and ttmon runs
// print them; top and the page show them.
package facts

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// Device is what is known of a device.
func Device(s *model.Snapshot, d *model.Device) *sheet.Sheet {
	out := &sheet.Sheet{Title: fmt.Sprintf("Device %d  %s  %s", d.Index, words.Foreign(d.Board), words.Escape(d.BusID)), Parts: []sheet.Part{}}
	x := device{s, assess.Of(s), d}
	for _, section := range metric.Sections() {
		p := sheet.Part{Title: string(section), Pairs: append(x.before(section), x.fields(section, d)...)}
		if len(p.Pairs) == 0 {
			continue
		}
		p.Pairs = append(p.Pairs, x.after(section)...)
		out.Parts = append(out.Parts, p)
		if section == metric.Memory {
			out.Parts = append(out.Parts, x.chips()...)
		}
	}
	return out
}

// device is one that is being described.
type device struct {
	s *model.Snapshot
	a *assess.Assessment
	*model.Device
}

// fields are those of a section that the table of fields has; of is the device, or a chip
// of it as if it were one.
func (x *device) fields(section metric.Section, of *model.Device) (list []sheet.Pair) {
	for _, v := range metric.Show(x.s, x.a).Report(section, of) {
		p := sheet.Pair{Name: v.Field.Title, Field: v.Field.Name, Value: sheet.Value{Text: v.Full(), Gone: !v.Known(), Level: v.Level}}
		if limit, ok := v.LimitInUnit(); ok {
			p.Limit = &limit
		}
		list = append(list, p)
	}
	return list
}

func fact(name, text string) sheet.Pair { return sheet.Pair{Name: name, Value: sheet.Text(text)} }

// before is what stands in a section before its fields: how the device is, and what to
// do about it.
func (x *device) before(section metric.Section) (list []sheet.Pair) {
	if section != metric.Health {
		return nil
	}
	state := fact("State", words.State(x.a, x.Device))
	state.Value.Level = x.a.Device(x.Index).Level
	list = append(list, state)
	for _, c := range x.a.About(x.Index) {
		p := fact("Condition", words.ConditionLine(x.s, &c))
		p.Value.Level = c.Level
		list = append(list, p)
		if remedy := words.Remedy(x.s, &c, []int{x.Index}); remedy != "" {
			list = append(list, fact("To Do", remedy))
		}
	}
	if reason := words.StateReason(x.Device); reason != "" {
		list = append(list, fact("Reason", reason))
	}
	if !x.ReadAt.IsZero() {
		list = append(list, when("Last Read", x.ReadAt))
	}
	return list
}

// after is what stands in a section after its fields.
func (x *device) after(section metric.Section) (list []sheet.Pair) {
	t := &x.Telemetry
	switch section {
	case metric.Clocks:
		return []sheet.Pair{fact("Throttled", words.Throttling(x.a, x.Device))}
	case metric.PCIe:
		if assess.IdleLink(x.Device) {
			return []sheet.Pair{fact("Note", "an idle link drops to Gen1 with this firmware")}
		}
	case metric.Telemetry:
		if t.Way == model.ByExporter {
			list = append(list, fact("Source", string(t.Way)))
		}
		if !t.ReadAt.IsZero() {
			list = append(list, when("Last Read", t.ReadAt))
		}
	case metric.GDDR:
		for i := range t.Modules {
			list = append(list, fact("Module "+strconv.Itoa(t.Modules[i].Index), module(&t.Modules[i])))
		}
	case metric.Ethernet:
		for i := range t.Ports {
			if p := &t.Ports[i]; p.Expected() || p.Up.V {
				list = append(list, fact("Channel "+strconv.Itoa(p.Channel), words.LinkState(p)+words.LinkCounts(p)))
			}
		}
	case metric.Memory:
		return x.memory(&x.Memory)
	}
	return list
}

func module(m *model.MemoryModule) string {
	celsius := func(v float64) string { return metric.Celsius.Format(v) }
	text := "trained"
	switch {
	case !m.Trained.Known():
		text = words.Missing(m.Trained.Status)
	case m.Failed.V:
		text = "failed"
	case !m.Trained.V:
		text = "not trained"
	}
	if m.Top.Known() && m.Bottom.Known() {
		text += ", top " + celsius(m.Top.V) + ", bottom " + celsius(m.Bottom.V)
	}
	if m.CorrectedReads.Known() {
		text += fmt.Sprintf(", corrected %s%d", words.Mark(m.CorrectedBound), m.CorrectedReads.V+m.CorrectedWrites.V)
	}
	if m.UncorrectedReads.V || m.UncorrectedWrite.V {
		text += ", uncorrected errors"
	}
	return text
}

// memory is what no field has: pools of which more is known than of most, what CB counts,
// and what the figures leave out.
func (x *device) memory(m *model.Memory) (list []sheet.Pair) {
	for _, pool := range model.Pools() {
		p, both := &m.Pools[pool], pool == model.DRAM || pool == model.L1
		if p.Occupied.Known() && !both {
			list = append(list, fact(words.PoolName(pool)+" Occupied", words.Figure(p.Occupied)))
		}
		for _, f := range []struct {
			name  string
			v     model.Reading[uint64]
			field bool // it is one
		}{
			{"Free", p.Free, pool == model.DRAM},
			{"Largest Free Block", p.LargestFree, both},
			{"Largest Free on a Core, Least", p.CoreLeast, false},
			{"Largest Free on a Core, Most", p.CoreMost, false},
		} {
			if f.v.Known() && !f.field {
				list = append(list, fact(words.PoolName(pool)+" "+f.name, words.Bytes(f.v.V)))
			}
		}
	}
	if m.CB != "" && m.Pools[model.CB].Used.Known() {
		list = append(list, fact("CB Counts", words.CBMeaning(m.CB)))
	}
	if text := words.InferredL1(m.Inferred); text != "" {
		list = append(list, fact("CB and KERNEL", text))
	}
	return append(list, notes(words.Reasons(m.Tracking, m.Doubts, x.s.Source))...)
}

// notes say what figures leave out, a line for each thing.
func notes(list []string) (out []sheet.Pair) {
	for _, text := range list {
		out = append(out, fact("Note", text))
	}
	return out
}

// chips are the parts of a device's chips, and of what dead processes left on it.
func (x *device) chips() (list []sheet.Part) {
	for i := range x.Chips {
		c := &x.Chips[i]
		name := strconv.Itoa(i)
		if c.Name != "" {
			name = words.Escape(c.Name)
		}
		list = append(list, x.chip("Chip "+name, c, len(x.Chips) > 1))
	}
	return append(list, leftBehind(x.s, x.Index)...)
}

// chip is one chip; with figures, where they are not the device's.
func (x *device) chip(title string, c *model.Chip, figures bool) sheet.Part {
	out := sheet.Part{Title: title, Below: true, Pairs: []sheet.Pair{fact("Id", Reading(c.ID, func(v uint64) string { return strconv.FormatUint(v, 10) })), fact("Remote", yesNo(c.Remote))}}
	if c.Remote {
		out.Pairs = append(out.Pairs, sensors(c)...)
	}
	out.Pairs = append(out.Pairs, fact("Region", orNothing(words.Escape(c.Region))))
	if figures {
		alone := &model.Device{State: model.StateOK, Memory: c.Memory, Chips: []model.Chip{*c}}
		out.Pairs = append(append(out.Pairs, x.fields(metric.Memory, alone)...), x.memory(&c.Memory)...)
	}
	return out
}

// sensors are those of a chip behind Ethernet, with who has read them.
func sensors(c *model.Chip) []sheet.Pair {
	temperature, power := c.Temperature, c.Power
	if c.SensorsFrom == "" && temperature.Why == "" {
		temperature, power = model.Missing[float64](model.Absent, words.RemoteUnread), model.Missing[float64](model.Absent, words.RemoteUnread)
	}
	from := func(f metric.Form) func(float64) string {
		return func(v float64) string { return f.Format(v) + readBy(c) }
	}
	return []sheet.Pair{fact("Temperature", Reading(temperature, from(metric.Celsius))), fact("Power", Reading(power, from(metric.Watts)))}
}

func readBy(c *model.Chip) string {
	if c.SensorsFrom == "" {
		return ""
	}
	return " (" + words.Escape(string(c.SensorsFrom)) + ")"
}

// Sensors are those of a chip behind Ethernet in a few words; empty: it is not read.
func Sensors(c *model.Chip) string {
	var parts []string
	if v, ok := c.Temperature.Get(); ok {
		parts = append(parts, metric.Celsius.Format(v))
	}
	if v, ok := c.Power.Get(); ok {
		parts = append(parts, metric.Watts.Format(v))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + readBy(c)
}

// leftBehind is what dead processes left on a device; model.NoDevice: on chips behind
// none of this host's.
func leftBehind(s *model.Snapshot, device int) (list []sheet.Part) {
	for i := range s.StaleSlots {
		g := &s.StaleSlots[i]
		if g.Device != device {
			continue
		}
		p := sheet.Part{Title: "Left by a Dead Process", Below: true, Pairs: []sheet.Pair{
			fact("Process ID", strconv.Itoa(g.PID)+" (as it saw itself)"), fact("Name", orNothing(words.Escape(g.Name))), fact("Region", words.Escape(g.Region)),
		}}
		for _, pool := range model.Pools() {
			if g.Bytes[pool].Positive() {
				p.Pairs = append(p.Pairs, fact(words.PoolName(pool), words.Figure(g.Bytes[pool])))
			}
		}
		if !g.Updated.IsZero() {
			p.Pairs = append(p.Pairs, when("Last Written", g.Updated))
		}
		list = append(list, sheet.Part{Title: p.Title, Below: true, Pairs: append(p.Pairs, fact("Region Still in Use", yesNo(g.Mapped)))})
	}
	return list
}

// Unmatched are the parts of accounted chips that belong to no device of this host, and
// of what dead processes left on them.
func Unmatched(s *model.Snapshot) (list []sheet.Part) {
	x := device{s, assess.Of(s), &model.Device{}}
	for i := range s.Unmatched {
		c := &s.Unmatched[i]
		p := x.chip("Chip behind none of this Host's Devices (a mock or simulator run)", c, true)
		if len(c.Candidates) > 0 {
			p = x.chip("Chip behind one of Several Devices", c, true)
			p.Pairs = append([]sheet.Pair{fact("Devices", words.Ranges(c.Candidates))}, p.Pairs...)
		}
		list = append(list, p)
	}
	return append(list, leftBehind(s, model.NoDevice)...)
}
