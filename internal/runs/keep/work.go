package keep

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
)

// The most that is kept of what processes had their chips do. A name is what a
// program chose.
const (
	maxWorks     = 64 // of a device
	maxOperation = 96 // bytes of a name
)

// work notes what the processes of a run had their chips do. Their counters are
// sums, so that the last snapshot of each has it all.
func (l *live) work(s *model.Snapshot, mine []*model.Process) {
	for _, p := range mine {
		for i := range p.Work.Chips {
			if c := &p.Work.Chips[i]; c.Device != model.NoDevice {
				l.chipWork(s, p, c)
			}
		}
		for i := range p.Devices {
			l.missing(s, p, &p.Devices[i])
		}
	}
	l.IdleSince = idleSince(mine)
}

// missing notes that a process has a device open of which it reports nothing, or
// not of all the chips that it uses.
func (l *live) missing(s *model.Snapshot, p *model.Process, u *model.DeviceUse) {
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

// chipWork takes in what one process had one chip do.
func (l *live) chipWork(s *model.Snapshot, p *model.Process, c *model.ChipWork) {
	busy, ok1 := c.Work.BusyTime.Get()
	programs, ok2 := c.Work.ProgramSum.Get()
	if !ok1 || !ok2 {
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
		if l.Seen.Equal(s.Time) { // first sample; a process that comes later did all of it since
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
	case lasting(cause): // whether or not the snapshot has a figure
		if bound := max(c.Work.Bound, model.AtLeast); bound > model.ParseBound(w.Bound) {
			w.Bound, w.Cause = bound.String(), cause
		}
	}
	w.Operations = mostOf(c.Operations)
	w.Gaps, w.GapsCause = gapsOf(c.Gaps), c.GapsCause
}

// pending reports whether a doubt is over with the next snapshot: a program has not
// been reported yet.
func pending(cause model.WorkCause) bool {
	return cause == model.WorkUnreported || cause == model.WorkSilent
}

// lasting reports whether a doubt is about what was counted. Partial has what
// others did not report; what a first sample has is known.
func lasting(cause model.WorkCause) bool {
	switch cause {
	case "", model.WorkFirstSample, model.WorkOtherProcess, model.WorkOtherChip:
		return false
	}
	return !pending(cause)
}

// mostOf are the operations that took most time in all.
func mostOf(list []model.Operation) (out []runs.Operation) {
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

// gapsOf are the gaps of a process and chip.
func gapsOf(list []model.Gap) (out []runs.Gap) {
	for _, g := range list[:min(len(list), model.MaxGaps)] {
		out = append(out, runs.Gap{Seconds: float64(g.Length) / 1e9, End: g.End, After: g.After[:min(len(g.After), maxOperation)]})
	}
	return out
}

// idleSince is since when processes hold memory and have had their chips do
// nothing; zero: that is not so, or not known of all of them.
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

// lastWork is when a process last gave its chips something to do, or they last
// completed something; idle: it is known that they have nothing to do.
func lastWork(p *model.Process) (last time.Time, idle bool) {
	if !p.Work.Watched || len(p.Work.Chips) == 0 || !p.Work.Host.Settled() {
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
