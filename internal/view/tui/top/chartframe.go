package top

import (
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// drawChartTitle writes what a chart shows into its frame: the metric, its unit
// and the lines.
func (a *chartArea) drawChartTitle(s *State, frame cells.Area, sp spec, c *chart.Chart, unit string, per float64, index int) {
	style := cells.Text
	if index == a.sel && (s.focus == charts || s.page != nil) {
		style = cells.Selected
	}
	title := sp.title() + " " + unit
	if sp.single {
		title = strconv.Itoa(sp.devices[0].Index) + " " + title
	}
	x := frame.Put(1, 0, " "+words.Truncate(title, frame.W-4)+" ", style)
	a.legend(s, frame.Sub(x, 0, frame.W-x-1, 1), sp, c, per)
}

// legend names the lines in their styles, with their values under the cursor
// or, where there is one line only, its newest value.
func (a *chartArea) legend(s *State, row cells.Area, sp spec, c *chart.Chart, per float64) {
	if sp.crowd() {
		text := a.crowdLegend(s, sp, c)
		row.Put(0, 0, " "+words.Truncate(text, row.W-2)+" ", cells.Text)
		return
	}
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
			text = s.newest(l.Buckets, c.Step, sp.gauge.Form)
		}
		if x+words.Width(text)+1 > row.W {
			put("…", cells.Axis)
			break
		}
		put(text, l.Style)
	}
}

// newest says the newest value of a line, and how old it is where it is not
// known any more.
func (s *State) newest(b []history.Bucket, step time.Duration, unit metric.Form) string {
	last, age, ok := chart.Newest(b, step)
	if !ok {
		return words.Nothing
	}
	text := words.Mark(last.Bound) + unit.Format(float64(last.Last))
	if age > 0 {
		text = words.Nothing + " (" + text + ", " + spanName(age) + " ago)"
	}
	return text
}

// valueAt says the value that held at a bucket: its own, or the last before.
func (a *chartArea) valueAt(s *State, sp spec, b []history.Bucket, i int, per float64) string {
	if v, bound, ok := heldAt(b, i); ok {
		return words.Mark(bound) + sp.gauge.Form.Number(v, per)
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
	a.drawTicks(s, row, c, win)
	if x := c.CursorCell(); x >= 0 {
		at := " " + clock(a.at) + " "
		row.Put(min(max(x-len(at)/2, 0), row.W-len(at)), 0, at, cells.Strong)
	}
}

// drawTicks writes round times between the ends, where there is room.
func (a *chartArea) drawTicks(s *State, row cells.Area, c *chart.Chart, win chart.Window) {
	if !a.end.IsZero() || s.paused || c.Room().Columns == 0 {
		return // the ends are clock times then
	}
	const apart = 18 // cells from one to the next, at least
	room := c.Room()
	for _, step := range []time.Duration{10e9, 20e9, 30e9, 60e9, 120e9, 300e9, 600e9, 1200e9, 1800e9, 3600e9, 2 * 3600e9, 6 * 3600e9, 12 * 3600e9, 24 * 3600e9} {
		if float64(room.Plot.W)*float64(step)/float64(win.Span) < apart {
			continue
		}
		for back := step; back < win.Span; back += step {
			x := c.Column(win.End.Add(-back), room.Columns)
			if x < 0 {
				break
			}
			text := " " + spanName(back) + " "
			at := room.Plot.X - row.X + x/2 - words.Width(text)/2
			if at < apart/2 || at+words.Width(text) > row.W-apart/2 {
				continue
			}
			row.Put(at, 0, text, cells.Axis)
		}
		return
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
