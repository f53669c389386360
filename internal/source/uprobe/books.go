package uprobe

import (
	"math"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/blocks/changes"
	"github.com/ttmon/ttmon/internal/budget"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// books are the allocators of all watched processes, kept from events alone.
// They are not safe for concurrent use.
type books struct {
	processes map[uint32]*process
	// bootTime is the Unix time, in ns, of the boot that event times count from.
	bootTime int64
	// maxBlocks is how many live blocks a process may have before it is let go,
	// and shares how many all processes of a user, and all users. What else is
	// kept of a process counts as blocks, too.
	maxBlocks uint64
	perUID    int64
	shares    *budget.Pool
	failures  failures
	// tap is for those who follow what happens; nil: nobody does.
	tap *tap
}

// process is a watched process and what its pointers mean.
type process struct {
	blocks.Process

	lists      map[uint64]*list      // by address of the FreeListOpt
	allocators map[uint64]*allocator // by address of the AllocatorImpl
	providers  map[uint64]uint64     // chip, by address of the provider
	programs   map[uint64]*blocks.Program
	// child says that the process was forked off one that has the library: a
	// list whose making was not seen is its parent's, of which it has a copy,
	// but not the memory.
	child  bool
	parent uint32 // that was seen forking it; 0: not seen
	lost16 uint16
	// uid is the user for whom its blocks count; -1: not known yet.
	uid       int
	booked    int64 // blocks that are counted for it
	unchecked int   // events since they were
	// nameless is how many events of processes without a place in the kernel's
	// table there were when this one was last seen without one.
	nameless uint64
	failures uint64                        // requests that failed
	asked    uint64                        // times that it only asked how full a list is
	stacks   map[uint64][]ledgerfile.Frame // that asked for them, by number
	taught   uint64                        // hits spent on learning which chips its allocators stand for
	opened   int64                         // when it last opened a chip, Unix time in ns
	// trouble is why its figures cannot be given; without a kind they can.
	trouble model.Doubt

	// work is what its chips report; nil: nothing yet. numbered are its chips by
	// the numbers that it has for them.
	work     *pages.Process
	numbered map[uint32]uint64
	workFast bool // its chips report more often than we may look
	hostFast bool // it enqueues more often than we may count

	changes uint64                           // of its blocks and lists, ever
	toldAt  int64                            // the time of the last one that was told
	numbers struct{ list, allocator uint64 } // that were given last
	divided division
}

// letGo says that a process allocates more often than we may look.
func (p *process) letGo() bool { return p.trouble.Kind == model.TooFast }

// division is a device that is being divided into sub-devices: each that has
// worker cores gets an allocator, in their order.
type division struct {
	parts uint32
	made  []*allocator
}

// enter notes an allocator that was made, by its first list. Which one is whose is
// known only if all sub-devices have one. No sub-device has DRAM.
func (d *division) enter(a *allocator, first blocks.Geometry) {
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
}

// list is one free list of a process.
type list struct {
	*blocks.List
	id        uint32
	allocator *allocator
	used      bool           // something was taken from it
	learned   map[uint64]int // buffers seen on each chip
}

func newBooks(maxBlocks uint64, limit budget.Limit) *books {
	if limit == (budget.Limit{}) {
		limit = budget.Limit{PerUID: math.MaxInt64, All: math.MaxInt64}
	}
	return &books{processes: map[uint32]*process{}, maxBlocks: maxBlocks, perUID: limit.PerUID, shares: budget.NewPool("watched_blocks", limit, nil)}
}

// process finds a process or begins a record of it. Whoever hits a probe
// without having been announced ran before it was watched.
func (b *books) process(pid uint32) *process {
	p := b.processes[pid]
	if p == nil {
		p = &process{uid: -1}
		p.PID, p.Late = int(pid), true
		p.reset()
		b.processes[pid] = p
	}
	return p
}

// forget forgets all allocators of a process.
func (b *books) forget(p *process, at int64) {
	for _, l := range p.ordered() {
		b.note(p, changes.Change{Kind: changes.Closed, List: l.id, Time: at})
	}
	p.reset()
}

// exec begins the record again: another program runs in the process.
func (b *books) exec(p *process, e *event, at int64) {
	before := p.trouble
	out := p.letGo() // for good: its probes are
	b.forget(p, at)
	if p.Late != out || p.Lost > 0 {
		b.note(p, changes.Change{Kind: changes.Lost, Time: at})
		b.note(p, changes.Change{Kind: changes.Watched, Time: at})
	}
	p.Late, p.Lost, p.lost16 = out, 0, e.lost
	p.child, p.parent = false, 0
	if out {
		p.trouble = before
	}
}

// end notes that a process is not there, or not watched any more.
func (b *books) end(p *process, at int64, why string) {
	b.note(p, changes.Change{Kind: changes.Ended, Time: at, Why: why})
}

// reset empties a record.
func (p *process) reset() {
	p.Allocators = nil
	p.lists = map[uint64]*list{}
	p.allocators = map[uint64]*allocator{}
	p.providers = map[uint64]uint64{}
	p.programs, p.Programs = map[uint64]*blocks.Program{}, nil
	p.Seen = nil
	p.trouble = model.Doubt{}
	p.work, p.numbered = nil, map[uint32]uint64{}
	p.divided = division{}
}

// giveUp forgets what is known of a process that can no longer be followed.
func (b *books) giveUp(p *process, at int64, why model.Doubt) {
	b.forget(p, at)
	b.book(p)
	b.end(p, at, string(why.Kind))
	why.PID = p.PID
	p.Late, p.trouble = true, why
}

// apply enters one event.
func (b *books) apply(e *event) {
	at := b.bootTime + int64(e.time)
	if !e.kind.ofSite() {
		b.applyFate(e, at)
		return
	}
	p := b.process(e.pid)
	if p.trouble.Kind != "" {
		return
	}
	// Signed: the sweep may know of losses that this event, which has waited in
	// the ring, is older than.
	if missed := int16(e.lost - p.lost16); missed > 0 {
		p.Lost += uint64(missed)
		p.lost16 = e.lost
		b.note(p, changes.Change{Kind: changes.Lost, Time: at, Size: p.Lost})
	}
	b.applySite(p, e, at)
}

// applyFate enters what became of a process.
func (b *books) applyFate(e *event, at int64) {
	p := b.processes[e.pid]
	switch {
	case e.kind == forked:
		b.fork(e)
	case p == nil:
	case e.kind == exited:
		b.end(p, at, "it has ended")
		b.remove(p)
	case e.kind == execed:
		b.exec(p, e, at)
	}
}

// applySite enters a hit of a probe.
func (b *books) applySite(p *process, e *event, at int64) {
	switch e.kind {
	case atAllocator:
		b.dropAllocator(p, about[objectEvent](e).Object, at) // whose end was not seen
	case listMade, listFound:
		b.addList(p, e, at)
	case blockFound:
		b.addBlock(p, about[blockEvent](e), at)
	case listWhole:
		b.whole(p, e, at)
	case taken:
		b.take(p, e, at)
		b.checkBlocks(p, at)
	case freed, cleared, shrunk, resized:
		// A list whose making was not seen is found when something is taken
		// from it.
		if l := p.lists[about[changeEvent](e).List]; l != nil {
			b.change(p, l, e, at)
		}
	case allocatorGone:
		b.dropAllocator(p, about[objectEvent](e).Object, at)
	case providerMade:
		b.openChip(p, e, at)
	case providerGone:
		delete(p.providers, about[objectEvent](e).Object)
	case recorded:
		b.learn(p, e, at)
	case workOn, workOnOld, workOff, workOffOld, queueMade, subDevicesMade, subDevicesLoaded:
		p.applyWork(e, at)
		b.checkBlocks(p, at)
	case noRoom:
		b.noRoom(p, e, at)
	case clashed:
		b.clash(p, e, at)
	case cbMarked, cbTracked:
		p.layOut(about[layoutEvent](e))
	case programGone:
		at := about[objectEvent](e).Object
		if x := p.programs[at]; x != nil {
			delete(p.programs, at)
			p.Programs = slices.DeleteFunc(p.Programs, func(y *blocks.Program) bool { return x == y })
		}
	}
}

// What a process can make us keep. No program has so many: the largest host has
// 32 chips, and an allocator a handful of lists.
const (
	maxLists = 1024
	maxChips = 1024
)

// checkBlocks gives up a process that has more live blocks than are kept, or
// whose user has. It counts only now and then.
func (b *books) checkBlocks(p *process, at int64) {
	every := min(256, 1+int(b.maxBlocks/64))
	if p.unchecked++; p.unchecked < every {
		return
	}
	b.book(p)
	switch {
	case p.Blocks() > b.maxBlocks:
		b.giveUp(p, at, model.Doubt{Kind: model.TooManyBlocks, Count: int(b.maxBlocks)})
	case b.shares.Over(p.uid):
		b.giveUp(p, at, model.Doubt{Kind: model.TooManyBlocks, Count: int(b.perUID)})
	}
}

// book counts what is kept of a process for its user.
func (b *books) book(p *process) { b.setBooked(p, int64(p.size())) }

func (b *books) setBooked(p *process, n int64) {
	switch {
	case n > p.booked:
		b.shares.Force(p.uid, n-p.booked)
	case n < p.booked:
		b.shares.Release(p.uid, p.booked-n)
	}
	p.booked, p.unchecked = n, 0
}

// own gives a process to a user.
func (b *books) own(p *process, uid int) {
	if p.uid == uid {
		return
	}
	b.setBooked(p, 0)
	p.uid = uid
	b.book(p)
}

// remove ends the record of a process.
func (b *books) remove(p *process) {
	b.setBooked(p, 0)
	delete(b.processes, uint32(p.PID))
}

// size is what is kept of a process, in blocks.
func (p *process) size() uint64 {
	const listSize, stackSize = 8, 128
	n := p.Blocks() + uint64(len(p.programs)+len(p.providers)+len(p.numbered)+stackSize*len(p.stacks))
	if p.work != nil {
		n += uint64(p.work.Size())
	}
	for _, l := range p.lists {
		n += listSize + uint64(len(l.learned))
	}
	return n
}

// openChip notes that a process has opened a chip.
func (b *books) openChip(p *process, e *event, at int64) {
	provider, chip := about[providerEvent](e).Provider, about[providerEvent](e).Chip
	p.providers[provider], p.opened = chip, at
	p.numbered[uint32(about[providerEvent](e).Logical)] = chip
	if !slices.Contains(p.Seen, chip) {
		p.Seen = append(p.Seen, chip)
	}
	if len(p.providers) > maxChips || len(p.Seen) > maxChips || len(p.numbered) > maxChips {
		b.giveUp(p, at, model.Doubt{Kind: model.AllocatorUnknown})
	}
}

// maxPrograms is how many programs of a process are kept; models have hundreds.
const maxPrograms = 1 << 14

// layOut enters a circular buffer of a program. Buffers are laid out one behind
// the other from the low end of L1, the same for all cores of a range; what
// counts is how far up they reach.
func (p *process) layOut(e *layoutEvent) {
	x := p.programs[e.Program]
	if x == nil {
		if len(p.programs) >= maxPrograms {
			return
		}
		x = &blocks.Program{Base: e.Address}
		p.programs[e.Program] = x
		p.Programs = append(p.Programs, x)
	}
	if e.Before == 0 {
		x.Base, x.End = e.Address, 0 // it is laid out again
	}
	x.Base, x.End = min(x.Base, e.Address), max(x.End, e.Address+e.Size)
}

// fork begins the record of a child. It has a copy of its parent's allocators,
// but the memory is its parent's: only what the child takes itself is counted,
// should it go on with a copy.
func (b *books) fork(e *event) {
	x := about[forkEvent](e)
	child := &process{uid: -1}
	child.reset()
	child.PID, child.Start = int(e.pid), ticks(x.Start)
	parent := b.processes[uint32(x.Parent)]
	child.child, child.parent, child.lost16 = true, uint32(x.Parent), e.lost
	if parent != nil {
		child.Seen, child.uid = slices.Clone(parent.Seen), parent.uid
	}
	if old := b.processes[e.pid]; old != nil {
		b.end(old, b.bootTime+int64(e.time), "its number is another's")
		b.remove(old)
	}
	b.processes[e.pid] = child
}

// pools by the number that tt-metal gives them.
var pools = map[uint32]model.Pool{0: model.DRAM, 1: model.L1, 3: model.L1Small, 4: model.Trace}

func (b *books) addList(p *process, e *event, now int64) {
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
	}, origin), used: origin == blocks.Late}
	if e.kind == listFound && p.child {
		l.Origin, l.Inherited = blocks.FromStart, true
	}
	if len(a.Lists) == 0 {
		p.divided.enter(a, l.Geometry)
	}
	a.Lists = append(a.Lists, l.List)
	p.lists[x.List] = l
	b.noteList(p, l, now)
	b.checkBlocks(p, now)
}

