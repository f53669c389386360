package top

import (
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
	"github.com/ttmon/ttmon/internal/view/words"
)

// drawTitle writes what a chart shows into its frame: the metric, its unit
// and the lines.
func (a *chartArea) drawTitle(s *State, frame cells.Area, sp spec, c *chart.Chart, unit string, per float64, index int) {
	style := cells.Text
	if index == a.sel && (s.focus == charts || s.page != nil) {
		style = cells.Selected
	}
	title := sp.gauge.Title + " " + unit
	if sp.single {
		title = strconv.Itoa(sp.devices[0].Index) + " " + title
	}
	x := frame.Put(1, 0, " "+words.Truncate(title, frame.W-4)+" ", style)
	a.legend(s, frame.Sub(x, 0, frame.W-x-1, 1), sp, c, per)
}

// legend names the lines in their styles, with their values under the cursor
// or, where there is one line only, its newest value.
func (a *chartArea) legend(s *State, row cells.Area, sp spec, c *chart.Chart, per float64) {
	x := 1
	put := func(text string, style cells.Style) {
		row.Set(x-1, 0, ' ', style)
		x = row.Put(x, 0, text, style)
		row.Set(x, 0, ' ', style)
		x++
	}
	for i := range c.Lines {
		l := &c.Lines[i]
		text := l.Label
		if text == "" {
			continue
		}
		if c.Cursor >= 0 && c.Cursor < len(l.Buckets) {
			text += ": " + a.valueAt(s, sp, l.Buckets, c.Cursor, per)
		} else if len(c.Lines) == 1 {
			text = a.newest(s, sp, l.Buckets)
		}
		if x+words.Width(text)+1 > row.W {
			put("…", cells.Axis)
			break
		}
		put(text, l.Style)
	}
	if n := len(sp.devices); n > cells.NumSeries && x < row.W {
		put(words.Truncate("of "+strconv.Itoa(n), row.W-x-1), cells.Axis)
	}
}

// newest says the newest value of a line.
func (a *chartArea) newest(s *State, sp spec, b []history.Bucket) string {
	for i := len(b) - 1; i >= 0; i-- {
		switch b[i].State {
		case history.Sampled:
			return sp.gauge.Unit.Say(float64(b[i].Last), s.scale())
		case history.Gap:
			return words.Nothing
		}
	}
	return words.Nothing
}

// valueAt says the value that held at a bucket: its own, or the last before.
func (a *chartArea) valueAt(s *State, sp spec, b []history.Bucket, i int, per float64) string {
	for ; i >= 0; i-- {
		switch b[i].State {
		case history.Sampled:
			return sp.gauge.Unit.Number(float64(b[i].Last), per, s.scale())
		case history.Gap:
			return words.Nothing
		}
	}
	return words.Nothing
}

// drawTimes writes the time below a chart, and that of the cursor.
func (a *chartArea) drawTimes(s *State, row cells.Area, c *chart.Chart, win chart.Window) {
	clock := func(t time.Time) string {
		if win.Span >= 12*time.Hour {
			return t.Local().Format("Jan 2 15:04")
		}
		return t.Local().Format("15:04:05")
	}
	old, now := spanName(win.Span), "now"
	if !a.end.IsZero() || s.paused {
		old, now = clock(win.End.Add(-win.Span)), clock(win.End)
	}
	if c.Reverse {
		old, now = now, old
	}
	row.Put(0, 0, " "+old+" ", cells.Axis)
	row.PutRight(row.W, 0, " "+now+" ", cells.Axis)
	if x := c.CursorCell(); x >= 0 {
		at := " " + clock(a.at) + " "
		row.Put(min(max(x-len(at)/2, 0), row.W-len(at)), 0, at, cells.Strong)
	}
}

// spanName is a round length of time: "10 min".
func spanName(d time.Duration) string {
	switch {
	case d < time.Minute:
		return words.Whole(d.Seconds()) + " s"
	case d < 2*time.Minute && d%time.Minute != 0:
		return words.Whole(d.Seconds()) + " s"
	case d < 2*time.Hour:
		return words.Whole(d.Minutes()) + " min"
	case d < 2*24*time.Hour:
		return words.Whole(d.Hours()) + " h"
	}
	return words.Whole(d.Hours()/24) + " days"
}

// mouse sets the cursor with a press or a drag, and zooms with the wheel.
func (a *chartArea) mouse(s *State, m tui.Mouse, room chart.Room, c *chart.Chart, index int) []tui.Effect {
	switch m.Action {
	case tui.Press, tui.Drag:
		if m.Action == tui.Press {
			s.focus, a.sel = charts, index
		}
		if room.Plot.Contains(m.X, m.Y) {
			a.at = c.TimeAt(m.X-room.Plot.X, room.Columns)
		}
	case tui.RightPress:
		a.live()
	case tui.WheelUp:
		a.zoom(s, 1)
	case tui.WheelDown:
		a.zoom(s, -1)
	}
	return nil
}

// chartPage is the charts on the whole screen.
type chartPage struct{}

func (s *State) openCharts() []tui.Effect {
	if len(s.cfg.Top.Charts.Metrics) == 0 {
		return s.openMetrics()
	}
	s.page = chartPage{}
	return nil
}

func (chartPage) keys() []binding {
	return append(chartKeys(), binding{keys: []tui.Key{"a"}, foot: "Metrics", help: "choose what is charted", do: (*State).openMetrics})
}

func (chartPage) key(s *State, k tui.Key) []tui.Effect {
	if m, ok := widget.MotionOf(k); ok {
		s.chart.move(s, m)
	}
	if k == " " {
		return s.pause()
	}
	return nil
}

func (chartPage) draw(s *State, area cells.Area) { s.chart.draw(s, area) }
