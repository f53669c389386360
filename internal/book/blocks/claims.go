package blocks

import (
	"slices"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// Held is what a process says of each chip that its allocators stand for, as
// claims. Allocators of which no chip is known make one claim of some chip.
func (p *Process) Held() []claim.Held {
	id := model.ProcessID{PID: p.PID, StartTicks: p.Start}
	var chips []uint64
	var lost []*Allocator // whose chips are not known, and that hold something
	for _, a := range p.Allocators {
		for _, c := range a.Chips {
			if !slices.Contains(chips, c) {
				chips = append(chips, c)
			}
		}
		if len(a.Chips) == 0 && slices.ContainsFunc(a.Lists, func(l *List) bool { return l.sum.Blocks > 0 }) {
			lost = append(lost, a)
		}
	}
	var out []claim.Held
	perCore, _ := p.PerCore()
	for _, c := range chips {
		late := p.Late && !slices.Contains(p.Seen, c)
		on := slices.DeleteFunc(slices.Clone(p.Allocators), func(a *Allocator) bool { return !slices.Contains(a.Chips, c) })
		h := claim.Held{Process: id, Chip: claim.Chip{ID: c}, Doubts: p.doubts(on, late, perCore != nil), Partial: p.missed(c)}
		h.Bytes, h.Pools = p.sums(on, late)
		if perCore != nil && perCore.Chip(c) != nil {
			h.Bytes[model.L1], h.Pools[model.L1] = perCore.sums(perCore.Chip(c))
		}
		out = append(out, h)
	}
	if len(lost) > 0 {
		h := claim.Held{
			Process: id, Chip: claim.Chip{Some: true}, Doubts: p.doubts(lost, p.Late, false), Partial: p.missed(0),
		}
		h.Bytes, h.Pools = p.sums(lost, p.Late)
		out = append(out, h)
	}
	return out
}

// HoldsNothing reports whether all allocators of the process are known, and none
// of them has a block. Which chips they stand for does not matter then.
func (p *Process) HoldsNothing() bool {
	return len(p.Allocators) > 0 && p.Exact() && p.Blocks() == 0
}

// doubts says what the figures of allocators leave out. perCore says that L1 is known
// although it is given out core by core.
func (p *Process) doubts(allocators []*Allocator, late, perCore bool) (list []model.Doubt) {
	if late {
		list = append(list, model.Doubt{Kind: model.NoticedLate, PID: p.PID})
	}
	if p.Lost > 0 {
		list = append(list, model.Doubt{Kind: model.EventsLost, PID: p.PID, Count: int(min(p.Lost, 1<<31))})
	}
	if !perCore && slices.ContainsFunc(allocators, (*Allocator).PerCore) {
		list = append(list, model.Doubt{Kind: model.PerCoreL1, PID: p.PID})
	}
	unknown := uint64(0)
	for _, a := range allocators {
		for pool := range model.NumPools {
			for _, l := range a.Pool(pool) {
				unknown += l.sum.AskedUnknown
			}
		}
	}
	if unknown > 0 {
		list = append(list, model.Doubt{Kind: model.RequestUnknown, PID: p.PID, Count: int(min(unknown, 1<<31))})
	}
	return list
}

// bound is how far the sums of a list can be trusted.
func (p *Process) bound(l *List, late bool) model.Bound {
	switch {
	case l.Contradictions > 0:
		return model.Unsure
	case late || p.Lost > 0 || l.Origin == Late:
		return model.AtLeast
	}
	return model.Exact
}

// sums adds the pools of allocators up. What is free is told where one list
// of a pool holds something: the others are those of single chips of a mesh,
// and are not used.
func (p *Process) sums(allocators []*Allocator, late bool) (bytes model.PoolBytes, pools *claim.Pools) {
	pools = &claim.Pools{}
	for pool := range model.NumPools {
		var used, occupied model.Sum
		var current *List
		inUse, whole := 0, true
		for _, a := range allocators {
			if pool == model.L1 && a.PerCore() {
				bytes[pool], current = model.NoBytes(model.Unsupported), nil
				break
			}
			for _, l := range a.Pool(pool) {
				used.Add(l.Used().Doubted(p.bound(l, late)))
				if n, known := l.Occupied(); known {
					occupied.Add(model.BoundBytes(n, p.bound(l, late)))
				} else if l.sum.Blocks > 0 {
					occupied.Miss(model.Absent)
				}
				if l.sum.Blocks > 0 {
					inUse++
				}
				whole = whole && l.Exact() && !l.Inherited && l.Banks > 0
				if current == nil || l.sum.Blocks > 0 || current.sum.Blocks == 0 {
					current = l
				}
			}
		}
		if current == nil {
			continue
		}
		bytes[pool], pools[pool].Occupied, pools[pool].Whole = used.Bytes(), occupied.Bytes(), whole && p.Lost == 0
		if current.Banks == 0 || current.Capacity == 0 {
			continue
		}
		pools[pool].Capacity = model.Value(current.Capacity * current.Banks)
		if space, known := current.Space(); known && inUse <= 1 {
			pools[pool].Free = model.Value(space.Free * current.Banks)
			pools[pool].LargestFree = model.Value(space.Largest * current.Banks)
		}
	}
	return bytes, pools
}

// sums is L1 that is given out core by core. Its buffers of single cores are known by
// what they take, not by what was asked for: so that is what counts as used.
func (l *CoreL1) sums(c *CoreChip) (used model.Bytes, pool claim.Pool) {
	n, holes := l.Used(c), l.Holes(c)
	used = model.ExactBytes(n)
	return used, claim.Pool{
		Occupied: used, Whole: true, Capacity: model.Value(l.Capacity * l.Banks), Free: model.Value(l.Capacity*l.Banks - n),
		LargestFree: model.Value(holes.Lockstep * l.Banks),
		CoreLeast:   model.Value(holes.CoreLeast), CoreMost: model.Value(holes.CoreMost),
	}
}
