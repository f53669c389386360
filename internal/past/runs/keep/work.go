package keep

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Limits of what is kept about work on chips. Programs choose the names of their
// operations, and how many processes they start.
const (
	maxWorks     = 64 // processes and chips for each device
	maxOperation = 96 // bytes of an operation's name
)

// addWork notes what the processes of a run had their chips do. Their counters only
// grow, so the last snapshot of each process is enough.
func (l *live) addWork(s *model.Snapshot, mine []*model.Process) {
	for _, p := range mine {
		for i := range p.Work.Chips {
			if c := &p.Work.Chips[i]; c.Device != model.NoDevice {
				l.addChipWork(s, p, c)
			}
		}
		for i := range p.Devices {
			l.noteUnreported(s, p, &p.Devices[i])
		}
	}
	l.IdleSince = idleSince(mine)
}

// noteUnreported marks the account of a device as partial if a process has it open
// but reports no work of it, or not of all the chips that it uses.
func (l *live) noteUnreported(s *model.Snapshot, p *model.Process, u *model.DeviceUse) {
	if u.OpenFDs.V == 0 {
		return
	}
	reported := 0
	for i := range p.Work.Chips {
		if p.Work.Chips[i].Device == u.Device {
			reported++
		}
	}
	switch {
	case reported == 0:
		l.device(s, u.Device).Partial = model.WorkOtherProcess
	case reported < len(u.Chips):
		l.device(s, u.Device).Partial = model.WorkOtherChip
	}
}

// addChipWork notes what one process had one chip do.
func (l *live) addChipWork(s *model.Snapshot, p *model.Process, c *model.ChipWork) {
	busy, busyKnown := c.Work.BusyTime.Get()
	programs, programsKnown := c.Work.ProgramSum.Get()
	if !busyKnown || !programsKnown {
		return
	}
	d, id := l.device(s, c.Device), strconv.FormatUint(c.ChipID, 10)
	seconds := float64(busy) / 1e9
	i := slices.IndexFunc(d.Work, func(w runs.Work) bool { return w.PID == p.PID && w.StartTicks == p.StartTicks && w.Chip == id })
	if i < 0 {
		if len(d.Work) >= maxWorks {
			d.Partial = model.WorkOtherProcess
			return
		}
		w := runs.Work{PID: p.PID, StartTicks: p.StartTicks, Chip: id, Name: c.Chip, Bound: model.Exact.String()}
		if l.Seen.Equal(s.Time) { // earlier work is not the run's; later processes start within it
			w.Base = runs.WorkBase{Busy: seconds, Programs: programs}
		}
		i = len(d.Work)
		d.Work = append(d.Work, w)
	}
	w := &d.Work[i]
	w.Busy, w.Programs = max(0, seconds-w.Base.Busy), programs-min(programs, w.Base.Programs)
	w.Longest, w.Gap = c.Longest, c.LongestGap
	w.Pending = ""
	switch cause := c.Work.Cause; {
	case pending(cause):
		w.Pending = cause
	case lasting(cause): // also if the snapshot has no bound, because it has no figure
		if bound := max(c.Work.Bound, model.AtLeast); bound > model.ParseBound(w.Bound) {
			w.Bound, w.Cause = bound.String(), cause
		}
	}
	w.Operations = longestOperations(c.Operations)
	w.Gaps, w.GapsCause = gapsOf(c.Gaps), c.GapsCause
}

// pending reports whether a later snapshot may settle a doubt: a program has not been
// reported yet.
func pending(cause model.WorkCause) bool {
	return cause == model.WorkUnreported || cause == model.WorkSilent
}

// lasting reports whether a doubt stays with the figures of this process and chip.
// Work that others do not report is noted in Partial, and a first sample only lacks
// a rate.
func lasting(cause model.WorkCause) bool {
	switch cause {
	case "", model.WorkFirstSample, model.WorkOtherProcess, model.WorkOtherChip:
		return false
	}
	return !pending(cause)
}

// longestOperations returns the operations with the most time in total.
func longestOperations(list []model.Operation) (out []runs.Operation) {
	for i := range list {
		if o := &list[i]; o.Name != "" {
			out = append(out, runs.Operation{Name: o.Name[:min(len(o.Name), maxOperation)], Calls: o.Calls, Seconds: float64(o.Time) / 1e9})
		}
	}
	slices.SortStableFunc(out, func(a, b runs.Operation) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(len(out), runs.MaxOperations)]
}

// gapsOf converts the gaps of one process and chip.
func gapsOf(list []model.Gap) (out []runs.Gap) {
	for _, g := range list[:min(len(list), model.MaxGaps)] {
		out = append(out, runs.Gap{Seconds: float64(g.Length) / 1e9, End: g.End, After: g.After[:min(len(g.After), maxOperation)]})
	}
	return out
}

// idleSince returns since when processes hold memory without using their chips.
// Zero: one of them works, or may.
func idleSince(mine []*model.Process) (at time.Time) {
	held := false
	for _, p := range mine {
		if len(p.Devices) == 0 {
			continue
		}
		last, idle := lastWork(p)
		if !idle {
			return time.Time{}
		}
		if last.After(at) {
			at = last
		}
		held = held || holdsDRAM(p)
	}
	if !held {
		return time.Time{}
	}
	return at
}

// lastWork returns when a process last enqueued something or its chips last completed
// something. idle: nothing is pending, for certain, and nothing is compiled that is to run.
func lastWork(p *model.Process) (last time.Time, idle bool) {
	if p.Condition == model.Compiling || !p.Work.Watched || len(p.Work.Chips) == 0 || !p.Work.Host.Settled() {
		return last, false
	}
	last = p.Work.Host.LastEnqueue
	for i := range p.Work.Chips {
		c := &p.Work.Chips[i]
		for _, t := range []time.Time{c.LastRecord, c.Since} {
			if t.After(last) {
				last = t
			}
		}
	}
	return last, true
}

func holdsDRAM(p *model.Process) bool {
	return slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool {
		n, _, known := u.Memory[model.DRAM].Best()
		return known && n > 0
	})
}
