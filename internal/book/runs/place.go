package runs

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Frame is a line of code, or a place in a library.
type Frame = ledgerfile.Frame

// Place is a place in the program: a tag, a stack, or both.
type Place struct {
	Tag     string    `json:"tag,omitempty"`
	Stack   []Frame   `json:"stack,omitempty"` // innermost first
	Amount            // at the peak, or left
	Largest uint64    `json:"largest_bytes,omitempty"` // of the blocks that were left
	Oldest  time.Time `json:"oldest_at,omitzero"`      // when the oldest of them was allocated
	// Quarters says how many of them were allocated in each quarter of the program's
	// allocations from the oldest one to the end; Grew that some were in each.
	Quarters []uint64 `json:"quarters,omitempty"`
	Grew     bool     `json:"grew,omitempty"`
	Held     Amount   `json:"-"` // now, for profiles
	Total    Amount   `json:"-"` // ever, for profiles
	line     *Frame   // that tells it from others; nil: not compared yet
}

// Larger orders places, the largest first.
func Larger(a, b *Place) int { return cmp.Compare(b.Bytes, a.Bytes) }

// Quarters is how many parts a run is divided into in which blocks were made.
const Quarters = blocks.Quarters

// AddQuarters adds counts up.
func AddQuarters(a, b []uint64) []uint64 {
	if len(a) < Quarters {
		a = append(a, make([]uint64, Quarters-len(a))...)
	}
	for i, n := range b {
		a[i] += n
	}
	return a
}

// Where is the line of the program that a place stands for: among others, the
// one that ByLine found.
func (p *Place) Where() (Frame, bool) {
	if p.line != nil {
		return *p.line, true
	}
	return callsite.Where(p.Stack)
}

// ByLine adds up places with the same tag and line, largest first. Of places that
// share a line it is the caller at which their stacks part.
func ByLine(places []Place) []Place {
	type key struct {
		tag  string
		line Frame
	}
	stacks := make([][]Frame, len(places))
	for i := range places {
		stacks[i] = places[i].Stack
	}
	lines := callsite.Lines(stacks)
	var out []Place
	at := map[key]int{}
	for n, p := range places {
		k := key{p.Tag, lines[n]}
		if len(p.Stack) > 0 {
			p.line = &lines[n]
		}
		p.Quarters = slices.Clone(p.Quarters)
		i, ok := at[k]
		if !ok {
			at[k] = len(out)
			out = append(out, p)
			continue
		}
		q := &out[i]
		q.Add(p.Amount)
		q.Held.Add(p.Held)
		q.Total.Add(p.Total)
		q.Largest = max(q.Largest, p.Largest)
		if p.Oldest.Before(q.Oldest) {
			q.Oldest = p.Oldest
		}
		q.Quarters = AddQuarters(q.Quarters, p.Quarters)
		q.Grew = q.Grew || p.Grew
	}
	sorted.Stable(out, Larger)
	return out
}
