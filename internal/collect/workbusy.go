package collect

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// reportDelay is how long after a wait has ended the last records may still be
// on their way through tt-metal's receiver.
const reportDelay = 200 * time.Millisecond

// isSettled reports whether it is certain that no program runs on a chip now:
// the host has waited for all that it enqueued, and the chip has been heard. A
// chip that never reported anything may be one whose reports do not arrive, and
// where nothing was seen to be enqueued and a chip reports, work comes by a way
// that is not known.
func isSettled(c *claim.Work, host *model.HostWork) bool {
	if host == nil || !host.Settled() || c.At.Sub(host.LastFinish) < reportDelay {
		return false
	}
	heard, enqueued := c.Programs+c.Unprofiled > 0, host.Enqueued+host.Replayed > 0
	return heard == enqueued
}

// lastKnown is up to when the work of a process was accounted for: a program
// that ends now may have begun right after the last one that was reported.
func lastKnown(c *claim.Work) time.Time {
	if !c.LastRecord.IsZero() && c.LastRecord.Before(c.At) {
		return c.LastRecord
	}
	if c.LastRecord.IsZero() && c.Since.Before(c.At) && !c.Since.IsZero() {
		return c.Since
	}
	return c.At
}

// busy is the share of the time since the sample before in which a program ran.
// settled reports whether it is certain that nothing runs now.
func busy(c *claim.Work, before *workSample, settled bool) model.Work {
	if c.Unreadable {
		return model.NoWork(model.WorkLayout)
	}
	totals := func(w model.Work) model.Work { return w.WithTotals(uint64(max(0, c.Busy)), c.Programs, totalBound(c)) }
	from, cause := since(c, before, settled)
	if cause != "" {
		return totals(model.NoWork(cause))
	}
	d := newDifference(c, from, settled)
	if d.busy == 0 && d.programs == 0 && !settled {
		return totals(model.NoWork(model.WorkSilent))
	}
	f := d.figure()
	if f.bound == model.Exact {
		f.bound, f.cause = d.doubt(c, &f.unseen)
	}
	if f.bound == model.AtLeast && f.busy == 0 { // it says nothing
		return totals(model.NoWork(f.cause))
	}
	s := f.window.Seconds()
	w := model.Work{
		Busy: model.Value(min(1, f.busy.Seconds()/s)), Bound: f.bound, Cause: f.cause, Window: s,
		Programs: model.Value(float64(d.programs) / s), Late: model.Value(min(1, d.gap.Seconds()/s)),
	}
	if from.Programs > c.Programs || before == nil {
		pending := model.NoWork(model.WorkFirstSample)
		w.Programs, w.Late = pending.Programs, pending.Late
	}
	return totals(w)
}

// totalBound is that of what a process has reported of a chip so far.
func totalBound(c *claim.Work) model.Bound {
	if c.Unseen() != "" {
		return model.AtLeast
	}
	return model.Exact
}

// longestBefore is the longest window that a process's own mark is used for.
const longestBefore = 10 * time.Second

// since is the earlier state that a figure is made from. Without a sample of
// our own that is the process's mark, or the last record of one that is idle:
// when what is missing went missing is not known then.
func since(c *claim.Work, before *workSample, settled bool) (from *workSample, cause model.WorkCause) {
	if before != nil {
		return before, ""
	}
	x := workSample{Work: *c, settled: true}
	x.Lost, x.Unprofiled = 0, 0
	if idle := c.At.Sub(lastKnown(c)); settled && idle >= time.Second {
		x.At = c.At.Add(-idle)
		return &x, ""
	}
	if window := c.At.Sub(c.Before.Time); !c.Before.Time.IsZero() && window >= minWindow && window <= longestBefore {
		x.At, x.Busy, x.LastRecord, x.LastEnd = c.Before.Time, c.Before.Busy, c.Before.Time, c.Before.LastEnd
		return &x, ""
	}
	return nil, model.WorkFirstSample
}

// difference is what changed from one sample to the next.
//
//	last record      sample              last record    sample
//	     |─── head ────|──────── inside ──────|─── tail ───|
//
// A program's record comes when it has ended. So what was reported between the
// samples may have run in the head, and something may run unreported in the
// tail. Either is empty where it is certain that nothing ran at the sample.
type difference struct {
	busy, gap                  time.Duration
	programs                   uint64
	unseen                     unseen // since the sample
	unseenRecords              unseen // since its last record, at most
	window, head, inside, tail time.Duration
	// records is from the last record of the earlier sample to that of the later
	// one, by the chip's clock; 0: not known.
	records time.Duration
	late    time.Duration // that one of the two records came, as far as is known
	room    time.Duration // that there was for the work
	// settled says that nothing ran at the earlier sample, for certain; idle is how
	// long its last record was ago.
	settled bool
	idle    time.Duration
}

