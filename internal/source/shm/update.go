package shm

import (
	"math/bits"
	"slices"
)

// slotSet is a set of slots, by index.
type slotSet uint64

func (s *slotSet) add(i int)     { *s |= 1 << i }
func (s slotSet) has(i int) bool { return s&(1<<i) != 0 }

// before counts the slots of s below i.
func (s slotSet) before(i int) int { return bits.OnesCount64(uint64(s) & (1<<i - 1)) }

// all iterates over the slots of s.
func (s slotSet) all(yield func(int) bool) {
	for ; s != 0; s &= s - 1 {
		if !yield(bits.TrailingZeros64(uint64(s))) {
			return
		}
	}
}

// update is how the result of a region is updated while only figures change:
// the usual case, in which its slots need not be judged again. The zero update
// is for a region where that cannot be done, because its result may change
// without a sign. What has a sign makes the region dirty, which comes first: a
// process that maps it or owns a slot ends, or maps other files; another
// capacity, path or name; a verdict that is due.
type update struct {
	possible bool
	slots    slotSet         // each of one live process, and on its own in the result
	uses     [numSlots]int32 // where in Uses each of them is
}

// newUpdate returns how a result that was just built is updated.
func newUpdate(reg *region, result *Region) update {
	up := update{possible: true}
	for i, u := range result.Uses {
		if u.Slot < 0 {
			continue
		}
		// What a dead process left in a slot is in StaleSlots, too.
		if st := reg.states[u.Slot]; st.verdict == live && st.base == nil {
			up.slots.add(u.Slot)
			up.uses[u.Slot] = int32(i)
		}
	}
	return up
}

// updateResult updates the result of a region of which only figures changed. It
// returns false if the region must be judged.
func (r *Reader) updateResult(reg *region) bool {
	if !reg.update.possible || reg.renewed&^reg.update.slots != 0 {
		return false
	}
	next := *reg.result
	next.Diagnostics = diagnose(reg.file)
	if next.Diagnostics.overflowed() != reg.result.Diagnostics.overflowed() {
		return false
	}
	next.Uses = slices.Clone(next.Uses)
	failures := r.releases.failures
	for i := range reg.renewed.all {
		st := reg.states[i]
		if !r.verdictHolds(reg, st, *reg.slot(i)) {
			return false
		}
		u := r.liveUse(reg, st)
		u.interpret(r.releases.meaningOf(reg.parsed.Layout, st.owners[0]))
		next.Uses[reg.update.uses[i]] = u
	}
	reg.update.possible = r.releases.failures == failures
	reg.result, r.stale = &next, true
	return true
}
