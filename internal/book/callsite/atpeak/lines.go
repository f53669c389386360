// Package atpeak keeps which lines of a program held how much device memory when it
// held the most: from the ledger that libttmon keeps in a process, after that has
// exited.
//
// Its place in the flow: ttmond adds what processes leave, the API answers it to
// their users, and ttmon diff names the line that a peak grew by.
package atpeak

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Bounds of what a process can make us keep. Names are what its program chose.
const (
	maxSites    = 4096 // whose stacks are read
	maxLines    = 128  // of a pool
	maxFile     = 256  // bytes of a path: its end
	maxName     = 96   // of a function or a tag
	maxBytes    = 1 << 50
	unknownChip = -1
)

// Line is a line of a program that allocates device memory, with its tag and pool.
type Line struct {
	Pool     string `json:"pool"`
	Tag      string `json:"tag,omitempty"`
	File     string `json:"file,omitempty"`
	Line     int    `json:"line,omitempty"`
	Function string `json:"function,omitempty"`
}

// Query asks for the lines of a process.
type Query struct {
	PID        int       `param:"pid" help:"of the process" required:""`
	StartTicks uint64    `param:"start" help:"its start_ticks" required:""`
	Since      time.Time `param:"since" help:"when it began: pids and start_ticks repeat from boot to boot"`
}

// Schema names the JSON of ProcessLines.
const Schema = "ttmon.lines/1"

// ProcessLines are the lines of one process, as ttmond answers /v1/lines.
type ProcessLines struct {
	Schema string     `json:"schema"`
	Lines  []PeakLine `json:"lines"` // by pool, those that held the most first
	Cut    bool       `json:"cut"`   // lines that held less are left out
	Lost   uint64     `json:"lost"`  // allocations and frees that are missing
}

// PeakLine is what a line held when its process held the most of the pool.
type PeakLine struct {
	Line
	AtPeak uint64 `json:"at_peak_bytes"`
	Held   uint64 `json:"held_bytes"` // in the end, or now
	Allocs uint64 `json:"allocations"`
}

// Of finds the lines of a process in its ledger; false: it names none.
func Of(l *ledgerfile.Ledger) (out ProcessLines, ok bool) {
	out = ProcessLines{Schema: Schema, Lines: []PeakLine{}, Lost: l.Lost}
	weights := tops(l)
	sites := make([]int, 0, len(l.Sites))
	for i := range l.Sites {
		if s := &l.Sites[i]; s.List > 0 && s.List < len(l.Lists) && s.Total.Blocks > 0 {
			sites = append(sites, i)
		}
	}
	at := func(i int) uint64 { return amount(l, i, l.Sites[i].Peak, weights[l.Sites[i].List]) }
	slices.SortStableFunc(sites, func(a, b int) int { return cmp.Compare(at(b), at(a)) })
	if len(sites) > maxSites {
		sites, out.Cut = sites[:maxSites], true
	}
	index := map[Line]int{}
	for _, i := range sites {
		s := &l.Sites[i]
		line, known := lineOf(l, s)
		if line.Pool == "" {
			continue
		}
		ok = ok || known
		k, again := index[line]
		if !again {
			k = len(out.Lines)
			index[line] = k
			out.Lines = append(out.Lines, PeakLine{Line: line})
		}
		x, chips := &out.Lines[k], uint64(max(len(l.Lists[s.List].Chips), 1))
		x.AtPeak += at(i)
		x.Held += amount(l, i, s.Live, chips) + amount(l, i, s.Left, chips)
		x.Allocs += s.Total.Blocks
	}
	shorten(&out)
	return out, ok
}

// tops says for how many chips a list is the one with the highest peak of its pool.
// A program that opens its devices again has another list each time.
func tops(l *ledgerfile.Ledger) []uint64 {
	type place struct {
		chip int
		pool ledgerfile.Pool
	}
	top := map[place]int{}
	for i := range l.Lists {
		x := &l.Lists[i]
		if x.State == ledgerfile.Unused {
			continue
		}
		chips := x.Chips
		if len(chips) == 0 {
			chips = []int{unknownChip}
		}
		for _, chip := range chips {
			at := place{chip, x.Pool}
			if old, found := top[at]; !found || peak(x) > peak(&l.Lists[old]) {
				top[at] = i
			}
		}
	}
	weights := make([]uint64, len(l.Lists))
	for _, i := range top {
		weights[i]++
	}
	return weights
}

func peak(x *ledgerfile.List) uint64 { return min(x.Peak.Bytes, maxBytes) * uint64(max(x.Banks, 1)) }

// amount is what a site holds on so many chips. A ledger can say what it likes: it is
// less than any sum would overflow at.
func amount(l *ledgerfile.Ledger, site int, s ledgerfile.Sum, chips uint64) uint64 {
	banks := uint64(max(l.Lists[l.Sites[site].List].Banks, 1))
	if s.Bytes > maxBytes/banks {
		return 0
	}
	return s.Bytes * banks * chips
}

// lineOf is the line that a site stands for; known: it has a tag or a stack.
func lineOf(l *ledgerfile.Ledger, s *ledgerfile.Site) (line Line, known bool) {
	pool, ok := blocks.PoolOf(l.Lists[s.List].Pool)
	if !ok {
		return line, false
	}
	line = Line{Pool: pool.String(), Tag: begin(s.Tag)}
	if f, found := callsite.Where(l.Stack(s.Node)); found {
		line.File, line.Line, line.Function = end(f.File), f.Line, begin(f.Function)
	}
	return line, line.Tag != "" || line.File != ""
}

func begin(s string) string { return s[:min(len(s), maxName)] }

// end is the end of a path, which says more than its beginning.
func end(s string) string { return s[max(len(s)-maxFile, 0):] }

// shorten sorts the lines, and leaves out those of each pool that held least.
func shorten(p *ProcessLines) {
	slices.SortFunc(p.Lines, func(a, b PeakLine) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(b.AtPeak, a.AtPeak), cmp.Compare(b.Held, a.Held), cmp.Compare(a.File, b.File),
			cmp.Compare(a.Line.Line, b.Line.Line), cmp.Compare(a.Tag, b.Tag), cmp.Compare(a.Function, b.Function))
	})
	n := map[string]int{}
	all := len(p.Lines)
	p.Lines = slices.DeleteFunc(p.Lines, func(x PeakLine) bool {
		n[x.Pool]++
		return n[x.Pool] > maxLines
	})
	p.Cut = p.Cut || len(p.Lines) < all
}
