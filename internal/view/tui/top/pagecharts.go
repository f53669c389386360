package top

import (
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
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
		unit          metric.Form
		style         cells.Style
	}{{"dram", "DRAM", metric.Bytes, cells.Series0}, {"cpu", "CPU of one core", metric.Percent, cells.Series1}, {"l1", "L1", metric.Bytes, cells.Series2}}
	columns := min(max(area.W/minChartWidth, 1), len(list))
	for i, frame := range chart.Frames(bottom, columns, 1) {
		c := list[i]
		s.drawOne(frame, gauge.ProcessKey(id, c.metric), c.title, c.unit, 0, c.style, true)
	}
	return rest
}

// Columns of a device's page: what its list needs, and charts beside it.
const (
	deviceSheet    = 84
	minDeviceChart = 36
)

// drawDeviceCharts draws how a device did over time at the right of its page,
// and returns what is left of the area.
func (s *State) drawDeviceCharts(area cells.Area, d *model.Device) cells.Area {
	var list []*gauge.Gauge
	for _, name := range []string{"dram", "power", "temperature", "activity"} {
		list = append(list, s.gauges.Find(name))
	}
	rows := min(area.H/minChartHeight, len(list))
	if area.W < deviceSheet+minDeviceChart || rows == 0 {
		return area
	}
	at := max(deviceSheet, area.W*11/20)
	for i, frame := range chart.Frames(area.Sub(at, 0, area.W-at, area.H), 1, rows) {
		g := list[i]
		s.drawOne(frame, g.Key(d.BusID), g.Title, g.Form, g.Limit(s.shown, d), cells.Series(i), i == rows-1)
	}
	return area.Sub(0, 0, at-1, area.H)
}

// drawOne draws one line in a frame of its own; limit 0: there is none. Above
// another frame its lower edge has that one's title, and not the times.
func (s *State) drawOne(frame cells.Area, key history.Key, title string, unit metric.Form, limit float64, style cells.Style, times bool) {
	room := chart.Divide(frame.Sub(1, 1, frame.W-2, frame.H-2), false)
	win := s.chart.window(s)
	if s.paused || !s.chart.end.IsZero() {
		win.End = win.End.Add(-win.Step(room.Columns))
	}
	b := make([]history.Bucket, room.Columns)
	c := chart.Chart{
		From: win.From(room.Columns), Step: win.Step(room.Columns),
		Filled: true, Reverse: s.cfg.Top.Charts.Reverse, Cursor: -1, Lines: []chart.Line{{Style: style, Buckets: b}},
	}
	s.hist.Range(b, key, c.From, c.Step)
	_, hi, _ := gauge.Span(b)
	name, per := unit.Axis(max(hi, limit))
	c.Scale = chart.UpTo(limit/per, hi/per)
	c.Scale.Top *= per
	c.Limit = limit
	c.Tick = func(v float64) string { return unit.Tick(v, per) }
	c.Scale = chart.Legible(c.Scale, c.Tick)
	c.Draw(room)
	x := frame.Put(1, 0, " "+title+" "+name+" ", cells.Text)
	frame.Put(x, 0, words.Truncate(s.newest(b, c.Step, unit), frame.W-x-2)+" ", style)
	if times {
		s.chart.drawTimes(s, frame.Sub(1, frame.H-1, frame.W-2, 1), &c, win)
	}
}
