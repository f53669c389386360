package uprobe

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
)

// division is a device that is being divided into sub-devices: each that has
// worker cores gets an allocator, in their order.
type division struct {
	parts uint32
	made  []*allocator
}

// add notes an allocator that was made, by its first list. Which one is whose is
// known only if all sub-devices have one. No sub-device has DRAM.
func (d *division) add(a *allocator, first blocks.Geometry) {
	if d.parts == 0 {
		return
	}
	if first.Pool != model.DRAM || first.Capacity > 0 {
		*d = division{}
		return
	}
	d.made = append(d.made, a)
	if len(d.made) < int(d.parts) {
		return
	}
	for i, a := range d.made {
		a.SubDevice = &i
	}
	*d = division{}
}

type allocator struct {
	*blocks.Allocator
	number  uint64 // for others: its ID is an address in the process
	settled bool   // all its chips are known
	made    int64  // Unix time in ns; 0: before it was watched
}

// list is one free list of a process.
type list struct {
	*blocks.List
	id        uint32
	allocator *allocator
	used      bool           // something was taken from it
	learned   map[uint64]int // buffers seen on each chip
}

// What a process can make us keep. No program has so many: the largest host has
// 32 chips, and an allocator a handful of lists, or one for each core (HYBRID): 2,508
// altogether on a Galaxy.
const (
	maxLists = 4096
	maxChips = 1024
)

// pools by the number that tt-metal gives them.
var pools = map[uint32]model.Pool{0: model.DRAM, 1: model.L1, 3: model.L1Small, 4: model.Trace}

func (b *accounts) addList(p *process, e *event, now int64) {
	x := about[listEvent](e)
	pool, ok := pools[x.Pool]
	if !ok {
		return // memory of the host, or of a kind that is not known yet
	}
	b.dropList(p, x.List, now) // of an allocator whose end was not seen
	if len(p.lists) >= maxLists {
		b.giveUp(p, now, model.Doubt{Kind: model.AllocatorUnknown})
		return
	}
	a := p.allocators[x.Allocator]
	if a == nil {
		p.numbers.allocator++
		a = &allocator{Allocator: &blocks.Allocator{ID: x.Allocator}, number: p.numbers.allocator}
		if e.kind == listMade {
			a.made = now
			b.learns = b.learns || len(p.providers) > 1
		}
		p.allocators[a.ID] = a
		p.Allocators = append(p.Allocators, a.Allocator)
	}
	origin := blocks.FromStart
	if e.kind == listFound {
		origin = blocks.Late
	}
	p.numbers.list++
	l := &list{allocator: a, id: uint32(p.numbers.list), learned: map[uint64]int{}, List: blocks.NewList(blocks.Geometry{
		Pool: pool, Banks: uint64(x.Banks), Base: x.Base, Capacity: x.Capacity, Align: uint64(x.Alignment), Smallest: uint64(x.Smallest),
		PerCore: p.perCore && pool == model.L1,
	}, origin), used: origin == blocks.Late}
	if e.kind == listFound && p.child {
		l.disown()
	}
	if len(a.Lists) == 0 {
		p.divided.add(a, l.Geometry)
	}
	a.Lists = append(a.Lists, l.List)
	p.lists[x.List] = l
	b.numberCores(p, l, now)
	b.noteList(p, l, now)
	b.checkBlocks(p, now)
}

// numberCores gives a new list its number, if it is one of several of L1: an allocator
// makes them in order. Those that were found in use have none.
func (b *accounts) numberCores(p *process, l *list, at int64) {
	if l.Pool != model.L1 || l.Origin != blocks.FromStart {
		return
	}
	var before []*blocks.List
	for _, x := range l.allocator.Lists {
		if x.Pool == model.L1 && x != l.List {
			before = append(before, x)
		}
	}
	if len(before) == 0 || before[0].Origin != blocks.FromStart {
		return
	}
	before[0].Nth = 1
	l.Nth = uint32(len(before)) + 1
	if len(before) > 1 {
		return
	}
	for _, x := range p.lists {
		if x.List == before[0] {
			b.noteList(p, x, at)
		}
	}
}

// keepPerCore notes that a process keeps L1 per core, also of lists that were found
// before that was known.
func (b *accounts) keepPerCore(p *process) {
	p.perCore = true
	for _, l := range p.ordered() {
		if l.Pool == model.L1 && !l.PerCore {
			l.PerCore = true
			b.noteList(p, l, p.toldAt)
		}
	}
}

// disown makes a list a forked child's copy: what was in it is its parent's.
func (l *list) disown() (dropped []blocks.Block) {
	for x := range l.All() {
		if x.Born == 0 {
			dropped = append(dropped, x)
		}
	}
	for _, x := range dropped {
		l.Free(x.Addr)
	}
	l.Origin, l.Inherited = blocks.FromStart, true
	return dropped
}

// disown makes the lists that a process was found with copies of its parent's.
func (b *accounts) disown(p *process) {
	for _, l := range p.ordered() {
		if l.allocator.made != 0 {
			continue
		}
		for _, x := range l.disown() {
			b.note(p, changes.Change{Kind: changes.Free, Time: p.toldAt, List: l.id, Addr: x.Addr})
		}
		b.noteList(p, l, p.toldAt)
	}
}