// addBlock enters a block of a list that was found in use.
func (b *books) addBlock(p *process, e *blockEvent, at int64) {
	l := p.lists[e.List]
	if l == nil || l.Inherited {
		return
	}
	x := blocks.Block{Addr: l.Base + e.At, Size: e.Size}
	l.Alloc(x)
	b.note(p, changes.Change{Kind: changes.Took, Time: at, List: l.id, Addr: x.Addr, Size: x.Size})
	b.checkBlocks(p, at)
}

// whole ends the copy of a list that was found in use.
func (b *books) whole(p *process, e *event, at int64) {
	l := p.lists[about[wholeEvent](e).List]
	if l == nil || l.Inherited {
		return
	}
	last := l.Base
	for x := range l.All() {
		last = x.End()
	}
	if l.Usage().Blocks != about[wholeEvent](e).Blocks || l.Contradictions > 0 || last > l.Base+l.Capacity {
		b.giveUp(p, at, model.Doubt{Kind: model.AllocatorUnknown})
		return
	}
	l.Origin = blocks.FromStart
	b.noteList(p, l, at)
}

// change enters what is not an allocation.
func (b *books) change(p *process, l *list, e *event, at int64) {
	value := about[changeEvent](e).Value
	switch e.kind {
	case freed:
		l.Free(value)
		b.note(p, changes.Change{Kind: changes.Gave, Time: at, List: l.id, Addr: value})
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

func (b *books) take(p *process, e *event, now int64) {
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
	b.note(p, changes.Change{Kind: changes.Took, Time: now, List: l.id, Addr: base + at, Size: size, Asked: x.Asked})
}

// learn notes that a list's buffers are on a chip; that holds for the whole
// allocator.
func (b *books) learn(p *process, e *event, at int64) {
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

// learning says whether anything was taken, and whether it is still open on
// which chips some of it is. Each chip is named once for every buffer, so that
// a chip which was named for a third one had all its company by then. A process
// that has just opened several chips is about to allocate. Learning is given up
// when it has cost too much.
func (p *process) learning(now int64) (used, open bool) {
	const patience = 20_000 // hits; a Galaxy needs some hundred
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
		open = open || l.used && !l.allocator.settled && p.taught < patience
	}
	const soon = int64(time.Minute)
	return used, open || !used && len(p.providers) > 1 && now-p.opened < soon
}

func (b *books) dropAllocator(p *process, at uint64, now int64) {
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
func (b *books) dropList(p *process, at uint64, now int64) {
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

// ticks turns ns after boot into the clock ticks of /proc/PID/stat.
func ticks(ns uint64) uint64 { return ns / (1_000_000_000 / 100) }

// nanoseconds is the opposite: no later than it was.
func nanoseconds(ticks uint64) uint64 { return ticks * (1_000_000_000 / 100) }
