package uprobe

import (
	"bytes"
	"regexp"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// failures are requests that failed and were not collected yet.
type failures struct {
	list    []*failure.Record
	total   uint64 // ever
	dropped uint64 // for want of room
	// credit is how much time copies of states may take, as of at: a program that
	// fails again and again must not keep others waiting.
	credit time.Duration
	at     time.Time
}

// What may wait to be taken, and what copies may cost.
const (
	maxWaiting        = 128 // of all processes
	maxWaitingOfUser  = 32
	maxWaitingOfOne   = 8
	copyCredit        = 50 * time.Millisecond
	copyShare         = 50 // a fiftieth of the time
	maxFailureBlocks  = 1 << 17
	maxFailureSibling = 8
)

// mayCopy reports whether there is time for a copy.
func (f *failures) mayCopy(now time.Time) bool {
	if f.at.IsZero() {
		f.credit = copyCredit
	} else {
		f.credit = min(f.credit+now.Sub(f.at)/copyShare, copyCredit)
	}
	f.at = now
	return f.credit > 0
}

// noRoom enters a request that found no room.
func (b *accounts) noRoom(p *process, of *event, at int64) {
	e := about[noRoomEvent](of)
	p.recall(of, e.Stack)
	l := p.lists[e.List]
	if l == nil || e.Page == 0 {
		return
	}
	banks := l.Banks
	if e.Shards > 0 { // those of L1_SMALL always are; it has no banks where it has no bytes
		banks = uint64(e.Shards)
	}
	if banks == 0 {
		return
	}
	pages := e.Padded/e.Page + min(e.Padded%e.Page, 1)
	need := l.Round((pages/banks + min(pages%banks, 1)) * e.Page)
	if b.onlyAsks(p, l, of, need) {
		return
	}
	b.failed(p, l, of, at, failure.NoRoom, reason(l, need), func(r *failure.Record) {
		sharded, up := e.Shards > 0, e.BottomUp != 0
		r.Request = failure.Request{
			Bytes: e.Asked, BankBytes: need, Page: e.Page, Sharded: &sharded, Shards: uint64(e.Shards), BottomUp: &up,
		}
	})
}

// reason is why a list refuses a request, as far as its sums say it. Requests of one
// line that fail for different reasons are told apart: another fix helps.
func reason(l *list, need uint64) failure.Cause {
	switch {
	case need > l.Capacity:
		return failure.TooLarge
	case need > l.Capacity-min(l.Usage().BankBytes, l.Capacity):
		return failure.Full
	}
	return failure.Fragmented
}

// maxAsked is how often a process may ask how full its lists are before scanning
// them counts against the time for copies.
const maxAsked = 16

// onlyAsks reports whether a list was asked how full it is for another reason than
// a request that found no room: with one list for the pool, what fits does not
// fail. To see that takes longer the more blocks there are, so that of those who
// fail again and again, or ask again and again, it is seen only now and then.
func (b *accounts) onlyAsks(p *process, l *list, e *event, need uint64) bool {
	perCore := l.Pool == model.L1 && l.allocator.PerCore()
	if !perCore && len(l.allocator.Pool(l.Pool)) != 1 {
		return false
	}
	now := time.Now()
	r, _ := b.failures.waitingFor(p, l, e, failure.NoRoom, reason(l, need))
	if (r != nil || p.asked >= maxAsked) && !b.failures.mayCopy(now) {
		return r == nil
	}
	state := l.List
	if perCore {
		state = p.perCoreState(l)
	}
	space, known := state.Space()
	b.failures.credit -= time.Since(now)
	if known && need <= space.Largest {
		p.asked++
		return true
	}
	return false
}

// clash enters circular buffers that reach into a buffer, or end behind L1.
func (b *accounts) clash(p *process, of *event, at int64) {
	e := about[clashEvent](of)
	p.recall(of, e.Stack)
	if e.Reach <= e.Lowest {
		return
	}
	if e.Lowest == 0 {
		l, several := p.fitting(func(l *list) bool { return l.Pool == model.L1 && l.Capacity > 0 && l.Base+l.Capacity < e.Reach })
		if l != nil {
			b.clashed(p, l, of, at, several)
		}
		return
	}
	for _, l := range p.ordered() {
		if _, ok := l.At(e.Lowest); ok && l.Pool == model.L1 { // else of another device, or of what is not known
			b.clashed(p, l, of, at, false)
			return
		}
	}
}

func (b *accounts) clashed(p *process, l *list, of *event, at int64, several bool) {
	e, why := about[clashEvent](of), failure.Overlap
	if e.Lowest == 0 {
		why = failure.TooLarge
	}
	b.failed(p, l, of, at, failure.Clash, why, func(r *failure.Record) {
		r.Clash = &failure.Collision{Program: e.Program, Reach: e.Reach, Lowest: e.Lowest, Base: l.Base, Cores: coresIn(e.Cores[:])}
		if e.Lowest > 0 {
			r.Clash.Overlap = e.Reach - e.Lowest
		}
		if several {
			r.Doubts = append(r.Doubts, failure.SeveralDevices)
		}
	})
}

// refusedTrace enters a trace that does not fit its region.
func (b *accounts) refusedTrace(p *process, of *event, at int64) {
	e := about[traceEvent](of)
	p.recall(of, e.Stack)
	if e.Needed <= e.Region {
		return
	}
	l, several := p.regionOf(e.Region)
	b.failed(p, l, of, at, failure.Trace, failure.RegionTooSmall, func(r *failure.Record) {
		r.Region = &failure.Region{Size: e.Region, Needed: e.Needed}
		if several {
			r.Doubts = append(r.Doubts, failure.SeveralDevices)
		}
	})
}

// regionOf finds the list of a trace region of so many bytes. Where none is known it
// is an empty one of which nothing is known.
func (p *process) regionOf(size uint64) (found *list, several bool) {
	found, several = p.fitting(func(l *list) bool { return l.Pool == model.Trace && failure.IsRegion(&l.Geometry, size) })
	if found == nil {
		found = &list{allocator: &allocator{Allocator: &blocks.Allocator{}}, List: blocks.NewList(blocks.Geometry{Pool: model.Trace}, blocks.Late)}
	}
	return found, several
}

// fitting finds the list that is meant; nil: none is known. Of several it is the one
// that was made last of those whose allocators are in use (those of the chips of a
// mesh never are), or of all; several says that it may be another.
func (p *process) fitting(fits func(*list) bool) (found *list, several bool) {
	inUse := 0
	for _, l := range p.ordered() {
		if !fits(l) {
			continue
		}
		uses := p.uses(l.allocator)
		if uses {
			inUse++
		}
		if uses || inUse == 0 {
			found = l
		}
	}
	return found, found != nil && (inUse > 1 || inUse == 0 && len(p.Seen) > 1)
}

// uses reports whether the process has ever allocated from an allocator.
func (p *process) uses(a *allocator) bool {
	for _, l := range p.lists {
		if l.allocator == a && l.used {
			return true
		}
	}
	return false
}

var number = regexp.MustCompile(`\d+`)

// coresIn reads "[0-0 - 11-9]", or "[(x=0,y=0) - (x=11,y=9)]"; nil where it says
// something else.
func coresIn(text []int8) (cores []int) {
	var b []byte
	for _, c := range text {
		b = append(b, byte(c))
	}
	b, _, _ = bytes.Cut(b, []byte{0})
	for _, s := range number.FindAllString(string(b), 5) {
		n, err := strconv.Atoi(s)
		if err != nil {
			return nil
		}
		cores = append(cores, n)
	}
	if len(cores) != 4 || len(b) == 0 || b[len(b)-1] != ']' {
		return nil
	}
	return cores
}

// maxStacks is how many stacks of a process are remembered by their number.
const maxStacks = 8

// recall gives an event the lines that came with an earlier one, which has the
// same number.
func (p *process) recall(e *event, number uint64) {
	switch {
	case number == 0:
	case len(e.stack) > 0:
		if p.stacks == nil || len(p.stacks) >= maxStacks {
			p.stacks = map[uint64][]ledgerfile.Frame{}
		}
		p.stacks[number] = e.stack
	default:
		e.stack = p.stacks[number]
	}
}

// waitingFor finds the record, not collected yet, that a failed request belongs to,
// and reports whether there is room for another.
func (f *failures) waitingFor(p *process, l *list, e *event, kind failure.Kind, why failure.Cause) (r *failure.Record, room bool) {
	ofUser, ofOne := 0, 0
	for _, x := range f.list {
		if x.Process.UID == p.uid {
			ofUser++
		}
		if x.Process.PID != p.PID {
			continue
		}
		ofOne++
		if x.Kind == kind && x.Verdict.Cause == why && x.Allocator == l.allocator.number && x.Pool == l.Pool.String() && slices.Equal(e.stack, x.Stack) {
			r = x
		}
	}
	return r, ofOne < maxWaitingOfOne && ofUser < maxWaitingOfUser && len(f.list) < maxWaiting
}

// failed enters a request that failed: a record of its own, or one more of a
// record that waits to be taken and is of the same line and reason.
func (b *accounts) failed(p *process, l *list, e *event, at int64, kind failure.Kind, why failure.Cause, fill func(*failure.Record)) {
	b.failures.total++
	p.failures++
	when := time.Unix(0, at).UTC()
	r, room := b.failures.waitingFor(p, l, e, kind, why)
	copies := b.failures.mayCopy(time.Now())
	switch {
	case r == nil && !room:
		b.failures.dropped++
		if i := slices.IndexFunc(b.failures.list, func(x *failure.Record) bool { return x.Process.PID == p.PID }); i >= 0 {
			b.failures.list[i].Uncounted = true
		}
		return
	case r == nil:
		r = &failure.Record{
			Schema: failure.Schema, Kind: kind, First: when, Source: string(model.FromUprobe), Pool: l.Pool.String(), Allocator: l.allocator.number, Stack: e.stack,
			Process: failure.Process{PID: p.PID, Start: p.Start, UID: p.uid, Release: p.Release},
			Verdict: failure.Verdict{Cause: why}, // until it is judged
		}
		b.failures.list = append(b.failures.list, r)
	}
	r.Count++
	r.Last = when
	if r.State != nil && !copies || l.Usage().Blocks > maxFailureBlocks {
		return
	}
	defer b.checkBlocks(p, at)
	r.Time = when
	b.guessChips(p)
	b.copyState(r, p, l)
	fill(r)
}

// copyState takes the state of the allocator over.
func (b *accounts) copyState(r *failure.Record, p *process, l *list) {
	began := time.Now()
	r.Chips, r.Siblings, r.Sites, r.Others, r.Doubts = []failure.Chip{}, []failure.Sibling{}, []failure.Site{}, []failure.Other{}, []failure.DoubtKind{}
	r.SubDevice = l.allocator.SubDevice
	for _, c := range l.allocator.Chips {
		r.Chips = append(r.Chips, failure.Chip{ID: c})
	}
	if l.Pool == model.L1 && l.allocator.PerCore() {
		r.State, r.Doubts = p.perCoreState(l), append(r.Doubts, failure.PerCore)
	} else {
		r.State = l.List.Clone()
	}
	if p.Lost > 0 {
		r.State.Contradictions++ // what was lost may be in it
	}
	for _, other := range l.allocator.Lists {
		if other != l.List && (other.Pool != l.Pool || !l.allocator.PerCore()) && len(r.Siblings) < maxFailureSibling {
			r.AddSibling(other)
		}
	}
	b.failures.credit -= time.Since(began)
}

// perCoreState is what a request had to avoid that found no room in a list of L1 which
// is one of several (HYBRID): what the core of the list has, or all cores together. Where
// that is not known it is a list of which nothing is known.
func (p *process) perCoreState(l *list) *blocks.List {
	known, ok := p.PerCore()
	if !ok {
		return blocks.NewList(l.Geometry, blocks.Late)
	}
	for _, m := range known.Meshes {
		if m.Allocator == l.allocator.Allocator {
			return known.Common(m, nil)
		}
	}
	core := int(l.Nth) - 2
	for _, c := range known.Chips {
		if slices.Equal(l.allocator.Chips, []uint64{c.ID}) && core >= 0 {
			return known.Alone(c, core)
		}
	}
	return blocks.NewList(l.Geometry, blocks.Late)
}

// Failures returns the requests that failed since the last call, and forgets them.
// Repeated ones are one record. The caller owns the records, and judges them.
func (s *Source) Failures() []*failure.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := s.accounts.failures.list
	s.accounts.failures.list = nil
	return list
}

// Failed receives when there are requests that failed. Failures returns them.
func (s *Source) Failed() <-chan struct{} { return s.failed }

// notifyFailures signals that requests have failed. With mu.
func (s *Source) notifyFailures() {
	if len(s.accounts.failures.list) == 0 {
		return
	}
	select {
	case s.failed <- struct{}{}:
	default:
	}
}