// addBlock enters a block of a list that was found in use.
func (b *accounts) addBlock(p *process, e *blockEvent, at int64) {
	l := p.lists[e.List]
	if l == nil || l.Inherited {
		return
	}
	x := blocks.Block{Addr: l.Base + e.At, Size: e.Size}
	l.Alloc(x)
	b.note(p, changes.Change{Kind: changes.Alloc, Time: at, List: l.id, Addr: x.Addr, Size: x.Size})
	b.checkBlocks(p, at)
}

// completeList ends the copy of a list that was found in use.
func (b *accounts) completeList(p *process, e *event, at int64) {
	l := p.lists[about[wholeEvent](e).List]
	if l == nil || l.Inherited {
		return
	}
	last := l.Base
	for x := range l.All() {
		last = x.End()
	}
	if p.Lost > 0 && l.Usage().Blocks < about[wholeEvent](e).Blocks {
		return // some of its blocks were lost on the way: it stays one that was found late
	}
	if l.Usage().Blocks != about[wholeEvent](e).Blocks || l.Contradictions > 0 || last > l.Base+l.Capacity {
		b.giveUp(p, at, model.Doubt{Kind: model.AllocatorUnknown})
		return
	}
	l.Origin = blocks.FromStart
	b.noteList(p, l, at)
}

// change applies a free, clear, shrink or resize to a list.
func (b *accounts) change(p *process, l *list, e *event, at int64) {
	value := about[changeEvent](e).Value
	switch e.kind {
	case freed:
		l.Free(value)
		b.note(p, changes.Change{Kind: changes.Free, Time: at, List: l.id, Addr: value})
	case cleared:
		l.Clear()
		b.note(p, changes.Change{Kind: changes.Cleared, Time: at, List: l.id})
	case shrunk:
		l.Cut += value
		b.noteList(p, l, at)
	case resized:
		l.Cut = 0
		b.noteList(p, l, at)
	}
}

func (b *accounts) allocate(p *process, e *event, now int64) {
	x := about[takeEvent](e)
	l := p.lists[x.List]
	if l == nil {
		return // of a pool that is not known
	}
	size, at, from, base := x.Size, x.At, x.From, x.Base
	// The first block of a new list is cut out of one that is all of it.
	first := !l.used && l.Origin == blocks.FromStart
	if e.odd || base != l.Base || at+size > l.Capacity || first && from != l.Capacity-l.Cut {
		b.giveUp(p, now, model.Doubt{Kind: model.AllocatorUnknown})
		return
	}
	l.used = true
	l.Alloc(blocks.Block{Addr: base + at, Size: size, Asked: x.Asked, Born: now})
	b.note(p, changes.Change{Kind: changes.Alloc, Time: now, List: l.id, Addr: base + at, Size: size, Asked: x.Asked})
}

// learnChip notes that a list's buffers are on a chip; that holds for the whole
// allocator.
func (b *accounts) learnChip(p *process, e *event, at int64) {
	x := about[recordEvent](e)
	l, chip := p.lists[x.List], x.Chip
	if l == nil {
		return
	}
	i, found := slices.BinarySearch(l.allocator.Chips, chip)
	if !found && len(l.allocator.Chips) >= maxChips {
		b.giveUp(p, at, model.Doubt{Kind: model.AllocatorUnknown})
		return
	}
	l.learned[chip]++
	if !found {
		l.allocator.Chips = slices.Insert(l.allocator.Chips, i, chip)
		b.noteAllocator(p, l.allocator, at)
	}
}

// learning reports whether anything was allocated, and whether the chips of some
// of it are still unknown. Each chip is named once for every buffer, so that
// a chip which was named for a third one had all its company by then. A process
// that has just opened several chips, or has made an allocator for some of them (a
// sub-device's), is about to allocate. Learning is given up when it has cost too
// much.
func (p *process) learning(now int64) (used, open bool) {
	const maxTaught = 20_000 // hits; a Galaxy needs some hundred
	for _, l := range p.lists {
		if !l.used || l.allocator.settled {
			continue
		}
		for _, n := range l.learned {
			l.allocator.settled = l.allocator.settled || n >= 3
		}
	}
	for _, l := range p.lists {
		used = used || l.used
		open = open || l.used && !l.allocator.settled && p.taught < maxTaught
	}
	const soon = int64(time.Minute)
	if len(p.providers) > 1 {
		open = open || !used && now-p.opened < soon
		for _, a := range p.allocators {
			open = open || len(a.Chips) == 0 && now-a.made < soon && p.taught < maxTaught
		}
	}
	return used, open
}

func (b *accounts) dropAllocator(p *process, at uint64, now int64) {
	a := p.allocators[at]
	if a == nil {
		return
	}
	delete(p.allocators, at)
	p.Allocators = slices.DeleteFunc(p.Allocators, func(x *blocks.Allocator) bool { return x == a.Allocator })
	for at, l := range p.lists {
		if l.allocator == a {
			delete(p.lists, at)
			b.note(p, changes.Change{Kind: changes.Closed, List: l.id, Time: now})
		}
	}
}

// dropList forgets the list at an address, because another is made there, and
// its allocator with it if it was the last.
func (b *accounts) dropList(p *process, at uint64, now int64) {
	l := p.lists[at]
	if l == nil {
		return
	}
	delete(p.lists, at)
	b.note(p, changes.Change{Kind: changes.Closed, List: l.id, Time: now})
	a := l.allocator
	a.Lists = slices.DeleteFunc(a.Lists, func(x *blocks.List) bool { return x == l.List })
	if len(a.Lists) == 0 {
		b.dropAllocator(p, a.ID, now)
	}
}
