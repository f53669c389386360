package compare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// Line is a line of code that differs.
type Line struct {
	runs.Line
	PeakA   uint64 `json:"peak_a_bytes"`
	PeakB   uint64 `json:"peak_b_bytes"`
	AtPeakA uint64 `json:"at_peak_a_bytes"` // when the run held the most of the pool
	AtPeakB uint64 `json:"at_peak_b_bytes"`
	HeldA   uint64 `json:"held_a_bytes"` // in the end
	HeldB   uint64 `json:"held_b_bytes"`
	AllocsA uint64 `json:"allocations_a"`
	AllocsB uint64 `json:"allocations_b"`
}

// grown is by how much the peak of the line grew; by what it holds in the end, where
// that is the same.
func (l *Line) grown() int64 {
	return cmp.Or(int64(l.PeakB)-int64(l.PeakA), int64(l.HeldB)-int64(l.HeldA), int64(l.AllocsB)-int64(l.AllocsA))
}

// AddLines finds the lines of a side, of the runs that have known ones: of several
// runs it is the median of each line, where those of more than half are known.
func (s *Side) AddLines(find func(*runs.Process) (runs.ProcessLines, bool)) {
	var known []*runs.Lines
	for i := range s.list {
		var list []runs.ProcessLines
		for k := range s.list[i].Processes {
			if l, ok := find(&s.list[i].Processes[k]); ok {
				list = append(list, l)
			}
		}
		if l := runs.LinesOf(list); l != nil {
			known = append(known, l)
		}
	}
	if 2*len(known) > len(s.list) {
		s.Lines = medianLines(known)
	}
}

// medianLines are the usual lines of several runs.
func medianLines(list []*runs.Lines) *runs.Lines {
	if len(list) == 1 {
		return list[0]
	}
	out := &runs.Lines{Used: map[runs.Line]runs.LineUse{}, PeakOnly: true}
	for _, l := range list {
		out.Lost, out.Cut = max(out.Lost, l.Lost), out.Cut || l.Cut
		for at := range l.Used {
			out.Used[at] = runs.LineUse{}
		}
	}
	for at := range out.Used {
		u := runs.LineUse{
			AtPeak: medianUse(list, at, func(u runs.LineUse) uint64 { return u.AtPeak }),
			Held:   medianUse(list, at, func(u runs.LineUse) uint64 { return u.Held }),
			Allocs: medianUse(list, at, func(u runs.LineUse) uint64 { return u.Allocs }),
		}
		u.Peak = u.AtPeak
		out.Used[at] = u
	}
	return out
}

func medianUse(list []*runs.Lines, at runs.Line, of func(runs.LineUse) uint64) uint64 {
	values := make([]uint64, len(list))
	for i, l := range list {
		values[i] = of(l.Used[at])
	}
	slices.Sort(values)
	n := len(values)
	if n%2 == 0 {
		return values[n/2-1]/2 + values[n/2]/2
	}
	return values[n/2]
}

// compareLines finds the lines that differ. Where those of one side are not known
// nothing is said: unknown is not nothing.
func (c *Comparison) compareLines() {
	if c.A.Lines == nil || c.B.Lines == nil {
		return
	}
	c.Lines = []Line{}
	if c.A.Lines.PeakOnly || c.B.Lines.PeakOnly {
		c.A.Lines, c.B.Lines = c.A.Lines.AtPeak(), c.B.Lines.AtPeak()
	}
	seen := map[runs.Line]bool{}
	for _, used := range []map[runs.Line]runs.LineUse{c.A.Lines.Used, c.B.Lines.Used} {
		for at := range used {
			if seen[at] {
				continue
			}
			seen[at] = true
			a, inA := c.A.Lines.Used[at]
			b, inB := c.B.Lines.Used[at]
			if !inA && c.A.Lines.Cut || !inB && c.B.Lines.Cut { // it may have been among those that are missing
				continue
			}
			if a != b {
				c.Lines = append(c.Lines, Line{at, a.Peak, b.Peak, a.AtPeak, b.AtPeak, a.Held, b.Held, a.Allocs, b.Allocs})
			}
		}
	}
	slices.SortFunc(c.Lines, func(x, y Line) int {
		return cmp.Or(cmp.Compare(y.grown(), x.grown()), cmp.Compare(x.File, y.File), cmp.Compare(x.Line.Line, y.Line.Line),
			cmp.Compare(x.Tag, y.Tag), cmp.Compare(x.Pool, y.Pool), cmp.Compare(x.Function, y.Function))
	})
}

// blame is the line that the change of a peak is most due to: the one that changed
// most in the same direction between the two moments of the peak.
func (c *Comparison) blame(k RemarkKind, change float64) (line *runs.Line, by float64) {
	pool, ok := strings.CutSuffix(string(k), ".peak")
	if !ok {
		return nil, 0
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		d := float64(l.AtPeakB) - float64(l.AtPeakA)
		if l.Pool == pool && d*change > 0 && d/change > by/change {
			line, by = &l.Line, d
		}
	}
	return line, by
}
