package chart

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// label is a line's name and newest value at the right of a chart.
type label struct {
	line  *Line
	value float64
	bound model.Bound
	row   int
}

// nameLines writes each line's label and newest value beside its end. Labels
// stand in the order of their values; where two would meet they make room for
// each other, and where there is no room for all the middle ones are left out.
func (c *Chart) nameLines(r Room) {
	var list []label
	for i := range c.Lines {
		l := &c.Lines[i]
		if v, bound, ok := newest(l.Buckets); ok && l.Label != "" {
			row := r.Plot.H - 1 - c.Scale.row(v, r.Plot.H*dotsY)/dotsY
			list = append(list, label{l, v, bound, row})
		}
	}
	for _, l := range spread(list, r.labels.H) {
		r.labels.Put(1, l.row, words.Truncate(c.labelText(l, r.labels.W-1), r.labels.W-1), l.line.Style)
	}
}

// labelText is "2 3.0", or the name alone where there is no room for the value.
func (c *Chart) labelText(l label, width int) string {
	if c.Value == nil {
		return l.line.Label
	}
	if text := l.line.Label + " " + words.Mark(l.bound) + c.Value(l.value); words.Width(text) <= width {
		return text
	}
	return l.line.Label
}

// spread gives labels rows of their own in a column of the given height, as
// near to the rows they want as their order allows.
func spread(list []label, height int) []label {
	slices.SortStableFunc(list, func(a, b label) int { return cmp.Compare(b.value, a.value) })
	for len(list) > height {
		list = slices.Delete(list, len(list)/2, len(list)/2+1)
	}
	for i := range list { // downwards: nobody stands on the one above
		if i > 0 {
			list[i].row = max(list[i].row, list[i-1].row+1)
		}
	}
	for i, floor := len(list)-1, height-1; i >= 0; i-- { // and back up from the bottom
		list[i].row = min(list[i].row, floor)
		floor = list[i].row - 1
	}
	return list
}

func newest(b []history.Bucket) (v float64, bound model.Bound, ok bool) {
	for i := len(b) - 1; i >= 0; i-- {
		if b[i].State == history.Sampled {
			return float64(b[i].Last), b[i].Bound, true
		}
	}
	return 0, model.Exact, false
}
