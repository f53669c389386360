package uprobe

import (
	"slices"

	"github.com/ttmon/ttmon/internal/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// Claims is all that is known by now, in the terms of the join. A process of
// which something was or may have been missed is claimed in part, so that
// shared memory speaks for it where that knows it; one that is not watched is
// named with the reason.
func (s *Source) Claims() claim.Set {
	s.Sync()
	return s.claims()
}

func (s *Source) claims() claim.Set {
	s.mu.Lock()
	defer s.mu.Unlock()
	set := claim.Set{Source: model.FromUprobe}
	for _, p := range s.books.processes {
		if p.Start == 0 {
			continue // the next sweep knows when it started
		}
		if p.trouble.Kind != "" {
			set.Silent = append(set.Silent, claim.Silent{Process: model.ProcessID{PID: p.PID, StartTicks: p.Start}, Why: p.trouble})
			continue
		}
		s.books.guessChips(p)
		set.Held = append(set.Held, p.Held()...)
	}
	return set
}

// guessChips gives the chip of a process that has opened one only to its
// allocators: there is no other that they could stand for. Where buffers are
// made on other threads nobody names it.
func (b *books) guessChips(p *process) {
	if len(p.Seen) != 1 || p.Late {
		return
	}
	for _, a := range p.allocators {
		if len(a.Chips) == 0 {
			a.Chips = slices.Clone(p.Seen)
			b.noteAllocator(p, a, p.toldAt)
		}
	}
}
