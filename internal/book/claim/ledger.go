package claim

import "github.com/ttmon/ttmon/lib/ledgerfile"

// WorkOf is what a ledger says of one of its chips.
func WorkOf(of *ledgerfile.Work, i int) Work {
	c := &of.Chips[i]
	w := Work{
		Reports: c.State != ledgerfile.WorkOff, Queues: of.Host.Queues, SubDevices: of.Host.SubDevices,
		Lossless: c.Loss == ledgerfile.WorkLossless, Unreadable: c.Loss == ledgerfile.WorkUnreadable,
		Busy: c.Busy, Gap: c.Gap, Programs: c.Programs, Unprofiled: c.Unprofiled,
		Longest: c.Longest, LongestGap: c.LongestGap, LongestName: c.LongestName, LastName: c.LastName, Stalled: c.Stalled,
		Since: c.Since, LastRecord: c.LastRecord,
		LastEnd: c.LastEnd,
		Before:  Moment{Time: c.Mark[1].Time, Busy: c.Mark[1].Busy, LastEnd: c.Mark[1].LastEnd},
		Ops:     make([]Op, len(c.Ops)), Gaps: make([]Gap, len(c.LongestGaps)), GapsKept: c.GapsKept,
	}
	for i, g := range c.LongestGaps {
		w.Gaps[i] = Gap(g)
	}
	for i, o := range c.Ops {
		w.Ops[i] = Op{Name: o.Name, Calls: o.Calls, Time: o.Time, Longest: o.Longest}
	}
	return w
}
