package runreport

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// What is left when a device is closed is one of two things: what the program
// still used, which ttnn releases then, or what it lost on its way. From outside,
// whether a tensor is reachable cannot be seen; what can be seen is when the blocks that
// are left were made. A line that left some in each quarter of the run grew step by
// step. Weights that are loaded once do not, nor do the results of the last step.
// Quarters are of the program's allocations, not of its time: loading takes long and
// allocates little. A line with fewer than four blocks has not grown; a program that
// does nothing but load has, and so has a cache that fills up.

// liveQuarters counts the blocks of a site that were alive when the process ended,
// by when they were made. Of a device that was never closed there is only the time.
func liveQuarters(l *ledgerfile.Ledger, site int) []uint64 {
	var first, end time.Time
	for i := range l.Blocks {
		b := &l.Blocks[i]
		if b.Born.After(end) {
			end = b.Born
		}
		if b.Site == site && (first.IsZero() || b.Born.Before(first)) {
			first = b.Born
		}
	}
	out := make([]uint64, runs.Quarters)
	for i := range l.Blocks {
		if b := &l.Blocks[i]; b.Site == site && end.After(first) {
			out[blocks.Quarter(b.Born.Sub(first), end.Sub(first))]++
		}
	}
	return out
}

// markGrown says which lines of a pool grew step by step. Places that share a line are
// judged together.
func markGrown(p *runs.Blocks) {
	type key struct {
		tag  string
		line runs.Frame
	}
	stacks := make([][]runs.Frame, len(p.LeftBy))
	for i := range p.LeftBy {
		stacks[i] = p.LeftBy[i].Stack
	}
	lines := callsite.Lines(stacks)
	sums := map[key][]uint64{}
	for i := range p.LeftBy {
		k := key{p.LeftBy[i].Tag, lines[i]}
		sums[k] = runs.AddQuarters(sums[k], p.LeftBy[i].Quarters)
	}
	p.Grown = runs.Amount{}
	for i := range p.LeftBy {
		x := &p.LeftBy[i]
		if x.Grew = !slices.Contains(sums[key{x.Tag, lines[i]}], 0); x.Grew {
			p.Grown.Add(x.Amount)
		}
	}
}
