package ledgerfile

import "time"

// Flags of a ledger.
type Flags uint32

// The flags.
const (
	Late     Flags = 1 << iota // attached when allocators were there already
	Full                       // something found no room: Lost counts what
	NoSites                    // some blocks or sites have no tag or stack for lack of room
	StacksOn                   // Python lines are recorded
	NativeOn                   // native frames are recorded
	Ended                      // the process exited cleanly
	PerCore                    // an allocator had several lists of L1, one for each core: their sum is no figure
	lastFlag
)

// Pool is a kind of device memory, as tt-metal numbers its buffer types.
type Pool uint8

// The pools.
const (
	DRAM        Pool = 0
	L1          Pool = 1
	L1Small     Pool = 3
	Trace       Pool = 4
	PoolUnknown Pool = 255
)

// State of a list.
type State uint8

// The states. A closed list stays in the ledger for what it held.
const (
	Unused State = iota
	Open
	Closed
)

// Ledger is a copy of a process's ledger.
type Ledger struct {
	// The writer, by its own account and in its own pid namespace. Only a Holder
	// is to be trusted.
	PID          int
	StartTicks   uint64
	PIDNamespace uint64 // inode of the namespace
	Comm         string

	Started time.Time // when the ledger was made
	Flags   Flags
	Lost    uint64 // blocks and lists that found no room
	Unknown uint64 // events that contradict what was known
	// Unmatched counts allocations in lists that the ledger does not have.
	Unmatched uint64
	Run       string // of which `ttmon run` the process is a part
	Library   string // path of tt-metal's library, as the process sees it
	// TellsEvents means that the process also reports single events; Events is how
	// many it had reported at the time of this copy.
	TellsEvents bool
	Events      uint64

	// Moving says that the ledger was changed while it was copied: each block
	// was there at some moment of that time, though not all at one, and the
	// live sums are made from them. Cut says that the writer stopped in the
	// middle of a change, which is how a killed process ends; the same holds.
	Moving, Cut bool
	Epoch       uint64
	// Memory is about how many bytes this copy takes, and what is made of it.
	Memory uint64

	Chips  []Chip
	Lists  []List // by number; the first one and unused ones are zero
	Sites  []Site // by number; the first one and unused ones are zero
	Blocks []Block
	// Failures are the last requests that failed, by number of their record.
	Failures []Failure

	frames []frameRecord
	nodes  []nodeRecord
	texts  []byte
}

// Chip is a chip that the process has had open.
type Chip struct {
	ID      uint64 // UMD's chip_unique_id
	Logical int    // the number by which the process knows it
	Open    bool
}

// List is one free list: a pool of an allocator. Sizes and addresses are those
// of one bank; all banks hold the same.
type List struct {
	State     State
	Pool      Pool
	Own       bool   // reported by the program's own allocator
	Late      bool   // found in use: what it held before may be missing
	Inherited bool   // a forked child's copy of its parent's: its blocks are those that the child took itself
	Group     uint32 // lists of one allocator have the same
	Banks     uint32 // 0: not known
	Nth       uint32 // of several lists of a pool and allocator
	ID        uint64
	Capacity  uint64 // with Base: 0 and 0 where they are not known
	Base      uint64
	Alignment uint64
	Smallest  uint64
	CutLow    uint64
	CutHigh   uint64
	Chips     []int // numbers of chips that it stands for; empty: not known
	Made      time.Time
	Closed    time.Time // zero while open

	Live, Peak, Total, Left Sum
	PeakTime                time.Time
	Lives                   uint32 // lists added up in this closed one
	Failed                  uint64 // requests that found no room
	FailedBytes             uint64 // the last of them
	SubDevice               uint32 // 1 + the number of the sub-device that the allocator is of; 0: of the device, or not known
}

// Sum is an amount of memory, in bytes of each bank.
type Sum struct{ Bytes, Blocks uint64 }

// Site is what one place of the program (tag and stack) holds of one list.
type Site struct {
	List        int
	Tag         string
	Node        uint32 // for Stack; 0: no stack
	Tensor      string // that its buffers are for: "[1,1,32,32] bfloat16 tile interleaved"; empty: not known
	Kept        bool   // by tt-metal itself, for its program cache, which ends with the device: never a leak
	Live        Sum
	Peak        Sum // at the peak of the list
	Total, Left Sum
	LeftLargest uint64
	LeftOldest  time.Time // zero if nothing was left
	// LeftQuarters says how many of what was left were allocated in each quarter of
	// the process's allocations from the oldest one to the end. A ledger of an older
	// libttmon has none.
	LeftQuarters [4]uint64
}

// Block is a range that is taken in every bank.
type Block struct {
	Address uint64
	Bytes   uint64
	Asked   uint64    // by the buffer, over all banks of a chip; 0: not known
	Born    time.Time // when it was allocated
	Site    int
}

// Frame is one line of a stack.
type Frame struct {
	File     string `json:"file"`           // of a native frame: the library
	Line     int    `json:"line,omitempty"` // 0 of a native frame
	Function string `json:"function,omitempty"`
	Offset   uint32 `json:"offset,omitempty"` // of a native frame: in the library
}
