package uprobe

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
)

// tapSize is how many changes are kept for those who follow: at 10 000
// allocations and frees a second those of six seconds, in 6 MB. Without a
// follower there is none.
const tapSize = 1 << 16

// tap is a ring of changes, for all followers.
type tap struct {
	ring []changes.Change
	next uint64 // how many ever were
	used int    // followers
	upTo int64  // Unix ns: what happened before it is in the ring
	wake time.Time
	more chan struct{} // closed when there is more
}

func newTap() *tap { return &tap{ring: make([]changes.Change, tapSize), more: make(chan struct{})} }

func (t *tap) push(c changes.Change) {
	t.ring[t.next%tapSize] = c
	t.next++
}

// How often followers are woken: after changes, and without any.
const (
	notifyEvery = 10 * time.Millisecond
	notifyIdle  = 200 * time.Millisecond
)

// caughtUp notes that all was read that the kernel's ring had when that began, and
// had n events: all changes before began are here.
func (t *tap) caughtUp(n int, began time.Time) {
	t.upTo = began.UnixNano()
	if n > 0 || began.Sub(t.wake) >= notifyIdle {
		t.notify(began)
	}
}

// notify wakes the followers.
func (t *tap) notify(now time.Time) {
	t.wake = now
	close(t.more)
	t.more = make(chan struct{})
}

// note counts a change of a process and passes it to followers. Without any it
// costs only the counting.
func (b *accounts) note(p *process, c changes.Change) {
	p.changes++
	if b.tap == nil {
		return
	}
	p.toldAt = max(p.toldAt, c.Time)
	c.N, c.PID, c.Time = p.changes, p.PID, p.toldAt
	b.tap.push(c)
}

// noteList is note for a list that is new or has changed.
func (b *accounts) noteList(p *process, l *list, at int64) {
	c := changes.Change{Kind: changes.Defined, List: l.id, Time: at}
	if b.tap != nil {
		def := l.define()
		c.Def = &def
	}
	b.note(p, c)
}

func (l *list) define() changes.List {
	return changes.List{
		ID: l.id, Allocator: l.allocator.number, Pool: l.Pool.String(), Geometry: l.Geometry, Cut: l.Cut, Late: l.Origin == blocks.Late,
		Chips: slices.Clone(l.allocator.Chips),
	}
}

// noteAllocator is noteList for all lists of an allocator.
func (b *accounts) noteAllocator(p *process, a *allocator, at int64) {
	for _, l := range p.ordered() {
		if l.allocator == a {
			b.noteList(p, l, at)
		}
	}
}

// ordered are its lists, by age.
func (p *process) ordered() []*list {
	out := make([]*list, 0, len(p.lists))
	for _, l := range p.lists {
		out = append(out, l)
	}
	slices.SortFunc(out, func(a, b *list) int { return int(a.id) - int(b.id) })
	return out
}

// state is all that a process holds.
func (p *process) state() *changes.State {
	s := &changes.State{PID: p.PID, Start: p.Start, Release: p.Release, Late: p.Late, Lost: p.Lost, N: p.changes}
	for _, l := range p.ordered() {
		s.Lists = append(s.Lists, changes.Held{List: l.define(), Blocks: slices.Collect(l.All())})
	}
	return s
}
