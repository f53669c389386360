package top

import (
	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Rows of the charts of a process, and what a page has at the least so that
// there are any.
const (
	processChart    = 9
	minProcessSheet = 18
)

// drawProcessCharts draws what a process held and used over time at the bottom
// of its page, and returns what is left of the area.
func (s *State) drawProcessCharts(area cells.Area, id model.ProcessID) cells.Area {
	if area.H < minProcessSheet+processChart || s.shown == nil {
		return area
	}
	rest, bottom := area.Bottom(min(area.H-minProcessSheet, 14))
	list := []struct {
		metric, title string
		unit          gauge.Unit
		style         cells.Style
	}{{"dram", "DRAM", gauge.Bytes, cells.Series0}, {"cpu", "CPU of one core", gauge.Percent, cells.Series1}, {"l1", "L1", gauge.Bytes, cells.Series2}}
	columns := min(max(area.W/minChartWidth, 1), len(list))
	for i, frame := range chart.Frames(bottom, columns, 1) {
		c := list[i]
		s.drawProcessChart(frame, gauge.ProcessKey(id, c.metric), c.title, c.unit, c.style)
	}
	return rest
}

func (s *State) drawProcessChart(frame cells.Area, key history.Key, title string, unit gauge.Unit, style cells.Style) {
	room := chart.Divide(frame.Sub(1, 1, frame.W-2, frame.H-2), false)
	win := s.chart.window(s)
	if s.paused || !s.chart.end.IsZero() {
		win.End = win.End.Add(-win.Step(room.Columns))
	}
	b := make([]history.Bucket, room.Columns)
	c := chart.Chart{
		From: win.From(room.Columns), Step: win.Step(room.Columns), Gap: s.hist.Spacing() * 5 / 2,
		Filled: true, Reverse: s.cfg.Top.Charts.Reverse, Cursor: -1, Lines: []chart.Line{{Style: style, Buckets: b}},
	}
	s.hist.Range(b, key, c.From, c.Step)
	_, hi, _ := gauge.Span(b)
	name, per := unit.Axis(hi, s.scale())
	c.Scale = chart.UpTo(0, hi/per)
	c.Scale.Top *= per
	c.Tick = func(v float64) string { return unit.Tick(v, per, s.scale()) }
	c.Scale = chart.Legible(c.Scale, c.Tick)
	c.Draw(room)
	now := words.Nothing
	if v, bound, ok := heldAt(b, len(b)-1); ok {
		now = words.Mark(bound) + unit.Say(v, s.scale())
	}
	x := frame.Put(1, 0, " "+title+" "+name+" ", cells.Text)
	frame.Put(x, 0, now+" ", style)
	s.chart.drawTimes(s, frame.Sub(1, frame.H-1, frame.W-2, 1), &c, win)
}
