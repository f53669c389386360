package top

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
)

// Columns of a block: what bars with their figures need, and what a chart
// beside them has at the least.
const (
	minBars   = 36
	minSpark  = 16
	sparkRows = 4 // beside the four bars
)

// spark draws how one value of a device went at the right of its block, and
// returns the columns that are left of it.
func (s *State) spark(box cells.Area, d *model.Device) (left int) {
	g := s.gauges.Find(s.cfg.Top.Devices.Chart)
	w := min(max(box.W*2/5, minSpark), box.W-minBars-1)
	if g == nil || w < minSpark || box.H < sparkRows {
		return box.W
	}
	left = box.W - w
	plot := box.Sub(left, 0, w-1, sparkRows)
	win := s.chart.window(s)
	columns := chart.Columns(plot)
	step := win.Step(columns)
	if s.paused || !s.chart.end.IsZero() {
		win.End = win.End.Add(-step)
	}
	c := chart.Chart{From: win.From(columns), Step: step, Filled: true, Reverse: s.cfg.Top.Charts.Reverse}
	b := s.chart.buffer(0, columns)
	s.hist.Range(b, g.Key(d.BusID), c.From, c.Step)
	c.Lines = []chart.Line{{Style: cells.Series0, Buckets: b}}
	s.chart.scale(s, spec{gauge: g}, &c, g.Limit(s.shown, d))
	plot.Put(0, 0, g.Title, cells.Axis)
	c.DrawPlot(plot)
	return left
}
