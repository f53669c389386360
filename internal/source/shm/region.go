package shm

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Sweep is the state of the regions of a host at one moment. It and all it
// points to are immutable; what did not change is shared with the sweep before.
type Sweep struct {
	Time      time.Time
	Regions   []*Region  // by chip id, then path
	Processes []*Process // those that map a region or use a device; by pid
	Err       error      // why the host's /dev/shm could not be read
}

// Region is one accounting file and what can be trusted in it.
type Region struct {
	ID       uint64 // chip_unique_id, from the file's name
	DeviceID uint32 // logical id as the last attacher saw it
	Path     string // as seen from the watched host; below /proc/<pid> for a container's own
	Owner    int    // uid: only it and root can read the region, or account in it
	Deleted  bool   // the name is gone; processes still account in the file
	Version  uint32 // of the layout; 0 if unreadable

	// Why is why nothing is known about it; Known where something is.
	Why    model.Status
	Doubts []model.Doubt // about its figures as a whole
	// Since is when it was created or last attached to; zero if unknown.
	Since time.Time

	Uses []*Use // by pid
	// Together is what several processes hold in slots that they share; what each
	// of them holds is unknown.
	Together   model.PoolBytes
	StaleSlots []StaleSlot // by slot: what dead processes left
	Unknown    []StaleSlot // by slot: owners that cannot be seen from here, dead or alive
	Mapped     []int       // pids of the live processes known to map it

	Diagnostics Diagnostics

	file inode
}

// Use is one live process's memory on one chip.
type Use struct {
	PID        int // on the watched host
	StartTicks uint64
	Slot       int // −1: attached, and nothing recorded
	Bytes      model.PoolBytes
	Updated    time.Time // when it last wrote; old is not dead
	Doubts     []model.Doubt
	CB         model.CBMeaning
	Together   bool // what it holds is in Region.Together, with others'
}

// StaleSlot is what a dead process left in a slot.
type StaleSlot struct {
	PID     int    // in the dead process's own namespace
	Name    string // raw
	Slot    int
	Bytes   model.PoolBytes
	Updated time.Time
	// SuccessorPID is the live process that reuses the dead one's pid and slot and
	// adds to its bytes; 0 if there is none.
	SuccessorPID int
}

// Diagnostics are the writer's own sums, which are wrong in known ways. They
// are for doctor and for bug reports, never for display as memory.
type Diagnostics struct {
	Refs, Active uint32 // providers and slots by the writer's count
	Slots        int    // occupied
	Odd          int    // slots with impossible pids
	// Unaccounted is header total minus the sum of all slots, per pool: above
	// zero after a slot table overflow or lost stale slots. Absent where the header
	// keeps no sum.
	Unaccounted [numPools]int64
}

// Process is a process and whether its memory is accounted for.
type Process struct {
	PID        int
	StartTicks uint64
	StartTime  time.Time
	NSPID      int // innermost
	UID        int // effective; −1 if unknown
	Name       string

	// User: it was named as a user of a device.
	User bool
	// Accounts: it maps a region. Silent says of the others why nothing is
	// known about their memory.
	Accounts bool
	Silent   model.Doubt
	// ShutOut are chips whose region it cannot account in, although it
	// accounts for others.
	ShutOut []model.Doubt

	Release model.Reading[string] // of ttnn or tt-metal
	Type    model.Reading[string]
}
