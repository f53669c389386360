package facts

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// Process is what a process is and does on its host.
func Process(s *model.Snapshot, p *model.Process) []sheet.Pair {
	state := fact("State", string(p.State))
	if p.State != model.Running {
		state.Value.Level = model.Warning
	}
	list := []sheet.Pair{state}
	fields, values := metric.ReportProcess(s, p)
	for i, f := range fields {
		x := sheet.Pair{Name: f.Title, Field: f.Name, Value: sheet.Value{Text: f.Full(values[i]), Gone: !values[i].Known()}}
		if !x.Value.Gone && f.As == metric.Date {
			x.Value = when("", time.Unix(int64(values[i].Num), 0)).Value
		}
		list = append(list, x)
	}
	if who := words.Reach(p); who != "" {
		list = append(list, fact("Started By", who))
	}
	return list
}

// Memory is what a process holds by device and, where there are several, by chip, and
// where the figures come from.
func Memory(s *model.Snapshot, p *model.Process) sheet.Part {
	t := &sheet.Table{Columns: []sheet.Column{{Name: "where", Least: 10}}}
	for _, pool := range model.Pools() {
		t.Columns = append(t.Columns, sheet.Column{Name: pool.String(), Head: words.PoolName(pool), Right: true, Least: words.FigureWidth})
	}
	out := sheet.Part{Title: "Memory", Table: t}
	row := func(name string, b model.PoolBytes, tracking model.Tracking) {
		r := sheet.Row{Cells: []sheet.Value{sheet.Text(name)}}
		for _, pool := range model.Pools() {
			r.Cells = append(r.Cells, sheet.Value{Text: words.FigureColumnOr(b[pool], tracking), Gone: !b[pool].Known()})
		}
		t.Rows = append(t.Rows, r)
	}
	for i := range p.Devices {
		u := &p.Devices[i]
		name := fmt.Sprintf("device %d", u.Device)
		if u.Device == model.NoDevice {
			name = "no device here"
		}
		row(name, u.Memory, u.Tracking)
		if len(u.Chips) > 1 {
			for c := range u.Chips {
				row("  chip "+chipName(s, u, c), u.Chips[c].Memory, u.Tracking)
			}
		}
		if how := held(u); how != "" {
			out.Notes = append(out.Notes, sheet.Note{Text: name + ": " + how})
		}
		for _, why := range words.UseReasons(p, u, s.Source) {
			out.Notes = append(out.Notes, sheet.Note{Level: model.Warning, Text: name + ": " + why})
		}
	}
	return out
}

// chipName is how a chip is called on its board, or its id.
func chipName(s *model.Snapshot, u *model.DeviceUse, c int) string {
	if d := s.Device(u.Device); d != nil {
		for i := range d.Chips {
			if d.Chips[i].ID.Known() && d.Chips[i].ID.V == u.Chips[c].ChipID && d.Chips[i].Name != "" {
				return words.Escape(d.Chips[i].Name)
			}
		}
	}
	return strconv.FormatUint(u.Chips[c].ChipID, 10)
}

// held says how a device is held and where the figures come from.
func held(u *model.DeviceUse) string {
	var parts []string
	if u.Source != "" {
		parts = append(parts, "figures from "+words.Source(u.Source))
	}
	if u.OpenFDs.Known() {
		parts = append(parts, words.Count(u.OpenFDs.V, "open descriptor"))
	}
	if u.Inherited && len(u.Doubts) == 0 {
		parts = append(parts, "inherited from the process that opened it")
	}
	return strings.Join(parts, "; ")
}

// Users are the parts of the processes that use a device, each with what it has of that.
func Users(s *model.Snapshot, d *model.Device) []sheet.Part {
	head := sheet.Part{Title: "Processes"}
	if d.Lock.Held.Known() {
		head.Pairs = append(head.Pairs, fact("Chip Locked (by UMD)", lock(d)))
	}
	var list []sheet.Part
	for i := range s.Processes {
		p := &s.Processes[i]
		for j := range p.Devices {
			if u := &p.Devices[j]; u.Device == d.Index && p.State != model.Hidden { // those are counted below
				list = append(list, sheet.Part{Title: "Process " + strconv.Itoa(p.PID), Below: true, Pairs: append([]sheet.Pair{fact("Process ID", strconv.Itoa(p.PID))}, use(s, p, u)...)})
			}
		}
	}
	for _, doubt := range d.Doubts {
		head.Pairs = append(head.Pairs, fact("Note", words.DoubtAndCure(doubt, s.Source)))
	}
	if d.HiddenFDs > 0 {
		head.Pairs = append(head.Pairs, fact("Outside this PID Namespace", strconv.Itoa(d.HiddenFDs)+" open descriptors"))
	}
	switch {
	case len(list) > 0:
		head.Pairs = append(head.Pairs, fact("Number", strconv.Itoa(len(list))))
	case d.HiddenFDs == 0:
		head.Notes = []sheet.Note{{Text: "None"}}
	}
	return append([]sheet.Part{head}, list...)
}

// lock says whether a program has started the chip, and which.
func lock(d *model.Device) string {
	if pid, ok := d.Lock.PID.Get(); ok && d.Lock.Held.V {
		return "yes, by process " + strconv.Itoa(pid) + " (as it numbers itself)"
	}
	return yesNo(d.Lock.Held.V)
}

// use is a process with what it has of a device.
func use(s *model.Snapshot, p *model.Process, u *model.DeviceUse) []sheet.Pair {
	open := fact("Open Descriptors", Reading(u.OpenFDs, strconv.Itoa))
	if p.State == model.Exited {
		open.Value.Text += ", inherited by others"
		return []sheet.Pair{fact("State", string(p.State)), open}
	}
	list := append(Process(s, p), open)
	if u.Inherited {
		list = append(list, fact("Inherited", "yes: it did not open the device itself"))
	}
	for _, pool := range model.Pools() {
		list = append(list, fact(words.PoolName(pool), words.FigureOr(u.Memory[pool], u.Tracking)))
	}
	list = append(list, fact("Memory Source", orNothing(words.Escape(string(u.Source)))))
	return append(list, notes(words.UseReasons(p, u, s.Source))...)
}

// Reading is a reading in full: the value and whether it is nominal, or why it is missing.
func Reading[T any](v model.Reading[T], f func(T) string) string {
	if x, ok := v.Get(); ok {
		if v.Nominal {
			return f(x) + " (nominal)"
		}
		return f(x)
	}
	text := words.Missing(v.Status)
	if v.Status == model.Pending {
		text = words.Missing(model.Absent)
	}
	if v.Why != "" {
		text += " (" + words.Escape(v.Why) + ")"
	}
	return text
}

// when is a moment: as text in the zone of this process, and as it is for readers with
// another.
func when(name string, t time.Time) sheet.Pair {
	return sheet.Pair{Name: name, Value: sheet.Value{Text: Clock(t.Local()), Time: &t}}
}

// Clock is a moment to the second, or to the millisecond where it is known so well.
func Clock(t time.Time) string {
	if t.Nanosecond() == 0 {
		return t.Format("2006-01-02 15:04:05")
	}
	return t.Format("2006-01-02 15:04:05.000")
}

// orNothing returns s, or what stands for it if it is empty.
func orNothing(s string) string {
	if s == "" {
		return words.Missing(model.Absent)
	}
	return s
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
