package runs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
)

// LineUse is what a line of a run held, over all its chips.
type LineUse struct {
	Peak   uint64 // the most
	AtPeak uint64 // when the run held the most of the pool
	Held   uint64 // in the end
	Allocs uint64 // blocks that it allocated
}

// Lines are the lines of a run, as its recording has them, or ttmond.
type Lines struct {
	Used  map[Line]LineUse
	Peaks map[string]uint64            // the most that all lines together held, by pool
	Chips map[uint64]map[string]uint64 // the same, on each chip
	// Devices is the same on each device, by its index; nil: it is not known.
	Devices map[int]map[string]uint64
	Lost    uint64 // events that are missing
	// PeakOnly: what each line held when the run held the most is known, and not the
	// most that the line held.
	PeakOnly bool
	// Cut: lines that held less than all these are missing.
	Cut bool
}

// What ttmond knows of the lines of a process.
type (
	Line         = atpeak.Line
	ProcessLines = atpeak.ProcessLines
	PeakLine     = atpeak.PeakLine
)

// NoLines is why the lines of code of a run are not known. The set is closed.
type NoLines string

// The reasons.
const (
	// NotTraced: it did not run under ttmon run --stacks. From outside ttmond sees what
	// is allocated, but not by which line: it would have to stop the program at each
	// allocation to walk its stack.
	NotTraced NoLines = "not_traced"
	OtherUser NoLines = "other_user" // only the user of the run and root may see them
)

// PeakLines are the lines of a run at its peak, by pool, those that held the most first.
type PeakLines struct {
	Lines []PeakLine `json:"lines"`
	Cut   bool       `json:"cut"`  // lines that held less are left out
	Lost  uint64     `json:"lost"` // allocations and frees that are missing
}

// maxPeakLines is how many lines an answer for one run has.
const maxPeakLines = 16

// AddLines completes the run with the lines of its processes, as far as find knows
// them; why is the reason where it knows none.
func (r *Run) AddLines(find func(*Process) (ProcessLines, bool), why NoLines) {
	var list []ProcessLines
	for i := range r.Processes {
		if l, ok := find(&r.Processes[i]); ok {
			list = append(list, l)
		}
	}
	sum := LinesOf(list)
	if sum == nil {
		r.Lines, r.NoLines = nil, why
		return
	}
	r.Lines, r.NoLines = &PeakLines{Lines: []PeakLine{}, Cut: sum.Cut, Lost: sum.Lost}, ""
	for at, u := range sum.Used {
		if u.AtPeak > 0 {
			r.Lines.Lines = append(r.Lines.Lines, PeakLine{Line: at, AtPeak: u.AtPeak, Held: u.Held, Allocs: u.Allocs})
		}
	}
	slices.SortFunc(r.Lines.Lines, func(a, b PeakLine) int {
		return cmp.Or(cmp.Compare(a.Pool, b.Pool), cmp.Compare(b.AtPeak, a.AtPeak), cmp.Compare(a.File, b.File), cmp.Compare(a.Line.Line, b.Line.Line), cmp.Compare(a.Tag, b.Tag))
	})
	if len(r.Lines.Lines) > maxPeakLines {
		r.Lines.Lines, r.Lines.Cut = r.Lines.Lines[:maxPeakLines], true
	}
}

// LinesQuery asks for those of a process.
func (p *Process) LinesQuery() *atpeak.Query {
	return &atpeak.Query{PID: p.PID, StartTicks: p.StartTicks, Since: p.Start.UTC().Truncate(time.Second)}
}

// LinesOf adds up the lines of the processes of a run, each at its own peak; nil:
// those of none are known.
func LinesOf(list []ProcessLines) *Lines {
	if len(list) == 0 {
		return nil
	}
	out := &Lines{Used: map[Line]LineUse{}, PeakOnly: true}
	for i := range list {
		for _, l := range list[i].Lines {
			u := out.Used[l.Line]
			u.AtPeak, u.Held, u.Allocs = u.AtPeak+l.AtPeak, u.Held+l.Held, u.Allocs+l.Allocs
			u.Peak = u.AtPeak
			out.Used[l.Line] = u
		}
		out.Lost, out.Cut = out.Lost+list[i].Lost, out.Cut || list[i].Cut
	}
	return out
}

// AtPeak are the same lines, of which only what they held at the peak counts.
func (l *Lines) AtPeak() *Lines {
	if l.PeakOnly {
		return l
	}
	c := *l
	c.PeakOnly, c.Used = true, maps.Clone(l.Used)
	for at, u := range c.Used {
		u.Peak = u.AtPeak
		c.Used[at] = u
	}
	return &c
}
