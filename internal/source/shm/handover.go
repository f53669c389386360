package shm

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Adoption is what a Reader knows about the slot of a live process: what a dead
// one had left in it when the process adopted it. It is for the next Reader,
// which can no longer find out.
type Adoption struct {
	Dev       uint64           `json:"dev"` // of the region's file
	Ino       uint64           `json:"ino"`
	Slot      int              `json:"slot"`
	PID       int              `json:"pid"` // of the owner, on the host
	Start     uint64           `json:"start"`
	Left      [numPools]uint64 `json:"left"` // all zero: the slot was its own from the start
	Updated   time.Time        `json:"updated,omitzero"`
	Name      string           `json:"name,omitempty"`
	LeftPID   int              `json:"left_pid,omitempty"` // of the dead one, in its own pid namespace
	Exact     bool             `json:"exact,omitempty"`
	Suspected bool             `json:"suspected,omitempty"`
}

// slotOwner is a slot and its owner.
type slotOwner struct {
	region inode
	slot   int
	owner  model.ProcessID
}

// Adoptions lists what is known about the slots of live processes.
func (r *Reader) Adoptions() (list []Adoption) {
	for _, reg := range r.regions {
		for i, st := range reg.states {
			if st == nil || st.verdict != live {
				continue
			}
			a := Adoption{Dev: reg.Dev, Ino: reg.Ino, Slot: i, PID: st.owners[0].PID, Start: st.owners[0].StartTicks}
			if b := st.base; b != nil {
				a.Left, a.Updated, a.Exact, a.Suspected = b.slot.Bytes, b.slot.Updated, b.exact, b.suspected
				a.LeftPID, a.Name = int(b.slot.PID), b.slot.Name
			}
			list = append(list, a)
		}
	}
	return list
}

// Restore loads the adoptions of a previous Reader. Call it before the first
// Read.
func (r *Reader) Restore(list []Adoption) {
	r.restored = make(map[slotOwner]*baseline, len(list))
	for _, a := range list {
		key := slotOwner{inode{Dev: a.Dev, Ino: a.Ino}, a.Slot, model.ProcessID{PID: a.PID, StartTicks: a.Start}}
		b := &baseline{
			slot:  Slot{Index: a.Slot, PID: int32(a.LeftPID), Bytes: a.Left, Updated: a.Updated, Name: a.Name},
			exact: a.Exact, suspected: a.Suspected,
		}
		if b.empty() {
			b = nil
		}
		r.restored[key] = b
	}
}
