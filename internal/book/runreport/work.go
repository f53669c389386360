package runreport

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// addWork adds to the account of a process what it had its chips do.
func (b *Builder) addWork(a *account, e *entry, ended time.Time) {
	if !b.works {
		return
	}
	said := map[uint64]bool{}
	add := func(id uint64, w runs.Work) {
		said[id] = true
		device, use := a.host.DeviceOf(id), b.use(e, id, ended)
		w.PID, w.StartTicks, w.Chip = e.ledger.PID, e.ledger.StartTicks, strconv.FormatUint(id, 10)
		if _, c := a.host.Chip(id); c != nil {
			w.Name = c.Name
		}
		w.Opened, w.Closed = use.from, use.to
		a.works[device] = append(a.works[device], w)
		a.open[device] = a.open[device].join(use)
	}
	if e.work != nil {
		for i := range e.work.Chips {
			c := &e.work.Chips[i]
			if id, ok := e.ledger.ChipNumbered(c.Logical); ok && (c.Programs > 0 || c.State != ledgerfile.WorkOff) {
				add(id, chipWork(e.work, i))
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(a.pools), blocks.LedgerPlace.Compare) {
		if at.Chip != 0 && at.Chip != blocks.UnknownChip && !said[at.Chip] {
			add(at.Chip, runs.Work{Cause: silentCause(release(e.ledger.Library))})
		}
	}
}

// silentCause returns why a chip reports nothing: releases before 0.71 have no
// real-time profiler.
func silentCause(release string) model.WorkCause {
	_, version, _ := strings.Cut(release, " ")
	parts := strings.Split(version, ".")
	if len(parts) > 1 && parts[0] == "0" {
		if minor, err := strconv.Atoi(parts[1]); err == nil && minor < 71 {
			return model.WorkNoProfiler
		}
	}
	return model.WorkProfilerOff
}

// chipWork is what a process had one chip do, and why its gaps are in doubt: a program
// that is not reported may have run in one.
func chipWork(of *ledgerfile.Work, i int) runs.Work {
	c := claim.WorkOf(of, i)
	if c.Unreadable {
		return runs.Work{Cause: model.WorkLayout}
	}
	unseen := c.Unseen()
	cause := cmp.Or(unseen, unreported(of))
	if cause != "" && c.Programs == 0 { // it says nothing
		return runs.Work{Cause: cause}
	}
	bound := model.Exact
	if cause != "" {
		bound = model.AtLeast
	}
	late := c.Gap.Seconds()
	w := runs.Work{
		Busy: c.Busy.Seconds(), Programs: c.Programs, Bound: bound.String(), Cause: cause, Late: &late,
		Longest: c.Longest.Seconds(), LongestName: c.LongestName, Gap: c.LongestGap.Seconds(),
	}
	for _, o := range c.Ops {
		w.Operations = append(w.Operations, runs.Operation{Name: o.Name, Calls: o.Calls, Seconds: o.Time.Seconds(), Longest: o.Longest.Seconds()})
	}
	slices.SortStableFunc(w.Operations, func(a, b runs.Operation) int { return cmp.Compare(b.Seconds, a.Seconds) })
	for _, g := range c.Gaps {
		w.Gaps = append(w.Gaps, runs.Gap{Seconds: g.Length.Seconds(), End: g.End, After: g.After})
	}
	switch {
	case !c.GapsKept:
		w.GapsCause = model.GapsNotKept
	case len(w.Gaps) > 0:
		w.GapsCause = model.GapCause(unseen)
	}
	return w
}

// unreported is why programs of a process may not have been reported yet: of all chips,
// since which of them a program is for is not known.
func unreported(of *ledgerfile.Work) model.WorkCause {
	host, heard := &of.Host, uint64(0)
	for i := range of.Chips {
		heard += of.Chips[i].Programs + of.Chips[i].Unprofiled
	}
	if len(host.Waiting) > 0 || host.LastFinish.Before(host.LastEnqueue) || heard < host.Enqueued+host.Replayed {
		return model.WorkUnreported
	}
	return ""
}

// property is a figure of a run in a JUnit file.
type property struct{ name, value string }

// workProperties are what ran on each chip, for CI systems that show them.
func workProperties(r *runs.Run) (list []property) {
	for i := range r.Devices {
		for _, w := range r.Devices[i].WorkOfChips() {
			add := func(name, value string) { list = append(list, property{"chip" + w.Chip + "." + name, value}) }
			if w.Cause != "" {
				add("busy_cause", string(w.Cause))
			}
			if w.Known {
				addProperties(&w, r.Start, add)
			}
		}
	}
	return list
}

// addProperties adds what ran on a chip.
func addProperties(w *runs.ChipWork, start time.Time, add func(name, value string)) {
	seconds := func(s float64) string { return strconv.FormatFloat(s, 'f', 6, 64) }
	add("busy_ratio", strconv.FormatFloat(w.Ratio, 'f', 4, 64))
	add("busy_bound", w.Bound.String())
	add("busy_s", seconds(w.Seconds))
	add("programs", strconv.FormatUint(w.Programs, 10))
	add("host_late_s", seconds(w.Late))
	add("longest_gap_s", seconds(w.Gap))
	for n, g := range w.Gaps[:min(len(w.Gaps), topGaps)] {
		add(fmt.Sprintf("gap%d_s", n+1), seconds(g.Seconds))
		add(fmt.Sprintf("gap%d_until_s", n+1), seconds(g.End.Sub(start).Seconds()))
		if g.After != "" {
			add(fmt.Sprintf("gap%d_after", n+1), g.After)
		}
	}
	if w.GapsCause != "" {
		add("gaps_cause", string(w.GapsCause))
	}
	for n, o := range w.Operations[:min(len(w.Operations), topOperations)] {
		add(fmt.Sprintf("operation%d", n+1), o.Name)
		add(fmt.Sprintf("operation%d_s", n+1), seconds(o.Seconds))
		add(fmt.Sprintf("operation%d_calls", n+1), strconv.FormatUint(o.Calls, 10))
	}
}

// topGaps is how many gaps of a chip are properties.
const topGaps = 3

// topOperations limits the operations of a chip that are properties.
const topOperations = 5
