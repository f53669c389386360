package text

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/words"
)

// AppendRun tells all about one run.
func AppendRun(dst []byte, r *runs.Run, now time.Time, o Options) []byte {
	dst = fmt.Appendf(dst, "%s  %s   %s\n", r.RunName(), runwords.Command(r), runwords.End(r))
	var facts [][]string
	fact := func(name, text string) {
		if text != "" && text != words.Nothing {
			facts = append(facts, []string{"  " + name, text})
		}
	}
	fact("user", cmp.Or(runwords.Reach(r), runwords.User(r)))
	fact("job", runwords.Job(r))
	fact("host", words.Escape(r.Host))
	fact("release", words.Escape(r.Release))
	fact("began", clock(r.Start, o)+"  ("+runwords.When(r.Start, now, o.zone())+")")
	fact("took", words.Duration(r.Took()))
	if !r.End.At.IsZero() {
		fact("ended", clock(r.End.At, o))
	}
	if r.Unseen > 0 {
		fact("unobserved", words.Duration(span(r.Unseen))+": no snapshot; means and energy are of the rest")
	}
	fact("energy", runEnergy(r))
	fact("allocations", runwords.Failures(r))
	fact("processes", runProcesses(r))
	dst = appendAligned(dst, facts)
	dst = append(dst, '\n')
	dst = appendRunMemory(dst, r)
	dst = appendRunLines(dst, r)
	dst = appendRunDevices(dst, r, o)
	dst = appendRunWork(dst, r)
	dst = appendRunGaps(dst, r)
	for _, n := range r.Neighbours {
		dst = fmt.Appendf(dst, "shared device %s for %s with r%d %s (%s)\n", words.Ranges(n.Devices), words.Duration(span(n.Seconds)), n.ID,
			cmp.Or(words.Escape(n.Name), "a process that is hidden from you"), cmp.Or(words.Escape(n.User), words.Nothing))
	}
	if r.MoreNeighbours {
		dst = append(dst, "and with others\n"...)
	}
	for _, l := range r.Left {
		dst = fmt.Appendf(dst, "process %d left %s in %s: see ttmon mem --stale\n", l.PID, runwords.Left(&runs.Run{Left: []runs.Left{l}}), words.Escape(l.Region))
	}
	return dst
}

func span(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// runEnergy says what the devices took, and what that stands for.
func runEnergy(r *runs.Run) string {
	if _, known := r.Energy(); !known {
		return ""
	}
	text := runwords.Energy(r) + " of its devices"
	if s := r.Shared(); s > 0 {
		text += ", which others used, too, for " + words.Duration(span(s))
	}
	return text
}

func runProcesses(r *runs.Run) string {
	if len(r.Processes) < 2 {
		if len(r.Processes) == 1 {
			return fmt.Sprint(r.Processes[0].PID)
		}
		return ""
	}
	var list []string
	for _, p := range r.Processes[:min(len(r.Processes), 8)] {
		list = append(list, fmt.Sprint(p.PID))
	}
	text := strings.Join(list, " ")
	if more := len(r.Processes) - len(list) + r.Dropped; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// appendRunMemory draws what was held of each pool: on every device, and on every
// chip of those that have several.
func appendRunMemory(dst []byte, r *runs.Run) []byte {
	running := r.End.Kind == runs.Running
	rows := [][]string{{"Device", "Pool", "Peak", "after", "Mean"}}
	if running {
		rows[0] = append(rows[0], "Now")
	}
	add := func(name string, pools map[string]runs.Pool) {
		for _, pool := range model.Pools() {
			p, ok := pools[pool.String()]
			if !ok || p.Peak == 0 && pool != model.DRAM {
				continue
			}
			row := []string{name, runwords.PoolName(pool), words.Figure(p.PeakBytes()), words.Duration(max(p.PeakAt.Sub(r.Start), 0)), runwords.Mean(r, p)}
			if running {
				row = append(row, words.Figure(model.BoundBytes(p.Held, model.ParseBound(cmp.Or(p.HeldBound, p.PeakBound)))))
			}
			rows = append(rows, row)
			name = ""
		}
	}
	for i := range r.Devices {
		d := &r.Devices[i]
		name := strings.TrimSpace(deviceName(d.Index) + " " + words.Escape(d.Board))
		add(name, d.Pools)
		for k := range d.Chips {
			add("  "+cmp.Or(words.Escape(d.Chips[k].Name), words.Escape(d.Chips[k].ID)), d.Chips[k].Pools)
		}
	}
	if len(rows) == 1 {
		return append(dst, "memory: no source accounted for it\n\n"...)
	}
	return append(appendAligned(dst, rows), '\n')
}

// appendRunWork draws the operations that took most of the run's chips.
func appendRunWork(dst []byte, r *runs.Run) []byte {
	list := runwords.Operations(r)
	if len(list) == 0 {
		return dst
	}
	rows := [][]string{{"Operation", "Time", "Calls", "Mean"}}
	for _, o := range list {
		rows = append(rows, []string{o.Name, o.Time, o.Calls, o.Mean})
	}
	return append(appendAligned(dst, rows), '\n')
}

// appendRunGaps draws the longest times between two programs.
func appendRunGaps(dst []byte, r *runs.Run) []byte {
	list, notes := runwords.Gaps(r)
	if len(list) > 0 {
		rows := [][]string{{"Longest gap", "Device", "Ended after", "Operation before"}}
		for _, g := range list {
			rows = append(rows, []string{g.Length, g.Device, g.Ended, g.After})
		}
		dst = appendAligned(dst, rows)
	}
	for _, note := range notes {
		dst = append(append(dst, note...), '\n')
	}
	if len(list)+len(notes) > 0 {
		dst = append(dst, '\n')
	}
	return dst
}

// appendRunLines draws the lines of code that held the most at the peak, or says why
// they are not known.
func appendRunLines(dst []byte, r *runs.Run) []byte {
	list, note := runwords.Lines(r)
	if len(list) > 0 {
		rows := [][]string{{"Line of code", "Pool", "At the peak", "Allocations"}}
		for _, l := range list {
			rows = append(rows, []string{l.Line, l.Pool, l.AtPeak, l.Allocs})
		}
		dst = appendAligned(dst, rows)
	}
	if note != "" {
		dst = append(append(dst, note...), '\n')
	}
	if len(list) > 0 || note != "" {
		dst = append(dst, '\n')
	}
	return dst
}

// appendRunDevices draws power, heat, traffic and trouble of each device.
func appendRunDevices(dst []byte, r *runs.Run, o Options) []byte {
	rows := [][]string{{"Device", "Open", "Power mean", "max", "Energy", "Hottest", "AICLK mean", "Busy", "PCIe to", "from", "Trouble"}}
	for i := range r.Devices {
		d := &r.Devices[i]
		x := runwords.FormatDevice(r, d)
		rows = append(rows, []string{
			strings.TrimSpace(deviceName(d.Index) + " " + words.Escape(d.Board)), x.Open, x.Power, x.PowerMax, x.Energy, x.Hottest, x.Clock, x.Busy, x.To, x.From, x.Trouble,
		})
	}
	return append(appendAligned(dst, rows), '\n')
}
