package recording

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Kind is what a record tells.
type Kind uint8

// The kinds of records. Numbers are part of the format.
const (
	KindSnapshot  Kind = 1 // its JSON
	KindEvent     Kind = 3
	KindProcess   Kind = 4 // a process whose blocks are told begins
	KindList      Kind = 5 // a list of blocks, new or changed
	KindSite      Kind = 6 // a place in a program
	KindAlloc     Kind = 7
	KindFree      Kind = 8
	KindRequested Kind = 9  // the bytes that the buffer of a block requested became known
	KindClear     Kind = 10 // a list gave up all its blocks
	KindClosed    Kind = 11 // a list ended
	KindEnded     Kind = 12 // a process ended
	KindLost      Kind = 13 // events of a process were missed
	kindHeld      Kind = 14 // at the start of a key block: the live blocks of a list
	KindOutput    Kind = 15
	KindMeta      Kind = 16
	kindStart     Kind = 17 // ends the part of a key block that tells what holds
	KindFailure   Kind = 18 // a request for memory that failed, with the allocator as it was
	KindPrograms  Kind = 19 // programs that ran on a chip, one by one
)

// Meta is what a recording is of. It can be told again, when more is known.
type Meta struct {
	Version  string        `json:"ttmon"`
	Host     string        `json:"host,omitempty"`
	Started  time.Time     `json:"started"`
	Interval time.Duration `json:"interval_ns,omitempty"`
	Command  []string      `json:"command,omitempty"`
	PID      int           `json:"pid,omitempty"`       // of the command
	ExitCode *int          `json:"exit_code,omitempty"` // nil: it runs, or there was none
	Reason   string        `json:"reason,omitempty"`    // why ttmond kept it
}

// Process is a process whose blocks are recorded.
type Process struct {
	ID      uint32 `json:"id"` // in this recording
	PID     int    `json:"pid"`
	Start   uint64 `json:"start_ticks"`
	Name    string `json:"name,omitempty"`
	Release string `json:"release,omitempty"`
	Method  Method `json:"method"`
	Late    bool   `json:"late,omitempty"` // it ran before it was watched
}

// Method is how the blocks of a process are known.
type Method string

// Methods.
const (
	ByLedger   Method = "ledger" // libttmon tells every allocation and free
	ByUprobe   Method = "uprobe" // ttmond sees every one through the kernel, and tells it
	BySampling Method = "looks"  // live blocks were compared at each interval: what came and went in between is not recorded
)

// List is a pool of an allocator.
type List struct {
	ID        uint32          `json:"id"`
	Process   uint32          `json:"process"`
	Allocator uint64          `json:"allocator"`
	Pool      string          `json:"pool"`
	Geometry  blocks.Geometry `json:"geometry"`
	Cut       uint64          `json:"cut,omitempty"`
	Late      bool            `json:"late,omitempty"`
	Chips     []uint64        `json:"chips"`
}

// Site is a place in a program.
type Site struct {
	ID    uint32             `json:"id"`
	Tag   string             `json:"tag,omitempty"`
	Stack []ledgerfile.Frame `json:"stack,omitempty"` // innermost first
}

// Output is a line that a program printed.
type Output struct {
	Stream int    // 1 or 2
	Text   string // without the end of the line
}

// Move is a block that came into a list, or is gone from it.
type Move struct {
	List  *List
	Block blocks.Block
	Gone  bool
}

// BytesOfChip is what the block takes from one chip.
func (m *Move) BytesOfChip() uint64 { return m.Block.Size * max(m.List.Geometry.Banks, 1) }

// Record is one thing that a recording tells. Which fields are set depends on
// the kind.
type Record struct {
	Time    time.Time
	Kind    Kind
	Event   *model.Event
	Meta    *Meta
	Process *Process
	List    *List
	Site    *Site
	ID      uint32       // of the list (Alloc, Free, Asked, Clear, Closed) or process (Ended, Lost)
	Block   blocks.Block // Alloc; Free and Asked: address, and the block that it was
	Again   bool         // Alloc: the block is older; it is told again behind a part that is damaged
	// Moves are all blocks that come or go with the record, by whichever kind of it, in
	// that order: first those that go. They hold until the next record is read.
	Moves   []Move
	Lost    uint64 // events, in all
	Output  Output
	Failure *failure.Record // nil: it cannot be read here
	// Programs are nil where they cannot be read here.
	Programs *Programs
}
