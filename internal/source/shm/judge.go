package shm

import (
	"fmt"
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

// alive tells whether somebody is behind the slot.
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

// empty tells whether there was nothing to inherit.
func (b *baseline) empty() bool { return b.slot.Bytes == [numPools]uint64{} }

const (
	whyInherited = "it took over the slot of a process that died, and how much that one left is not known"
	whySuspected = "its slot may hold what a dead process of the same pid left: somebody died on the chip before ttmon looked; ttmond, which is always there, tells them apart"
	whyCB        = "the same figure stood there when a dead process left it"
	whyNegative  = "it freed more than it recorded"
)

// own takes a dead predecessor's bytes out of a slot.
func (b *baseline) own(slot Slot, pool int) model.Reading[uint64] {
	v, was := slot.Bytes[pool], b.slot.Bytes[pool]
	written := !slot.Updated.Equal(b.slot.Updated)
	isCB := regionPools[pool] == model.CB
	switch {
	case was == 0:
		return model.Value(v)
	case b.suspected:
		return model.Missing[uint64](model.Stale, whySuspected)
	case !b.exact:
		return model.Missing[uint64](model.Stale, whyInherited)
	case !written:
		return model.Value[uint64](0)
	case isCB && v != was:
		return model.Value(v) // CB is stored, not added to
	case isCB:
		return model.Missing[uint64](model.Stale, whyCB)
	case v < was:
		return model.Missing[uint64](model.Implausible, whyNegative)
	}
	return model.Value(v - was)
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
func check(r model.Reading[uint64], capacity uint64) model.Reading[uint64] {
	v, ok := r.Get()
	switch {
	case !ok:
		return r
	case v > impossible:
		return model.Missing[uint64](model.Implausible, fmt.Sprintf("the region says %d bytes: its counter wrapped", v))
	case capacity != 0 && v > capacity+capacity/20:
		return model.Missing[uint64](model.Implausible, fmt.Sprintf("the region says %d bytes, the chip has %d", v, capacity))
	}
	return r
}

// bytesOf turns a slot into readings: its own figures, checked.
func (st *slotState) bytesOf(capacity Capacity) (b model.PoolBytes) {
	for i, pool := range regionPools {
		r := model.Value(st.slot.Bytes[i])
		if st.base != nil {
			r = st.base.own(st.slot, i)
		}
		b[pool] = check(r, capacity[pool])
	}
	return b
}

// ghostOf turns bytes that a dead process left into a Ghost.
func ghostOf(slot Slot, bytes [numPools]uint64, heir int) Ghost {
	g := Ghost{PID: int(slot.PID), Name: slot.Name, Slot: slot.Index, Updated: slot.Updated, HeirPID: heir}
	for i, pool := range regionPools {
		g.Bytes[pool] = check(model.Value(bytes[i]), 0)
	}
	return g
}

// Capacity is a chip's physical bytes per pool; 0 where it is not known.
type Capacity [model.NumPools]uint64
