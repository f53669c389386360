package failure

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Summary is a Record in a list: without the state of the allocator.
type Summary struct {
	ID        string    `json:"id"`
	Kind      Kind      `json:"kind"`
	Time      time.Time `json:"time"`
	First     time.Time `json:"first"`
	Last      time.Time `json:"last"`
	Count     uint64    `json:"count"`
	Source    string    `json:"source"`
	Process   Process   `json:"process"`
	Chips     []Chip    `json:"chips"`
	Pool      string    `json:"pool"`
	BankBytes uint64    `json:"bank_bytes"`
	// Bytes were asked for over all banks; 0: not known. Of a trace that does not fit
	// its region: what all traces need.
	Bytes uint64 `json:"bytes,omitzero"`
	// Line is the line that asked; nil: not known.
	Line  *ledgerfile.Frame `json:"line,omitempty"`
	Cause Cause             `json:"cause"`
	Text  string            `json:"text,omitempty"` // a sentence, where it is sent
}

// Summary is the record in a list.
func (r *Record) Summary() Summary {
	s := Summary{
		ID: r.ID, Kind: r.Kind, Time: r.Time, First: r.First, Last: r.Last, Count: r.Count, Source: r.Source, Process: r.Process,
		Chips: r.Chips, Pool: r.Pool, BankBytes: r.Need(), Bytes: r.Request.Bytes, Cause: r.Verdict.Cause,
	}
	if r.Kind == Trace {
		s.Bytes = r.Region.Needed
	}
	if line, ok := callsite.Where(r.Stack); ok {
		s.Line = &line
	}
	return s
}

// List is the answer about the failures that are kept.
type List struct {
	Schema   string    `json:"schema"`
	Failures []Summary `json:"failures"` // newest first
}

// ListSchema names the JSON of a List.
const ListSchema = "ttmon.failures/1"
