package uprobe

import (
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/uprobe/pages"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// accounts are the allocators of all watched processes, rebuilt from events alone.
// They are not safe for concurrent use.
type accounts struct {
	processes map[uint32]*process
	// bootTime is the Unix time, in ns, of the boot that event times count from.
	bootTime int64
	// maxBlocks is how many live blocks a process may have before ttmond detaches
	// from it; shares is the budget of all processes of a user, and of all users.
	// Other state of a process counts as blocks, too.
	maxBlocks uint64
	perUID    int64
	shares    *budget.Pool
	failures  failures
	// learns says that a process with several chips has made an allocator since the
	// reader looked last: its first buffers tell which chips it stands for.
	learns bool
	// tap keeps changes for followers; nil: there are none.
	tap *tap
	// programs keeps the programs that ran, the same way.
	programs *programTap
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
	child bool
	// unplaced says that it hit a probe before it was inspected: whether it is
	// such a child is not known, and nothing is claimed of it.
	unplaced bool
	parent   uint32 // that was seen forking it; 0: not seen
	// perCore says that it was started with an allocator that keeps L1 per core
	// (HYBRID). Of a process that ran before it was watched the lists are found one
	// by one, so the first of them does not show it.
	perCore bool
	lost16  uint16
	// uid is the user for whom its blocks count; -1: not known yet.
	uid       int
	charged   int64 // blocks that are counted for it
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
	// fast are the groups of probes that it hits more often than we may look.
	fast [numGroups]bool

	changes uint64                           // of its blocks and lists, ever
	toldAt  int64                            // the time of the last one sent to followers
	numbers struct{ list, allocator uint64 } // that were given last
	divided division
}

// detached reports whether the process allocates too often to be watched.
func (p *process) detached() bool { return p.trouble.Kind == model.TooFast }

func newAccounts(maxBlocks uint64, limit budget.Limit) *accounts {
	if limit == (budget.Limit{}) {
		limit = budget.Limit{PerUID: math.MaxInt64, All: math.MaxInt64}
	}
	return &accounts{processes: map[uint32]*process{}, maxBlocks: maxBlocks, perUID: limit.PerUID, shares: budget.NewPool("watched_blocks", limit, nil)}
}

// process returns the record of a process, and starts one if there is none. A
// process that hits a probe unannounced ran before it was watched.
func (b *accounts) process(pid uint32) *process {
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
func (b *accounts) forget(p *process, at int64) {
	for _, l := range p.ordered() {
		b.note(p, changes.Change{Kind: changes.Closed, List: l.id, Time: at})
	}
	b.endPrograms(p, false)
	p.reset()
}

// exec starts the record again: another program runs in the process.
func (b *accounts) exec(p *process, e *event, at int64) {
	before := p.trouble
	out := p.detached() // for good: its probes are
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

// endProcess notes that a process is not there, or not watched any more.
func (b *accounts) endProcess(p *process, at int64, why string) {
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
	p.trouble, p.unplaced, p.perCore = model.Doubt{}, false, false
	p.work, p.numbered = nil, map[uint32]uint64{}
	p.divided = division{}
}

// giveUp drops the record of a process that can no longer be followed.
func (b *accounts) giveUp(p *process, at int64, why model.Doubt) {
	b.forget(p, at)
	b.charge(p)
	b.endProcess(p, at, string(why.Kind))
	why.PID = p.PID
	p.Late, p.trouble = true, why
}

// apply updates the accounts with one event.
func (b *accounts) apply(e *event) {
	at := b.bootTime + int64(e.time)
	if !e.kind.ofSite() {
		b.applyLifecycle(e, at)
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

// applyLifecycle handles fork, exec and exit.
func (b *accounts) applyLifecycle(e *event, at int64) {
	p := b.processes[e.pid]
	switch {
	case e.kind == forked:
		b.fork(e)
	case p == nil:
	case e.kind == exited:
		b.endProcess(p, at, "it has ended")
		b.remove(p)
	case e.kind == execed:
		b.exec(p, e, at)
	}
}

// applySite handles a probe hit.
func (b *accounts) applySite(p *process, e *event, at int64) {
	switch e.kind {
	case atAllocator:
		b.dropAllocator(p, about[objectEvent](e).Object, at) // whose end was not seen
	case listMade, listFound:
		b.addList(p, e, at)
	case blockFound:
		b.addBlock(p, about[blockEvent](e), at)
	case listWhole:
		b.completeList(p, e, at)
	case taken:
		b.allocate(p, e, at)
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
		b.learnChip(p, e, at)
	case workOn, workOnOld, workOff, workOffOld, queueMade, subDevicesMade, subDevicesLoaded:
		p.applyWork(e, at)
		b.checkBlocks(p, at)
	case noRoom:
		b.noRoom(p, e, at)
	case clashed:
		b.clash(p, e, at)
	case traceRefused:
		b.refusedTrace(p, e, at)
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

// checkBlocks gives up a process that has more live blocks than are kept, or
// whose user has. It counts only now and then.
func (b *accounts) checkBlocks(p *process, at int64) {
	every := min(256, 1+int(b.maxBlocks/64))
	if p.unchecked++; p.unchecked < every {
		return
	}
	b.charge(p)
	switch {
	case p.Blocks() > b.maxBlocks:
		b.giveUp(p, at, model.Doubt{Kind: model.TooManyBlocks, Count: int(b.maxBlocks)})
	case b.shares.Over(p.uid):
		b.giveUp(p, at, model.Doubt{Kind: model.TooManyBlocks, Count: int(b.perUID)})
	}
}

// charge counts what is kept of a process for its user.
func (b *accounts) charge(p *process) { b.setCharged(p, int64(p.size())) }

func (b *accounts) setCharged(p *process, n int64) {
	switch {
	case n > p.charged:
		b.shares.Force(p.uid, n-p.charged)
	case n < p.charged:
		b.shares.Release(p.uid, p.charged-n)
	}
	p.charged, p.unchecked = n, 0
}

// setOwner makes a process count for a user.
func (b *accounts) setOwner(p *process, uid int) {
	if p.uid == uid {
		return
	}
	b.setCharged(p, 0)
	p.uid = uid
	b.charge(p)
}

// remove deletes the record of a process.
func (b *accounts) remove(p *process) {
	b.setCharged(p, 0)
	b.endPrograms(p, true)
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
func (b *accounts) openChip(p *process, e *event, at int64) {
	x := about[providerEvent](e)
	chip := x.Chip
	p.providers[x.Provider], p.opened = chip, at
	p.numbered[uint32(x.Logical)] = chip
	// A chip's own allocator has blocks only if it gives out L1 core by core; of those
	// of single cores nothing else names the chip.
	if a := p.allocators[x.Allocator]; a != nil && len(a.Chips) == 0 && a.PerCore() {
		a.Chips, a.settled = []uint64{chip}, true
		b.noteAllocator(p, a, at)
	}
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

// fork starts the record of a child. It has a copy of its parent's allocators,
// but the memory is its parent's: if the child uses the copy, only what it
// allocates itself is counted.
func (b *accounts) fork(e *event) {
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
		b.endProcess(old, b.bootTime+int64(e.time), "its number is another's")
		b.remove(old)
	}
	b.processes[e.pid] = child
}

// ticks turns ns after boot into the clock ticks of /proc/PID/stat.
func ticks(ns uint64) uint64 { return ns / (1_000_000_000 / 100) }

// nanoseconds is the opposite: no later than it was.
func nanoseconds(ticks uint64) uint64 { return ticks * (1_000_000_000 / 100) }