func newDifference(c *claim.Work, from *workSample, settled bool) difference {
	d := difference{
		busy: max(0, c.Busy-from.Busy), gap: max(0, c.Gap-from.Gap),
		programs: c.Programs - min(c.Programs, from.Programs),
		unseen:   unseenIn(c).minus(unseenIn(&from.Work)), unseenRecords: unseenIn(c).minus(from.atRecord),
		window: c.At.Sub(from.At), head: from.At.Sub(lastKnown(&from.Work)), tail: c.At.Sub(lastKnown(c)),
	}
	d.room = d.window + d.head
	if host, chip := d.room-d.tail, c.LastEnd-from.LastEnd; from.LastEnd > 0 && chip > 0 && near(host, chip) {
		d.records = chip
	}
	if ahead := hostAhead(c, from); d.records > 0 {
		d.late = max(lateness(&from.Work, ahead), lateness(c, ahead))
	}
	d.idle = d.head
	if d.settled = from.settled; d.settled {
		d.head = 0
	}
	d.tail = min(d.tail, d.window)
	d.inside = d.window - d.tail
	if settled {
		d.inside, d.tail = d.window, 0
	}
	return d
}

// unseen are programs of which nothing but their number is known.
type unseen struct{ lost, unprofiled uint64 }

func unseenIn(c *claim.Work) unseen { return unseen{c.Lost, c.Unprofiled} }

func (u unseen) minus(v unseen) unseen {
	return unseen{u.lost - min(u.lost, v.lost), u.unprofiled - min(u.unprofiled, v.unprofiled)}
}

// unseenAtRecord is what had gone unseen by the last record at least: what did
// so since the sample before may have come after it.
func unseenAtRecord(c *claim.Work, before *workSample) unseen {
	switch {
	case before == nil:
		return unseen{}
	case c.LastRecord.Equal(before.LastRecord):
		return before.atRecord
	}
	return unseenIn(&before.Work)
}

// near reports whether two clocks have measured the same: but for their rates,
// and for what a busy host takes to receive a record.
func near(a, b time.Duration) bool { return (a - b).Abs() <= slack(max(a, b)) }

func slack(d time.Duration) time.Duration { return d/50 + 20*time.Millisecond }

// drift is how much the clocks of a host and of a chip may part.
const drift = 61e-6

// hostAhead is by how much the host's clock is ahead of the chip's: by the record
// that came soonest after its program. 0: not known.
func hostAhead(c *claim.Work, before *workSample) time.Duration {
	if c.LastEnd == 0 {
		return 0
	}
	ahead := time.Duration(c.LastRecord.UnixNano()) - c.LastEnd
	if before == nil || before.LastEnd == 0 || before.LastEnd > c.LastEnd { // its clock began again
		return ahead
	}
	if before.ahead == 0 { // a mark of the process
		return min(ahead, time.Duration(before.LastRecord.UnixNano())-before.LastEnd)
	}
	return min(ahead, before.ahead+time.Duration(float64(c.At.Sub(before.At))*drift))
}

// lateness is how long the last record took to come.
func lateness(c *claim.Work, ahead time.Duration) time.Duration {
	return max(0, time.Duration(c.LastRecord.UnixNano())-c.LastEnd-ahead)
}

// figure is how long a program ran in a window.
type figure struct {
	busy, window time.Duration
	bound        model.Bound
	cause        model.WorkCause
	unseen       unseen // in the window
}

// fresh is the part of a window that its head and its tail may each have before
// the figure is no longer made from record to record.
const fresh = 4

func (d *difference) figure() figure {
	switch {
	case d.busy > d.room+slack(d.room):
		return figure{min(d.busy, d.window), d.window, model.Unsure, model.WorkTooMuch, d.unseen}
	case d.head == 0 && d.tail == 0:
		return figure{min(d.busy, d.window), d.window, model.Exact, "", d.unseen}
	case d.records > 0 && d.records >= minWindow && d.idle <= d.window/fresh && d.tail <= d.window/fresh:
		// From record to record all is known, whatever runs now.
		return figure{min(d.busy, d.records), d.records, model.Exact, "", d.unseenRecords}
	case d.settled && d.inside >= minWindow && d.tail <= d.window/fresh:
		// An idle time before the sample, however long, is no part of the window.
		return figure{min(d.busy, d.inside), d.inside, model.Exact, "", d.unseen}
	}
	least := min(d.inside, max(0, d.busy-d.head))
	switch {
	case d.settled: // nothing that was reported since can have run before
		return figure{least, d.window, model.AtLeast, model.WorkUnreported, d.unseen}
	case d.records == 0:
		// How late records came is not known: what they report may have run long
		// before the sample.
		return figure{least, d.window, model.Unsure, model.WorkUnreported, d.unseen}
	}
	least = max(least, d.inside-max(0, d.records-d.busy)) // it was idle for no longer than between its records
	return figure{max(0, least-d.late-slack(d.records)), d.window, model.AtLeast, model.WorkUnreported, d.unseen}
}

// doubt is why more may have run than is known of all that was reported.
func (d *difference) doubt(c *claim.Work, u *unseen) (model.Bound, model.WorkCause) {
	switch {
	case !c.Lossless && d.programs > 0:
		return model.AtLeast, model.WorkLossy
	case u.lost > 0:
		return model.AtLeast, model.WorkRecordsLost
	case (c.Queues > 1 || c.Queues == 0 && c.Programs > 0) && d.busy < d.window:
		return model.AtLeast, model.WorkQueues
	case c.SubDevices > 1 && d.busy < d.window:
		return model.AtLeast, model.WorkSubDevices
	case u.unprofiled > 0:
		return model.AtLeast, model.WorkUnprofiled
	}
	return model.Exact, ""
}
