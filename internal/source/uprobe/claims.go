package uprobe

import (
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
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
	hosts, boot := s.hostRows(), proc.BootTime()
	for _, p := range s.accounts.processes {
		if p.Start == 0 || p.unplaced {
			continue // the next sweep knows when it started, and discover whose its lists are
		}
		if p.trouble.Kind != "" {
			set.Silent = append(set.Silent, claim.Silent{Process: model.ProcessID{PID: p.PID, StartTicks: p.Start}, Why: p.trouble})
			continue
		}
		s.accounts.guessChips(p)
		s.claimWork(&set, p, s.claimHost(&set, p, hosts[uint32(p.PID)], boot))
		held := p.Held()
		if len(held) == 0 && p.HoldsNothing() {
			set.Nothing = append(set.Nothing, model.ProcessID{PID: p.PID, StartTicks: p.Start})
		}
		for _, h := range held {
			if bytes, ok := p.circularBuffers(h.Chip.ID); ok && !h.Chip.Some && s.followsPrograms(p.PID) {
				h.Bytes[model.CB], h.CB = bytes, model.CBLargest
			}
			set.Held = append(set.Held, h)
		}
	}
	return set
}

// circularBuffers is how much of each core's L1 the largest program of a process
// takes, on a chip. It is not known of programs that were laid out before the
// process was watched, nor on which of several devices a program is.
func (p *process) circularBuffers(chip uint64) (model.Bytes, bool) {
	inUse := 0
	for _, a := range p.Allocators {
		if slices.ContainsFunc(a.Lists, func(l *blocks.List) bool { return l.Usage().Blocks > 0 }) {
			inUse++
		}
	}
	if p.mayHaveChanged(chip) || inUse > 1 || len(p.programs) >= maxPrograms {
		return model.Bytes{}, false
	}
	largest, _ := p.Largest() // none was laid out: nothing is taken
	return model.ExactBytes(largest), true
}

// followsPrograms reports whether the libraries of a process have the functions
// that lay out circular buffers. With mu.
func (s *Source) followsPrograms(pid int) bool {
	for _, of := range s.known[pid] {
		l := s.libraries[of]
		if l == nil || !l.has(atProgram) || !l.has(cbMarked) && !l.has(cbTracked) {
			return false
		}
	}
	return len(s.known[pid]) > 0
}

// has reports whether a site is watched in a library.
func (l *library) has(site kind) bool {
	return slices.ContainsFunc(l.probes, func(p probe) bool { return p.site == site })
}

// guessChips gives the chip of a process that has opened one only to its
// allocators: there is no other that they could stand for. Buffers made on other
// threads do not name their chip.
func (b *accounts) guessChips(p *process) {
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
