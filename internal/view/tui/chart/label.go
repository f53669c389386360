package chart

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// label is a line's name and newest value at the right of a chart.
type label struct {
	line  *Line
	value float64
	bound model.Bound
	age   time.Duration // of the value, where it is not known any more
	row   int
}

// nameLines writes each line's label and newest value beside its end. Labels
// stand in the order of their values; where two would meet they make room for
// each other, and where there is no room for all the middle ones are left out.
func (c *Chart) nameLines(r Room) {
	var list []label
	for i := range c.Lines {
		l := &c.Lines[i]
		if b, age, ok := Newest(l.Buckets, c.Step); ok && l.Label != "" {
			row := r.Plot.H - 1 - c.Scale.row(float64(b.Last), r.Plot.H*dotsY)/dotsY
			list = append(list, label{l, float64(b.Last), b.Bound, age, row})
		}
	}
	for _, l := range spread(list, r.labels.H) {
		style := l.line.Style
		if l.age > 0 {
			style = cells.Faint
		}
		r.labels.Put(1, l.row, words.Truncate(c.labelText(l, r.labels.W-1), r.labels.W-1), style)
	}
}

// labelText is "2 3.0", or the name alone where there is no room for the value.
// A line that has ended has the time since then instead.
func (c *Chart) labelText(l label, width int) string {
	if l.age > 0 {
		return l.line.Label + " –" + Age(l.age)
	}
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
	for i := range list { // downwards: no label covers the one above
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

// Newest is the last bucket of a line that has a value, and how long ago that
// was where it is not known any more; ok is false where none has.
func Newest(b []history.Bucket, step time.Duration) (found history.Bucket, age time.Duration, ok bool) {
	for i := len(b) - 1; i >= 0; i-- {
		switch b[i].State {
		case history.Sampled, history.Held:
			return b[i], age, true
		case history.Gap, history.Away:
			age += step
		}
	}
	return found, 0, false
}

// Age is a time in as few letters as a label has: "41s", "15m", "3h", "2d".
func Age(d time.Duration) string {
	switch {
	case d < 2*time.Minute:
		return strconv.Itoa(int(d.Seconds())) + "s"
	case d < 2*time.Hour:
		return strconv.Itoa(int(d.Minutes())) + "m"
	case d < 48*time.Hour:
		return strconv.Itoa(int(d.Hours())) + "h"
	}
	return strconv.Itoa(int(d.Hours()/24)) + "d"
}
