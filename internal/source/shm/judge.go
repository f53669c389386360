package shm

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// verdict says whether the owner of a slot is alive.
type verdict uint8

const (
	undecided verdict = iota
	live              // one live process that maps the region
	contested         // several: containers that share a region and a pid
	dead              // no process has that pid and maps the region
	unseen            // none found, but some processes may not be read
)

// slotState is the verdict on a slot, carried from sweep to sweep.
type slotState struct {
	slot    Slot // as last judged
	verdict verdict
	owners  []*process
	sure    bool // the mapping was seen; else pid, name and start time agree
	doubt   int  // without owners: a process that may be one, and may not be read
	at      time.Time
	base    *baseline
	before  *slotState // while undecided: the verdict that no longer holds
}

// alive reports whether the slot belongs to a running process.
func (st *slotState) alive() bool { return st.verdict == live || st.verdict == contested }

// baseline is what a slot held when its owner took it over. A writer finds its
// slot by pid: one that reuses the pid of a dead writer adds to the dead one's
// bytes.
type baseline struct {
	slot Slot
	// exact: the slot was seen at rest between the two owners. Otherwise the dead
	// one may have written after it was last read.
	exact bool
	// suspected: no other owner was seen. All that the slot held when it was first
	// read may be a dead one's.
	suspected bool
}

// findBaseline returns which bytes of a live owner's slot are a dead process's.
// old is the slot as last read (nil if never); leaked means that by the
// writer's own count a process died attached. A slot written before its owner
// started is a dead one's, unless none can have died: then the clock was set.
// Start times are rounded down to 10 ms, and no program opens a chip that early
// in its life, so small corrections of the clock do not matter.
func findBaseline(old *slotState, slot Slot, started time.Time, leaked bool) *baseline {
	before := func(t time.Time) bool { return !t.IsZero() && t.Before(started) }
	if before(slot.Updated) && leaked {
		return &baseline{slot: slot, exact: true}
	}
	// A claim rewrites the name; only an adoption can leave it.
	adopted := old != nil && old.slot.PID == slot.PID && old.slot.Name == slot.Name && before(old.slot.Updated)
	if adopted && (leaked || old.verdict == dead) {
		return &baseline{slot: old.slot, exact: old.verdict == dead}
	}
	return nil
}

// empty reports whether there was nothing to inherit.
func (b *baseline) empty() bool { return b.slot.Bytes == [numPools]uint64{} }

// ownBytes subtracts a dead predecessor's bytes from a slot, and returns what
// is uncertain about the result.
func (b *baseline) ownBytes(slot Slot, pool int) (model.Bytes, model.DoubtKind) {
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

// leftBytes are the predecessor's bytes that are still in the slot.
func (b *baseline) leftBytes(slot Slot) (bytes [numPools]uint64) {
	bytes = b.slot.Bytes
	for i, p := range regionPools {
		if p == model.CB && slot.Bytes[i] != bytes[i] {
			bytes[i] = 0 // overwritten
		}
	}
	return bytes
}

// impossible is more than any chip has: the counter has wrapped.
const impossible = 1 << 46

// checkFigure drops an impossible figure. capacity is the chip's, 0 if unknown.
func checkFigure(b model.Bytes, capacity uint64) (model.Bytes, model.DoubtKind) {
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
			figure, kind = st.base.ownBytes(st.slot, i)
			add(kind)
		}
		checked, kind := checkFigure(figure, capacity[pool])
		add(kind)
		b[pool] = checked
	}
	return b, doubts
}

// ghostOf turns bytes that a dead process left into a StaleSlot.
func ghostOf(slot Slot, bytes [numPools]uint64, successorPID int) StaleSlot {
	g := StaleSlot{PID: int(slot.PID), Name: slot.Name, Slot: slot.Index, Updated: slot.Updated, SuccessorPID: successorPID}
	for i, pool := range regionPools {
		g.Bytes[pool], _ = checkFigure(model.ExactBytes(bytes[i]), 0)
	}
	return g
}

// Capacity is a chip's physical bytes per pool; 0 where it is not known.
type Capacity [model.NumPools]uint64
