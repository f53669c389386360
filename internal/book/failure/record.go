// Package failure is the record of a request for device memory that failed: what
// was asked for and by which line, the allocator as it was at that moment, why
// the request failed, and what would have made it fit.
//
// Its place in the flow: source/uprobe and the ledgers of libttmon make records
// (FromLedger, or by hand), Judge fills in the verdict; ttmon run prints it,
// ttmond keeps the last ones (package failure/keep), `ttmon why` and the page
// show them.
package failure

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Schema names the JSON of a Record. Fields are only added.
const Schema = "ttmon.failure/1"

// Kind is what failed.
type Kind string

// The kinds.
const (
	NoRoom Kind = "no_room" // an allocator found no hole that is large enough
	Clash  Kind = "clash"   // the circular buffers of a program reach into a buffer of L1
	Trace  Kind = "trace"   // a trace does not fit the trace region
)

// Record is a request that failed.
type Record struct {
	Schema string `json:"schema"`
	// ID names the record in the daemon that keeps it; empty in the account of a
	// run.
	ID   string `json:"id,omitempty"`
	Kind Kind   `json:"kind"`
	// Time is when the request failed that the record is of. Of those that
	// repeat, Count says how many there were, from First to Last.
	Time  time.Time `json:"time"`
	First time.Time `json:"first"`
	Last  time.Time `json:"last"`
	Count uint64    `json:"count"`
	// Uncounted: the process had failures at about the same time that are in no
	// record, for want of room.
	Uncounted bool `json:"-"`
	// Source is how it was seen: "uprobe" or "track" (libttmon).
	Source  string  `json:"source"`
	Process Process `json:"process"`
	Chips   []Chip  `json:"chips"`
	Pool    string  `json:"pool"`
	Request Request `json:"request"`
	// Stack is where the request came from, innermost frame first; empty: not
	// known.
	Stack []ledgerfile.Frame `json:"stack"`
	Tag   string             `json:"tag,omitempty"`
	// Traced says that lines were recorded: what has none came from no line that
	// could be recorded.
	Traced bool `json:"lines_recorded,omitzero"`
	// Allocator tells the allocators of a process apart.
	Allocator uint64 `json:"allocator,omitempty"`
	// SubDevice is the number of the sub-device that the allocator is of; nil: it
	// is of the device, or which one is not known (OfSubDevice).
	SubDevice *int `json:"sub_device,omitempty"`
	// State is the pool at that moment: every block of it. The site of a block is
	// its number in Sites.
	State *blocks.List `json:"state"`
	Sites []Site       `json:"sites"`
	// Siblings are the other pools of the allocator.
	Siblings []Sibling `json:"siblings"`
	// Others are other processes that had memory of these chips.
	Others []Other     `json:"others"`
	Clash  *Collision  `json:"clash,omitempty"`
	Region *Region     `json:"trace_region,omitempty"` // of a trace
	Doubts []DoubtKind `json:"doubts"`

	Verdict Verdict `json:"verdict"`
	// Text is the whole in a sentence, where the record is sent.
	Text string `json:"text,omitempty"`
}

// Process is whose request it was.
type Process struct {
	PID     int    `json:"pid"`
	Start   uint64 `json:"start_ticks"`
	UID     int    `json:"uid"` // -1: not known
	Name    string `json:"name"`
	Command string `json:"cmdline,omitempty"`
	Release string `json:"release,omitempty"` // of tt-metal
}

// Chip is one that the allocator stands for.
type Chip struct {
	ID     uint64 `json:"id,string"`
	Device *int   `json:"device,omitempty"` // kernel index, where it is one of this host
	BusID  string `json:"bus_id,omitempty"`
	Board  string `json:"board,omitempty"`
	Name   string `json:"name,omitempty"` // of the chip on its board: L, R
}

// Request is what was asked for.
type Request struct {
	Bytes     uint64 `json:"bytes,omitzero"` // by the buffer, over all banks; 0: not known
	BankBytes uint64 `json:"bank_bytes"`     // of each bank, rounded as the allocator does
	Page      uint64 `json:"page_bytes,omitzero"`
	// Sharded is nil where it is not known; Shards is how many banks have a part.
	Sharded *bool  `json:"sharded,omitempty"`
	Shards  uint64 `json:"shards,omitzero"`
	// BottomUp says from which end of the bank it is placed; nil: not known.
	BottomUp *bool `json:"bottom_up,omitempty"`
	// Limit is the lowest address that was allowed.
	Limit  uint64  `json:"lowest_address,omitzero"`
	Tensor *Tensor `json:"tensor,omitempty"`
}

