// Package apitype declares what ttmond answers to questions about itself and about
// buffers, once for the daemon that writes it and the clients that read it.
package apitype

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
)

// LateHeader is in an answer with a snapshot that is older than the client wants it.
const LateHeader = "Ttmon-Late"

// Health is how the daemon is doing.
type Health struct {
	Status      string         `json:"status"`   // "ok", or "late" if there are problems: then the answer has status 503
	Problems    []Problem      `json:"problems"` // what does not work as it should
	Warnings    []Problem      `json:"warnings"` // what works, and needs attention
	PID         int            `json:"pid"`
	Version     string         `json:"version"`
	Uptime      float64        `json:"uptime_s"`
	SnapshotAge *float64       `json:"snapshot_age_s"` // null before the first
	Watchers    int64          `json:"watchers"`
	Goroutines  int            `json:"goroutines"`
	HeapBytes   uint64         `json:"heap_bytes"`
	MemoryLimit uint64         `json:"memory_limit_bytes"` // GOMEMLIMIT; 0 for none
	Descriptors Descriptors    `json:"descriptors"`
	Budgets     []budget.State `json:"budgets"`
	LostLines   uint64         `json:"lost_log_lines"`
	Pause       *float64       `json:"takeover_pause_s"` // how long clients waited while this ttmond took over; null: it did not
	Ledger      Ledger         `json:"ledger"`
	AllocSocket *AllocSocket   `json:"alloc_socket,omitempty"` // figures of the allocation server
	Uprobe      *Watch         `json:"uprobe,omitempty" see:"all"`
	Sources     []SourceHealth `json:"sources"` // of the snapshots, and what keeps them
}

// SourceHealth is how a source is doing.
type SourceHealth struct {
	Name string  `json:"name"`
	Late bool    `json:"late"`   // see problems
	Took float64 `json:"took_s"` // when it was last asked, or so far
}

// Descriptors are the open files of the daemon.
type Descriptors struct {
	Open  int `json:"open"`
	Limit int `json:"limit"`
}

// Problem is one thing that is wrong.
type Problem struct {
	Part   string `json:"part"` // PartAllocServer, "snapshots", a source
	Reason string `json:"reason"`
}

// PartAllocServer is the part of ttmond that serves the programs which report to it.
const PartAllocServer = "alloc_server"

// AddSource adds how a source is doing: what it did last, or does since, took
// so long.
func (h *Health) AddSource(name string, took, limit time.Duration, doing string) {
	late := took > limit
	h.Sources = append(h.Sources, SourceHealth{Name: name, Late: late, Took: took.Seconds()})
	if late {
		h.Problems = append(h.Problems, Problem{name, fmt.Sprintf("%s %v", doing, took.Round(100*time.Millisecond))})
	}
}

// AddRun adds how a source of the collector is doing: it took so long, or is at
// work since a time.
func (h *Health) AddRun(name string, took time.Duration, since, now time.Time, limit time.Duration) {
	if since.IsZero() {
		h.AddSource(name, took, limit, "the last time it took")
	} else {
		h.AddSource(name, max(now.Sub(since), 0), limit, "has not answered for")
	}
}

// WatchState says whether allocators are watched through the kernel.
type WatchState string

// The states of the watching.
const (
	WatchOn          WatchState = "on"
	WatchStarting    WatchState = "starting" // programs that ran before are still being found
	WatchOff         WatchState = "off"      // by the configuration
	WatchUnavailable WatchState = "unavailable"
	WatchFailed      WatchState = "failed" // it was on
)

// Watch is how the watching of allocators through the kernel is doing.
type Watch struct {
	State     WatchState     `json:"state"`
	Reason    string         `json:"reason,omitempty"` // why it is not on
	Late      string         `json:"late,omitempty"`   // why new programs are noticed late
	Waits     bool           `json:"waits,omitempty"`  // what programs enqueue and wait for is seen, too
	Processes int            `json:"processes"`
	Libraries []WatchLibrary `json:"libraries,omitempty"`
	Events    uint64         `json:"events"`
	Lost      uint64         `json:"lost_events"`
	Detached  []int          `json:"let_go,omitempty"` // processes that allocate too often
}

// WatchLibrary is a library of tt-metal that is watched, or why it is not.
type WatchLibrary struct {
	Path   string `json:"path" see:"owner"` // others get its last part
	Reason string `json:"reason,omitempty"`
	// Unseen are the kinds of failed allocations that its release lacks a function
	// for: no_room, clash, trace.
	Unseen []string `json:"unseen_failures,omitempty"`
}

// AllocSocket are figures about the allocation server.
type AllocSocket struct {
	Connections int64  `json:"connections"`
	Accepted    uint64 `json:"accepted"`
	Bytes       uint64 `json:"bytes"`
	Replies     uint64 `json:"replies"`
	Dropped     uint64 `json:"dropped_replies"` // for clients that do not read
	Rejected    uint64 `json:"rejected_frames"`
	Skipped     uint64 `json:"skipped_bytes"`
	// Ending are processes that have exited and whose last messages are being read.
	Ending       int64  `json:"ending"`
	HurriedEnds  uint64 `json:"hurried_ends"`   // of those that have, the ones that were not read to the end
	LostLogLines uint64 `json:"lost_log_lines"` // of users who caused too many
}

// Ledger are figures about the ledger itself.
type Ledger struct {
	Processes int    `json:"processes"`
	Buffers   int    `json:"buffers"`
	Events    uint64 `json:"events"` // since the start, handovers included
	Leaks     uint64 `json:"leaks"`  // leftovers reported since the start
}

// Buffers are live buffers that a process reported, as far as they were asked for.
type Buffers struct {
	Schema     string   `json:"schema"`
	PID        int      `json:"pid"`
	StartTicks uint64   `json:"start_ticks"`
	Total      int      `json:"total"` // of those that match
	TotalBytes uint64   `json:"total_bytes"`
	Buffers    []Buffer `json:"buffers"`
}

// Buffer is a live buffer in /v1/processes/PID/buffers.
type Buffer struct {
	Kind   string    `json:"kind"`
	Device int32     `json:"device"`         // in the process's own numbering
	Index  *int      `json:"index"`          // kernel index of the host's device; null if it is none, or not known
	Chip   string    `json:"chip,omitempty"` // on a device with several
	Pool   string    `json:"pool"`
	ID     *uint64   `json:"id"` // address, or kernel id; null if it is another user's
	Size   uint64    `json:"size_bytes"`
	Born   time.Time `json:"allocated"`
	Age    float64   `json:"age_s"`
}
