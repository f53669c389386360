package blocks

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// Allocator is one allocator of a process. A mesh has one for all its chips:
// each of them holds the same blocks.
type Allocator struct {
	// ID tells the allocators of a process apart; the producer chooses it.
	ID uint64
	// Chips are the unique ids of the chips that it stands for; empty while
	// that is not known.
	Chips []uint64
	// Lists are its pools. One pool can have several lists.
	Lists []*List
	// SubDevice is the number of the sub-device that it is of; nil: it is of the
	// device, or which one is not known.
	SubDevice *int
}

// Process is all that is known of the allocators of one process.
type Process struct {
	PID     int
	Start   uint64 // start time in clock ticks after boot, as in /proc/PID/stat
	Release string // of tt-metal, where it is known
	// Late says that the process ran before it was watched: it may have
	// allocators, and blocks in its Late lists, that are not here.
	Late bool
	// Seen are chips that a Late process opened while it was watched: of these
	// nothing was missed.
	Seen []uint64
	// Lost counts events that did not reach the producer. Any makes all
	// figures of the process unsure until it starts again.
	Lost uint64
	// Allocators are ordered by age.
	Allocators []*Allocator
	// Programs are those of its cached programs whose circular buffers were
	// laid out while it was watched, by age. Circular buffers are no
	// allocations: they lie at the low end of each core's L1 while a program
	// runs, below the buffers of the allocator.
	Programs []*Program
}

// Program is what the circular buffers of a program take of a core's L1.
type Program struct {
	Base uint64 `json:"base_address"` // where the first one begins
	End  uint64 `json:"end_address"`  // behind the highest one, on any core
}

// Reach is how far up the circular buffers of any program lie, and how much
// of a core that takes; ok is false where there is none.
func (p *Process) Reach() (largest Program, ok bool) {
	for _, x := range p.Programs {
		if x.End > largest.End {
			largest, ok = *x, true
		}
	}
	return largest, ok
}

// Largest is how much of a core the circular buffers of the largest program
// take; ok is false where no program is known.
func (p *Process) Largest() (bytes uint64, ok bool) {
	for _, x := range p.Programs {
		bytes = max(bytes, x.End-min(x.Base, x.End))
	}
	return bytes, len(p.Programs) > 0
}

// Exact says that all blocks of the process are known, and nothing else is.
func (p *Process) Exact() bool {
	if p.Late || p.Lost > 0 {
		return false
	}
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			if !l.Exact() {
				return false
			}
		}
	}
	return true
}

// Whole says that nothing of an allocator's chips was missed: the process was
// watched from its start, or when it opened them.
func (p *Process) Whole(a *Allocator) bool {
	return !p.Late || len(a.Chips) > 0 && !slices.ContainsFunc(a.Chips, func(c uint64) bool { return !slices.Contains(p.Seen, c) })
}

// Complete reports whether nothing that the process holds is known to be
// missing.
func (p *Process) Complete() bool {
	for _, a := range p.Allocators {
		if !p.Whole(a) {
			return false
		}
	}
	return p.listsExact() && p.Lost == 0 && (!p.Late || len(p.Allocators) > 0)
}

// listsExact reports whether all blocks of every list with blocks are known.
func (p *Process) listsExact() bool {
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			if !l.Exact() && l.sum.Blocks > 0 {
				return false
			}
		}
	}
	return true
}

// missed reports whether something of the process on a chip may be missing. A
// chip that it opened while it was watched is known whole, even if the process
// is older.
func (p *Process) missed(chip uint64) bool {
	return p.Lost > 0 || p.Late && !slices.Contains(p.Seen, chip) || !p.listsExact()
}

// Blocks counts the live blocks of all allocators.
func (p *Process) Blocks() (n uint64) {
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			n += l.sum.Blocks
		}
	}
	return n
}

// PerCore reports whether the allocator has a list of L1 for each core (HYBRID).
// They are views of one range of addresses, with copies of some blocks in several.
func (a *Allocator) PerCore() bool {
	n := 0
	for _, l := range a.Lists {
		if l.Pool == model.L1 {
			n++
		}
		if l.PerCore {
			return true
		}
	}
	return n > 1
}

// Pool returns the lists of a pool; none of L1 if it is kept per core: what is
// used and free is not in any one of them, nor in their sum.
func (a *Allocator) Pool(pool model.Pool) (lists []*List) {
	if pool == model.L1 && a.PerCore() {
		return nil
	}
	for _, l := range a.Lists {
		if l.Pool == pool {
			lists = append(lists, l)
		}
	}
	return lists
}

// Clone is a copy of its own.
func (p *Process) Clone() *Process {
	c := *p
	c.Seen = slices.Clone(p.Seen)
	c.Programs = nil
	for _, x := range p.Programs {
		program := *x
		c.Programs = append(c.Programs, &program)
	}
	c.Allocators = make([]*Allocator, len(p.Allocators))
	for i, a := range p.Allocators {
		allocator := *a
		allocator.Chips, allocator.Lists = slices.Clone(a.Chips), make([]*List, len(a.Lists))
		for j, l := range a.Lists {
			allocator.Lists[j] = l.Clone()
		}
		c.Allocators[i] = &allocator
	}
	return &c
}