// Site is a place in the program that holds blocks of the pool.
type Site struct {
	Number uint32             `json:"site"`
	Tag    string             `json:"tag,omitempty"`
	Stack  []ledgerfile.Frame `json:"stack"` // innermost first
	Tensor *Tensor            `json:"tensor,omitempty"`
}

// Sibling is another pool of the allocator that was asked.
type Sibling struct {
	Pool string `json:"pool"`
	blocks.Geometry
	Used  uint64        `json:"bank_used_bytes"`
	Space *blocks.Space `json:"space"` // nil: what is free is not known
	// Cut is set aside at the low end of every bank.
	Cut uint64 `json:"bank_cut_bytes,omitzero"`
}

// Other is another process with memory of the same chips.
type Other struct {
	PID   int    `json:"pid"`
	Name  string `json:"name"`
	Bytes uint64 `json:"bytes"` // of the pool
	// Bound of Bytes: exact, at_least or unsure.
	Bound string `json:"bound"`
}

// Collision is what a clash is made of, in addresses of a core's L1.
type Collision struct {
	Program uint64 `json:"program"`      // number that tells programs of the process apart
	Reach   uint64 `json:"reach"`        // behind the last circular buffer
	Lowest  uint64 `json:"lowest"`       // address of the lowest buffer; 0: there is none
	Overlap uint64 `json:"bytes"`        // by which they overlap
	Base    uint64 `json:"base_address"` // where the first circular buffer can lie
	// Cores is a rectangle around the cores of the program: x and y of the first
	// and of the last one.
	Cores []int `json:"cores,omitempty"`
}

// DoubtKind is something that a record does not know.
type DoubtKind string

// The doubts.
const (
	StateUnknown  DoubtKind = "state_unknown"   // the process ran before it was watched, or events were lost
	BlocksMissing DoubtKind = "blocks_missing"  // not all blocks are kept: too many, or too many failures
	NoLines       DoubtKind = "no_lines"        // neither the line that asked nor those that hold memory are known
	NoHolderLines DoubtKind = "no_holder_lines" // which lines hold memory is known under ttmon run --stacks only
	LinesMissing  DoubtKind = "lines_missing"   // lines were recorded, and none of those that hold memory are known
	ChipUnknown   DoubtKind = "chip_unknown"
	// SeveralDevices: circular buffers or traces were checked against one of several
	// devices; which one is not known.
	SeveralDevices DoubtKind = "several_devices"
	// PerCore: L1 is given out core by core (HYBRID). The state is that of the core which
	// had no room, or what all cores have at one address; the request may have been for
	// some of these only, and what would have made it fit is not told.
	PerCore DoubtKind = "per_core"
)

// Need is what a bank would have had to give.
func (r *Record) Need() uint64 { return r.Request.BankBytes }

// OfSubDevice reports whether the allocator is that of a sub-device: no other has
// L1 and no DRAM.
func (r *Record) OfSubDevice() bool {
	dram, ok := r.sibling(model.DRAM)
	return r.SubDevice != nil || ok && dram.Capacity == 0 && r.PoolKind() == model.L1
}

// PoolKind is the pool.
func (r *Record) PoolKind() model.Pool {
	p, _ := model.PoolNamed(r.Pool)
	return p
}

// Decode reads a Record.
func Decode(b []byte) (*Record, error) {
	r := new(Record)
	if err := json.Unmarshal(b, r); err != nil {
		return nil, fmt.Errorf("reading the record of a failed allocation: %w", err)
	}
	if r.Schema != Schema {
		return nil, fmt.Errorf("the record of a failed allocation has the schema %q, not %s", r.Schema, Schema)
	}
	if _, ok := model.PoolNamed(r.Pool); !ok {
		return nil, fmt.Errorf("the record of a failed allocation is of the unknown pool %q", r.Pool)
	}
	if r.State == nil {
		return nil, fmt.Errorf("the record of a failed allocation does not say what the allocator held")
	}
	if r.Kind == Clash && r.Clash == nil {
		return nil, fmt.Errorf("the record of a clash does not say what clashed")
	}
	if r.Kind == Trace && r.Region == nil {
		return nil, fmt.Errorf("the record of a trace that does not fit does not say what its region has")
	}
	return r, nil
}
