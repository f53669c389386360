package compare

import (
	"cmp"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/runs"
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

// compareLines finds the lines that differ. Where those of one side are not known
// nothing is said: unknown is not nothing.
func (c *Comparison) compareLines() {
	if c.A.Lines == nil || c.B.Lines == nil {
		return
	}
	c.Lines = []Line{}
	seen := map[runs.Line]bool{}
	for _, used := range []map[runs.Line]runs.LineUse{c.A.Lines.Used, c.B.Lines.Used} {
		for at := range used {
			if seen[at] {
				continue
			}
			seen[at] = true
			a, b := c.A.Lines.Used[at], c.B.Lines.Used[at]
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
