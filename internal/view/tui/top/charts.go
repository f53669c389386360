package top

import (
	"cmp"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// chartArea is the middle part of the main page, and the page of charts.
type chartArea struct {
	sel     int           // the selected chart
	end     time.Time     // of the time shown; zero: now
	zoomed  bool          // the user chose the span; until then it grows up to the one configured
	at      time.Time     // under the cursor, in all charts; zero: no cursor
	shown   chart.Window  // drawn last
	column  time.Duration // of a plot column drawn last
	buckets [][]history.Bucket
}

// spec is one chart: a gauge of one or several devices, or several gauges of
// one unit.
type spec struct {
	gauge   *gauge.Gauge
	more    []*gauge.Gauge
	devices []*model.Device
	single  bool // a chart per device
}

func (s *State) specs() []spec {
	var out []spec
	list := s.dev.list(s)
	// A device keeps its place and its style, whatever order the area above has.
	slices.SortFunc(list, func(a, b *model.Device) int { return cmp.Compare(a.Index, b.Index) })
	for _, name := range s.metrics() {
		w, err := s.parseChart(name)
		if err != nil {
			continue // was checked when it was set
		}
		of := slices.DeleteFunc(slices.Clone(list), func(d *model.Device) bool { return !d.AmongNamed(w.devices) })
		if s.cfg.Top.Charts.By != "device" {
			out = append(out, spec{gauge: w.gauges[0], more: w.gauges[1:], devices: of})
			continue
		}
		for _, d := range of {
			out = append(out, spec{gauge: w.gauges[0], more: w.gauges[1:], devices: []*model.Device{d}, single: true})
		}
	}
	return out
}

// metrics are those chosen. By default a tall screen has room for more than
// the usual two.
func (s *State) metrics() []string {
	chosen := s.cfg.Top.Charts.Metrics
	usual := config.Default().Top.Charts.Metrics
	if !slices.Equal(chosen, usual) || s.page != nil || s.cfg.Top.Charts.By == "device" || s.plan().charts < fullCharts {
		return chosen
	}
	return append(usual, "temperature", "activity")
}

// timeKeys choose the time that charts show.
func timeKeys() []binding {
	return []binding{
		{keys: []tui.Key{"+", "="}, foot: "Zoom in", help: "charts: shorter span", do: func(s *State) []tui.Effect { s.chart.zoom(s, 1); return nil }},
		{keys: []tui.Key{"-", "_"}, foot: "Zoom out", help: "charts: longer span", do: func(s *State) []tui.Effect { s.chart.zoom(s, -1); return nil }},
		{keys: []tui.Key{",", "shift-left", "["}, foot: "Earlier", help: "charts: earlier", do: func(s *State) []tui.Effect { s.chart.pan(s, -1); return nil }},
		{keys: []tui.Key{".", "shift-right", "]"}, foot: "Later", help: "charts: later", do: func(s *State) []tui.Effect { s.chart.pan(s, 1); return nil }},
	}
}

func chartKeys() []binding {
	zoom := timeKeys()
	zoom[0].keys, zoom[1].keys = append(zoom[0].keys, "z"), append(zoom[1].keys, "Z")
	return append(zoom, []binding{
		{keys: []tui.Key{"d"}, foot: "By device", help: "charts: a chart per metric with all devices, or one per device", do: (*State).toggleBy},
		{keys: []tui.Key{"s"}, foot: "Scale", help: "charts: scale up to the limit, or fitted", do: (*State).toggleScale},
	}...)
}

func (s *State) toggleBy() []tui.Effect {
	c := &s.cfg.Top.Charts
	if c.By == "device" {
		c.By = "metric"
	} else {
		c.By = "device"
	}
	s.chart.sel = 0
	return nil
}

func (s *State) toggleScale() []tui.Effect {
	c := &s.cfg.Top.Charts
	if c.Scale == "fit" {
		c.Scale = "limit"
	} else {
		c.Scale = "fit"
	}
	return nil
}

// live goes back to the present.
func (a *chartArea) live() { a.end, a.at = time.Time{}, time.Time{} }

func (a *chartArea) zoom(s *State, in int) {
	s.cfg.Top.Charts.Span = config.Duration(chart.Zoom(a.span(s), in))
	a.zoomed = true
}

// pan moves the time shown by a quarter of the span, as far as there is history.
func (a *chartArea) pan(s *State, by int) {
	oldest, newest := s.hist.Span()
	if newest.IsZero() {
		return
	}
	span := a.span(s)
	end := a.window(s).End.Add(time.Duration(by) * span / 4)
	if earliest := oldest.Add(span); end.Before(earliest) {
		end = earliest
	}
	if !end.Before(newest) {
		a.end = time.Time{}
		return
	}
	a.end = end
}

// span is the time shown. A run that has just begun fills its charts all the same.
func (a *chartArea) span(s *State) time.Duration {
	chosen := time.Duration(s.cfg.Top.Charts.Span)
	if a.zoomed || s.shown == nil {
		return chosen
	}
	oldest, _ := s.hist.Span()
	return chart.Grow(chosen, s.shown.Time.Sub(oldest))
}

func (a *chartArea) window(s *State) chart.Window {
	w := chart.Window{End: a.end, Span: a.span(s)}
	if w.End.IsZero() && s.shown != nil {
		w.End = s.shown.Time
	}
	return w
}

// move moves the cursor, or from chart to chart.
func (a *chartArea) move(s *State, m widget.Motion) {
	later := time.Duration(1)
	if s.cfg.Top.Charts.Reverse {
		later = -1
	}
	switch m {
	case widget.Up:
		a.sel = max(a.sel-1, 0)
	case widget.Down:
		a.sel = max(min(a.sel+1, len(s.specs())-1), 0)
	case widget.Left:
		a.step(s, -later)
	case widget.Right:
		a.step(s, later)
	case widget.PageUp:
		a.pan(s, -2)
	case widget.PageDown:
		a.pan(s, 2)
	case widget.First:
		a.pan(s, -1<<20)
	case widget.Last:
		a.live()
	}
}

// step moves the cursor by a column and takes the charts along at their edge.
func (a *chartArea) step(s *State, by time.Duration) {
	end := a.shown.End
	if a.at.IsZero() {
		a.at = end
		return
	}
	a.at = a.at.Add(by * a.column)
	if a.at.After(end) {
		a.pan(s, 1)
	} else if a.at.Before(end.Add(-a.shown.Span + a.column)) {
		a.pan(s, -1)
	}
	win := a.window(s)
	oldest := win.End.Add(-win.Span + a.column)
	if a.at.After(win.End) {
		a.at = win.End
	} else if a.at.Before(oldest) {
		a.at = oldest
	}
}

// Sizes of a chart, frame included.
const (
	minChartWidth  = 40
	minChartHeight = 7
)

// draw draws as many charts as there is room for, the selected one among them.
func (a *chartArea) draw(s *State, area cells.Area) {
	list := s.specs()
	if area.H < 4 || area.W < 20 || len(list) == 0 {
		return
	}
	columns := min(len(list), max(area.W/minChartWidth, 1))
	rows := (len(list) + columns - 1) / columns
	if area.H >= fullCharts && s.page == nil && len(list) > 2 && rows == 1 {
		rows, columns = 2, (len(list)+1)/2 // high enough for two rows
	}
	rows = min(rows, max(area.H/minChartHeight, 1))
	if full := columns * rows; len(list) < full {
		columns = (len(list) + rows - 1) / rows
	}
	a.sel = min(a.sel, len(list)-1)
	start := 0
	if room := columns * rows; len(list) > room {
		start = min(a.sel/columns*columns, len(list)-room)
	}
	for i, frame := range chart.Frames(area, columns, rows) {
		if start+i < len(list) {
			a.drawChart(s, frame, list[start+i], start+i, start+i+columns >= len(list) || i/columns == rows-1)
		}
	}
}

// drawChart draws one chart into its frame.
func (a *chartArea) drawChart(s *State, frame cells.Area, sp spec, index int, bottom bool) {
	labels := !sp.single && len(sp.devices) > 1 || len(sp.more) > 0
	inner := frame.Sub(1, 1, frame.W-2, frame.H-2)
	var heat cells.Area
	if sp.crowd() {
		inner, heat = splitCrowd(inner, len(sp.devices))
	}
	room := chart.Divide(inner, labels)
	if inner.H == 0 { // no row for a line: the map alone
		labels = false
		room = chart.Divide(heat, labels)
	}
	win := a.window(s)
	a.shown, a.column = win, 2*win.Step(room.Columns)
	if step := win.Step(room.Columns); s.paused || !a.end.IsZero() {
		// Samples still come in: leave the column out that is not complete.
		win.End = win.End.Add(-step)
	}
	c := chart.Chart{
		From: win.From(room.Columns), Step: win.Step(room.Columns),
		Filled: len(sp.more) == 0 && (len(sp.devices) == 1 || sp.crowd()), Labels: labels, Reverse: s.cfg.Top.Charts.Reverse, Cursor: -1,
	}
	if d := a.at.Sub(c.From); !a.at.IsZero() && d >= 0 {
		c.Cursor = int(d / c.Step) // beyond the last column it is not drawn
	}
	limit := a.lines(s, sp, &c, room.Columns)
	unit, per := a.scale(s, sp, &c, limit)
	c.Marks = s.marks(sp, c.From)
	c.Layout(room)
	marks := c.Marks
	if heat.H > 0 {
		c.Marks = nil // they are below the map
	}
	if inner.H > 0 {
		c.Draw(room)
	}
	if c.Marks = marks; heat.H > 0 {
		below := chart.Divide(heat, labels)
		a.drawHeat(s, below, sp, &c)
		c.DrawMarks(below)
	}
	a.drawChartTitle(s, frame, sp, &c, unit, per, index)
	if bottom { // above others, the next title stands there
		a.drawTimes(s, frame.Sub(1, frame.H-1, frame.W-2, 1), &c, win)
	}
	s.hits.Add(frame, func(m tui.Mouse) []tui.Effect { return a.mouse(s, m, room, &c, index) })
}

// lines asks the history for a line per device and returns the highest limit.
func (a *chartArea) lines(s *State, sp spec, c *chart.Chart, columns int) (limit float64) {
	if len(sp.more) > 0 {
		return a.metricLines(s, sp, c, columns)
	}
	crowd := sp.crowd()
	for i, d := range sp.devices {
		b := a.buffer(i, columns)
		s.hist.Range(b, sp.gauge.Key(d.BusID), c.From, c.Step)
		own := sp.gauge.Limit(s.shown, d)
		if i == 0 || own == c.Limit {
			c.Limit = own
		} else {
			c.Limit = 0 // each has its own
		}
		limit = max(limit, own)
		if !crowd {
			c.Lines = append(c.Lines, chart.Line{Label: strconv.Itoa(d.Index), Style: cells.Series(i), Buckets: b})
		}
	}
	if crowd {
		c.Lines = append(c.Lines, chart.Line{Label: "avg", Style: cells.Series0, Buckets: a.together(len(sp.devices), len(sp.devices), columns, false)})
	}
	return limit
}

// buffer is the i-th line's buffer, reused in every frame.
func (a *chartArea) buffer(i, columns int) []history.Bucket {
	for len(a.buckets) <= i {
		a.buckets = append(a.buckets, nil)
	}
	if cap(a.buckets[i]) < columns {
		a.buckets[i] = make([]history.Bucket, columns)
	}
	a.buckets[i] = a.buckets[i][:columns]
	return a.buckets[i]
}

// scale gives the chart round numbers in a readable unit and returns its
// name, and how many of the gauge's own make one.
func (a *chartArea) scale(s *State, sp spec, c *chart.Chart, limit float64) (name string, per float64) {
	var all [][]history.Bucket
	for i := range c.Lines {
		all = append(all, c.Lines[i].Buckets)
	}
	lo, hi, ok := gauge.Span(all...)
	if !ok {
		lo, hi = 0, 0
	}
	fit := s.cfg.Top.Charts.Scale == "fit" && ok
	top := max(hi, limit)
	if fit {
		top = hi
	}
	unit := sp.gauge.Form
	name, per = unit.Axis(top)
	if fit {
		c.Scale = chart.Fit(lo/per, hi/per)
	} else {
		c.Scale = chart.UpTo(limit/per, hi/per)
	}
	c.Scale.Bottom *= per
	c.Scale.Top *= per
	c.Tick = func(v float64) string { return unit.Tick(v, per) }
	c.Value = func(v float64) string { return unit.Number(v, per) }
	c.Scale = chart.Legible(c.Scale, c.Tick)
	return name, per
}

// marks are the events of the devices drawn, from a time on.
func (s *State) marks(sp spec, from time.Time) []chart.Mark {
	var out []chart.Mark
	for i := range s.log {
		e := &s.log[i]
		if e.Time.Before(from) {
			continue
		}
		for _, d := range sp.devices {
			if e.About(d.BusID) {
				style := map[words.Level]cells.Style{words.Critical: cells.Bad, words.Warning: cells.Warn, words.Info: cells.Axis}[e.Level]
				out = append(out, chart.Mark{At: e.Time, Text: e.Short, Style: style})
				break
			}
		}
	}
	return out
}
