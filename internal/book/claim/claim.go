// Package claim holds what sources say about device memory.
//
// It stands between the sources and collect in the data flow: a source returns
// a Set ("process P holds B bytes of pool O on chip C", "a dead process left G
// bytes on chip C", "I would have seen process P and have nothing of it, since
// …"), each with its doubts, and never sees a snapshot. collect places the
// chips, believes a claim as far as its author may speak, chooses one source
// per process and device, and adds up.
package claim

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Set is what one source says at one moment. It and all it points to are
// immutable: a source may hand out the same one again.
type Set struct {
	Source model.Source
	// Held speaks of all chips of a process that it speaks of: what it does not
	// claim of such a process is nothing.
	Held []Held
	// Nothing are processes of which the source has seen every allocation, and
	// that hold nothing, on any chip.
	Nothing []model.ProcessID
	Left    []Left
	Chips   []Chip
	// Silent are processes that this source would have heard, and has nothing of.
	Silent []Silent
	// Work is what processes had their chips do, Hosts what they asked for.
	Work  []Work
	Hosts []Host
	// Listens are the processes whose programs the source sees when chips report
	// them, or why it does not.
	Listens []Listens
	// Known are what the source itself knows of the processes it speaks of,
	// for those that no other source can describe.
	Known []model.Process
	// Describe looks up processes that the source speaks of by numbers of its
	// own; nil where its numbers are the host's.
	Describe func(pids []int) []model.Process
	Err      *model.Doubt // why it could not be asked at all
}

// Held is the memory that one live process holds on one chip.
type Held struct {
	Process model.ProcessID
	Chip    Chip // by id, or by the process's own number
	Bytes   model.PoolBytes
	// Pools is the allocator itself, where the source sees it; nil where not.
	Pools  *Pools
	CB     model.CBMeaning
	Doubts []model.Doubt
	// Partial: what it says is known not to be all that the process holds. A
	// better-informed source is preferred, whatever its rank.
	Partial bool
	// Together: what it holds is in the chip's Together, with others'.
	Together bool
}

// Pools is the state of the allocators that a process has on one chip.
type Pools [model.NumPools]Pool

// Pool is one pool of an allocator, over all banks of the chip.
type Pool struct {
	Occupied model.Bytes // what the blocks take
	// Whole: all blocks of the allocators that were found are known, though the
	// process may have others.
	Whole       bool
	Capacity    model.Reading[uint64]
	Free        model.Reading[uint64]
	LargestFree model.Reading[uint64]
	// CoreLeast and CoreMost are the largest hole of the core that has least room,
	// and of the one that has most, where L1 is given out core by core.
	CoreLeast, CoreMost model.Reading[uint64]
}

// Chip names a chip, and says what a source knows of it as a whole.
type Chip struct {
	ID uint64 // UMD's unique id; 0 with ByNumber
	// ByNumber: the process counts its chips itself, and means its Number-th.
	// Visible is its TT_VISIBLE_DEVICES, empty if it has none or may not be
	// read.
	ByNumber bool
	Number   int
	Visible  string
	// OnDevice: somewhere on the device with the kernel index Number.
	OnDevice bool
	// Some: one or several of those that the process has open, and nothing
	// says which. Such a claim is placed only where there is no choice.
	Some bool

	// The rest is for Set.Chips.
	Region  string // path of the accounting file
	Logical uint32 // the number that the writer who attached last gives it
	// Since is when the file was last made or attached to; zero if not known.
	Since  time.Time
	CB     model.CBMeaning
	Doubts []model.Doubt
	// Why is why nothing can be said of the chip; Known where something can.
	Why model.Status
	// Together is what several processes hold there; what each of them holds
	// is not known.
	Together model.PoolBytes
	// Holders are the live processes that account for it.
	Holders []model.ProcessID
}

// Left is what a dead process left in the accounts of a chip.
type Left struct {
	Chip    uint64
	Region  string
	PID     int // in the dead one's own pid namespace
	Name    string
	Bytes   model.PoolBytes
	Updated time.Time // when it last wrote; zero if not known
	Mapped  bool      // live processes account in the same file
}

// Silent is a process that a source would have heard: of all of its chips, or
// of one.
type Silent struct {
	Process model.ProcessID
	Chip    uint64 // 0: all
	Why     model.Doubt
}
