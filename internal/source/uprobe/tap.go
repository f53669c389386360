package uprobe

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/blocks/changes"
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

func (t *tap) put(c changes.Change) {
	t.ring[t.next%tapSize] = c
	t.next++
}

// How often those who follow are told: that something happened, and that
// nothing did.
const (
	sayMore = 10 * time.Millisecond
	sayUpTo = 200 * time.Millisecond
)

// looked ends a look at the kernel's ring that began at a time and brought n
// events: all that happened before is here.
func (t *tap) looked(n int, began time.Time) {
	t.upTo = began.UnixNano()
	if n > 0 || began.Sub(t.wake) >= sayUpTo {
		t.tell(began)
	}
}

// tell wakes those who follow.
func (t *tap) tell(now time.Time) {
	t.wake = now
	close(t.more)
	t.more = make(chan struct{})
}

// note counts a change of a process, and tells it to those who follow. What it
// costs when nobody does is the counting.
func (b *books) note(p *process, c changes.Change) {
	p.changes++
	if b.tap == nil {
		return
	}
	p.toldAt = max(p.toldAt, c.Time)
	c.N, c.PID, c.Time = p.changes, p.PID, p.toldAt
	b.tap.put(c)
}

// noteList is note for a list that is new or has changed.
func (b *books) noteList(p *process, l *list, at int64) {
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

// noteAllocator tells that something about all lists of an allocator changed.
func (b *books) noteAllocator(p *process, a *allocator, at int64) {
	for _, l := range p.ordered() {
		if l.allocator == a {
			b.noteList(p, l, at)
		}
	}
}

// number gives numbers to what a predecessor had none for.
func (p *process) number() {
	for _, a := range p.allocators {
		if a.number == 0 {
			p.numbers.allocator++
			a.number = p.numbers.allocator
		}
	}
	for _, l := range p.lists {
		if l.id == 0 {
			p.numbers.list++
			l.id = uint32(p.numbers.list)
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
