package shm

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// verdict says what is behind a slot.
type verdict uint8

const (
	undecided verdict = iota
	live              // one live process that maps the region
	contested         // several: containers that share a region and a pid number
	dead              // nobody has that pid and maps the region
	unseen            // nobody for sure; but we may not look at everybody
)

// slotState is what is known about a slot, carried from sweep to sweep.
type slotState struct {
	slot    Slot // as last judged
	verdict verdict
	owners  []*process
	sure    bool // the mapping was seen; else pid, name and start time agree
	doubt   int  // without owners: a process that may be one, and may not be looked at
	at      time.Time
	base    *baseline
	before  *slotState // while undecided: the verdict that does not stand any more
}

// alive reports whether somebody is behind the slot.
func (st *slotState) alive() bool { return st.verdict == live || st.verdict == contested }

// baseline is what a slot held when its owner took it over. A writer finds its
// slot by pid: one that got the pid of a dead writer goes on counting on top
// of the dead one's bytes.
type baseline struct {
	slot Slot
	// exact: the slot was seen at rest between the two owners. Otherwise the
	// dead one may have written after we last looked.
	exact bool
	// suspected: nobody saw another owner. All that the slot held when it was
	// first looked at may be a dead one's.
	suspected bool
}

// inherit decides what of a live owner's slot is a dead one's. old is the slot
// as last seen (nil if never), leaked whether the writer's own count admits
// that somebody died attached. A slot written before its owner started is a
// dead one's, unless nobody can have died here: then the clock was set. Start
// times are rounded down to 10 ms, and no program opens a chip that early in
// its life, so small corrections of the clock do no harm.
func inherit(old *slotState, slot Slot, started time.Time, leaked bool) *baseline {
	before := func(t time.Time) bool { return !t.IsZero() && t.Before(started) }
	if before(slot.Updated) && leaked {
		return &baseline{slot: slot, exact: true}
	}
	// A claim writes the name anew; only an adoption can leave it.
	adopted := old != nil && old.slot.PID == slot.PID && old.slot.Name == slot.Name && before(old.slot.Updated)
	if adopted && (leaked || old.verdict == dead) {
		return &baseline{slot: old.slot, exact: old.verdict == dead}
	}
	return nil
}

// empty reports whether there was nothing to inherit.
func (b *baseline) empty() bool { return b.slot.Bytes == [numPools]uint64{} }

// own takes a dead predecessor's bytes out of a slot, and says what that left
// open.
func (b *baseline) own(slot Slot, pool int) (model.Bytes, model.DoubtKind) {
	v, was := slot.Bytes[pool], b.slot.Bytes[pool]
	written := !slot.Updated.Equal(b.slot.Updated)
	isCB := regionPools[pool] == model.CB
	switch {
	case was == 0:
		return model.ExactBytes(v), ""
	case b.suspected, !b.exact:
		// The truth is between nothing and this.
		return model.BoundBytes(v, model.Unsure), model.SlotMaybeAdopted
	case !written:
		return model.ExactBytes(0), model.SlotAdopted
	case isCB && v != was:
		return model.ExactBytes(v), "" // CB is stored, not added to
	case isCB:
		return model.BoundBytes(v, model.Unsure), model.SlotMaybeAdopted
	case v < was: // it freed more than it recorded
		return model.NoBytes(model.Implausible), model.FigureImpossible
	}
	return model.ExactBytes(v - was), model.SlotAdopted
}

// left is what of the predecessor's bytes is still in the slot.
func (b *baseline) left(slot Slot) (bytes [numPools]uint64) {
	bytes = b.slot.Bytes
	for i, p := range regionPools {
		if p == model.CB && slot.Bytes[i] != bytes[i] {
			bytes[i] = 0 // overwritten
		}
	}
	return bytes
}

// impossible is more than any chip has: a counter that wrapped.
const impossible = 1 << 46

// check drops a figure that cannot be. capacity is the chip's, 0 if unknown.
func check(b model.Bytes, capacity uint64) (model.Bytes, model.DoubtKind) {
	v, _, ok := b.Best()
	if ok && (v > impossible || capacity != 0 && v > capacity+capacity/20) {
		return model.NoBytes(model.Implausible), model.FigureImpossible
	}
	return b, ""
}

// bytesOf turns a slot into figures: its own, checked, with what makes them
// doubtful.
func (st *slotState) bytesOf(capacity Capacity) (b model.PoolBytes, doubts []model.Doubt) {
	add := func(kind model.DoubtKind) {
		if kind == "" {
			return
		}
		d := model.Doubt{Kind: kind}
		if kind == model.SlotAdopted {
			d.Name = st.base.slot.Name
		}
		doubts = model.AddDoubts(doubts, d)
	}
	for i, pool := range regionPools {
		figure := model.ExactBytes(st.slot.Bytes[i])
		if st.base != nil {
			var kind model.DoubtKind
			figure, kind = st.base.own(st.slot, i)
			add(kind)
		}
		checked, kind := check(figure, capacity[pool])
		add(kind)
		b[pool] = checked
	}
	return b, doubts
}

// ghostOf turns bytes that a dead process left into a Ghost.
func ghostOf(slot Slot, bytes [numPools]uint64, heir int) Ghost {
	g := Ghost{PID: int(slot.PID), Name: slot.Name, Slot: slot.Index, Updated: slot.Updated, HeirPID: heir}
	for i, pool := range regionPools {
		g.Bytes[pool], _ = check(model.ExactBytes(bytes[i]), 0)
	}
	return g
}

// Capacity is a chip's physical bytes per pool; 0 where it is not known.
type Capacity [model.NumPools]uint64
