package chart

import (
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Line is one series, a bucket per dot column.
type Line struct {
	Label   string
	Style   cells.Style
	Buckets []history.Bucket
}

// Mark is an event under the chart.
type Mark struct {
	At    time.Time
	Text  string
	Style cells.Style
}

// Chart is what to draw.
type Chart struct {
	Lines  []Line
	Scale  Scale
	Tick   func(float64) string // writes a number at the axis
	Filled bool                 // fill the area below; for a single line
	Labels bool                 // name each line at its newest end, in the order of their values
	Value  func(float64) string // writes the value beside the name; nil: the name alone

	From  time.Time     // of the first dot column
	Step  time.Duration // per dot column
	Limit float64       // drawn as a dashed line; 0: there is none
	Marks []Mark        // in order of time

	Cursor  int  // dot column under the cursor; negative: none
	Reverse bool // newest at the left

	cursorCell int
	room       Room
}

// Room is where it was drawn last.
func (c *Chart) Room() Room { return c.room }

// Room is how an area is divided.
type Room struct {
	Plot    cells.Area
	axis    cells.Area
	labels  cells.Area
	marks   cells.Area
	Columns int // dot columns of the plot: buckets to ask for
}

// Cells beside the plot.
const (
	axisWidth  = 5
	labelWidth = 9 // "12 ~99.9"
	minMarks   = 6 // rows below which there is no row for marks
)

// Divide lays a chart out in an area. It depends on the area alone, so that
// nothing moves while values change.
func Divide(a cells.Area, labels bool) Room {
	var r Room
	right := 0
	if labels {
		right = labelWidth
	}
	if a.H >= minMarks {
		a, r.marks = a.Bottom(1)
	}
	w := max(a.W-axisWidth-right, 0)
	r.axis = a.Sub(0, 0, axisWidth, a.H)
	r.Plot = a.Sub(axisWidth, 0, w, a.H)
	r.labels = a.Sub(axisWidth+w, 0, right, a.H)
	r.marks = r.marks.Sub(axisWidth, 0, w, 1)
	r.Columns = w * dotsX
	return r
}

// Draw draws the chart into its room.
func (c *Chart) Draw(r Room) {
	c.Layout(r)
	if r.Plot.Empty() {
		return
	}
	c.drawAxis(r)
	c.drawAway(r.Plot)
	c.drawLimit(r.Plot)
	c.drawCursor(r)
	dots := newCanvas(r.Plot.W, r.Plot.H)
	styles := make([]cells.Style, len(c.Lines))
	for i := range c.Lines {
		styles[i] = c.Lines[i].Style
		c.trace(dots, &c.Lines[i])
	}
	if c.Filled {
		dots.shade(r.Plot)
	} else {
		dots.draw(r.Plot, styles)
		dots.tint(r.Plot)
	}
	if c.Labels {
		c.nameLines(r)
	}
	c.drawMarks(r)
}

// Columns is how many dot columns a plot without an axis has.
func Columns(a cells.Area) int { return a.W * dotsX }

// DrawPlot draws the lines alone, without axis, labels and marks.
func (c *Chart) DrawPlot(a cells.Area) {
	if a.Empty() {
		return
	}
	c.drawAway(a)
	dots := newCanvas(a.W, a.H)
	for i := range c.Lines {
		c.trace(dots, &c.Lines[i])
	}
	dots.shade(a)
}

// Layout says where the chart is without drawing its lines: something else that
// has its times is drawn there.
func (c *Chart) Layout(r Room) {
	c.room, c.cursorCell = r, -1
	if c.Cursor >= 0 && c.Cursor < r.Columns {
		c.cursorCell = axisWidth + c.x(c.Cursor, r.Columns)/dotsX
	}
}

// DrawMarks draws the events alone, below what is drawn instead of the lines.
func (c *Chart) DrawMarks(r Room) { c.drawMarks(r) }

func (c *Chart) drawAxis(r Room) {
	h := r.axis.H
	put := func(y int, v float64) {
		r.axis.PutRight(axisWidth-1, y, words.Truncate(c.Tick(v), axisWidth-1), cells.Axis)
	}
	put(0, c.Scale.Top)
	if h > 1 {
		put(h-1, c.Scale.Bottom)
	}
	if h >= 7 {
		put((h-1)/2, (c.Scale.Bottom+c.Scale.Top)/2)
	}
}

// x is the dot column at which bucket i is drawn.
func (c *Chart) x(i, n int) int {
	if c.Reverse {
		return n - 1 - i
	}
	return i
}

// drawAway hatches the time in which no line was sampled.
func (c *Chart) drawAway(plot cells.Area) {
	columns := plot.W * dotsX
	for x := range plot.W {
		if !c.away(c.x(x*dotsX, columns)) || !c.away(c.x(x*dotsX+1, columns)) {
			continue
		}
		for y := range plot.H {
			if (x+y)%2 == 0 {
				plot.Set(x, y, '╱', cells.Faint)
			}
		}
	}
}

// away reports whether no line was sampled in a bucket.
func (c *Chart) away(i int) bool {
	found := false
	for _, l := range c.Lines {
		if i < 0 || i >= len(l.Buckets) || l.Buckets[i].State != history.Away {
			return false
		}
		found = true
	}
	return found
}

// drawLimit draws the limit as a level line of dashes, which the lines cover.
func (c *Chart) drawLimit(plot cells.Area) {
	if c.Limit <= c.Scale.Bottom || c.Limit > c.Scale.Top {
		return
	}
	y := plot.H - 1 - c.Scale.row(c.Limit, plot.H*dotsY)/dotsY
	for x := range plot.W {
		plot.Set(x, y, '╌', cells.Axis)
	}
}

// trace draws one line: each bucket from its minimum to its maximum, joined
// to the one before so that steps are seen as steps. Nothing is drawn where
// nothing is known, and nothing is joined over it. What is doubtful has half of
// its dots: every other column of an area, every other dot of a line that runs
// level.
func (c *Chart) trace(dots *canvas, l *Line) {
	line := dots.line()
	rows := dots.h * dotsY
	n := len(l.Buckets)
	joined := false
	var last span
	for i := range l.Buckets {
		b := &l.Buckets[i]
		if !b.Known() {
			joined = false
			continue
		}
		now := c.span(b, rows)
		drawn := now
		if joined {
			drawn = meet(last, now)
		}
		x := c.x(i, n)
		if b.Bound == model.Exact || x%2 == 0 || !c.Filled && drawn.lo != drawn.hi {
			c.stroke(dots, x, drawn.lo, drawn.hi, line)
		}
		joined, last = true, now
	}
}

// span is the rows of a bucket: of its lowest and its highest value.
type span struct{ lo, hi int }

func (c *Chart) span(b *history.Bucket, rows int) span {
	lo := c.Scale.row(float64(b.Min), rows)
	if b.Min == b.Max { // a single sample, mostly
		return span{lo, lo}
	}
	return span{lo, c.Scale.row(float64(b.Max), rows)}
}

// meet is the rows of a bucket, stretched to meet those of the one before.
func meet(first, second span) span {
	switch {
	case second.lo > first.hi:
		second.lo = min(first.hi+1, second.hi)
	case second.hi < first.lo:
		second.hi = max(first.lo-1, second.lo)
	}
	return second
}

func (c *Chart) stroke(dots *canvas, x, lo, hi, line int) {
	if c.Filled {
		lo = 0
	}
	dots.column(x, lo, hi, line)
}

// Column is the dot column of a time, which may lie outside the plot.
func (c *Chart) Column(t time.Time, columns int) int {
	d := t.Sub(c.From)
	if d < 0 {
		return -1
	}
	return c.x(int(d/c.Step), columns)
}

// TimeAt is the time in the middle of a plot column.
func (c *Chart) TimeAt(column, columns int) time.Time {
	i := c.x(column*dotsX, columns)
	return c.From.Add(time.Duration(i)*c.Step + c.Step/2)
}

// CursorCell is the column of the cursor in the area the chart was divided
// from, after Draw; negative: it is not in view.
func (c *Chart) CursorCell() int { return c.cursorCell }

func (c *Chart) drawCursor(r Room) {
	if c.cursorCell < 0 {
		return
	}
	x := c.cursorCell - axisWidth
	for y := range r.Plot.H {
		r.Plot.Set(x, y, '│', cells.Axis)
	}
	r.marks.Set(x, 0, '│', cells.Axis)
}

// drawMarks writes "▲text" for each event as far as the next leaves room.
func (c *Chart) drawMarks(r Room) {
	if r.marks.Empty() {
		return
	}
	next := r.marks.W + 1 // the last one needs no blank after it
	marks := c.Marks
	step, begin := -1, len(marks)-1
	if c.Reverse {
		step, begin = 1, 0
	}
	for i := begin; i >= 0 && i < len(marks); i += step {
		x := c.Column(marks[i].At, r.Columns)
		if x < 0 || x >= r.Columns {
			continue
		}
		x /= dotsX
		if x >= next {
			continue // hidden behind a newer one in the same cell
		}
		r.marks.Set(x, 0, '▲', marks[i].Style)
		if room := next - x - 2; room >= 4 {
			r.marks.Put(x+1, 0, words.Truncate(marks[i].Text, room), marks[i].Style)
		}
		next = x
	}
}
