package ops

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// draw draws title, devices, table and notes.
func (s *Screen) draw(area cells.Area) {
	title, rest := area.Top(1)
	s.drawTitle(title)
	if s.shown == nil {
		if s.lost != "" {
			rest.Put(1, 1, words.Truncate("no data: "+s.lost, rest.W-2), cells.Bad)
		} else {
			rest.Put(1, 1, "Waiting for the first sample …", cells.Strong)
		}
		return
	}
	rest = s.drawDevices(rest, max(area.H/6, 1))
	notes := s.notes(rest.W-3, max(area.H/4, 1))
	table, below := rest.Bottom(len(notes))
	for y, n := range notes {
		below.Put(1, y, n.text, n.style)
	}
	head, body := table.Top(1)
	t, at := s.table(table.W)
	s.drawHeading(head, t, at)
	if len(s.rows) == 0 {
		body.Put(1, 0, words.Truncate(text.NoOperation(s.which), body.W-2), cells.Strong)
		return
	}
	s.list.Draw(&s.Hits, body, cells.Selected, func(i int, row cells.Area) { t.Line(at, &t.Rows[i], true).Put(row, 0, 0) },
		func(int) []tui.Effect { s.remember(); return nil })
}

func (s *Screen) drawTitle(row cells.Area) {
	right := s.o.Interval.String() + " "
	if s.o.Source != "" {
		right = words.Escape(s.o.Source) + "  " + right
	}
	row.PutRight(row.W, 0, right, cells.Faint)
	left := row.Sub(0, 0, max(row.W-words.Width(right)-1, 0), 1)
	if s.shown == nil {
		left.Put(1, 0, "ttmon ops", cells.Strong)
		return
	}
	x := left.Put(1, 0, words.Escape(s.shown.Host.Name), cells.Strong) + 2
	if s.shown.Simulated {
		x = left.Put(x, 0, " SIMULATED ", cells.Banner) + 1
	}
	if s.frozen {
		x = left.Put(x, 0, " FROZEN at "+s.shown.Time.Local().Format("15:04:05")+" ", cells.Banner) + 1
	}
	if s.lost != "" {
		said := "no update for " + words.Span(s.lostAt.Sub(s.live.Time)) + ": " + s.lost
		left.Put(x, 0, words.Truncate(said, left.W-x), cells.Bad)
		return
	}
	if s.which.PID != 0 {
		x = left.Put(x, 0, fmt.Sprintf("only process %d", s.which.PID), cells.Label) + 2
	}
	if s.which.Filter != "" {
		left.Put(x, 0, words.Truncate("/"+words.Escape(s.which.Filter), left.W-x), cells.Label)
	}
}

// How busy a device is: "12 ▓▓▓▓░░ ≥62 %".
const (
	deviceIndent = 5 // behind "Busy"

	barWidth    = 6
	deviceWidth = 3 + 1 + barWidth + 1 + 7 + 2
)

// drawDevices draws how busy each device is in at most so many rows, and returns
// what is left below.
func (s *Screen) drawDevices(area cells.Area, most int) (rest cells.Area) {
	perRow := max((area.W-deviceIndent)/deviceWidth, 1)
	rows := min((len(s.shown.Devices)+perRow-1)/perRow, most)
	top, rest := area.Top(rows)
	top.Put(1, 0, "Busy", cells.Label)
	for i := range s.shown.Devices {
		at := top.Sub(deviceIndent+i%perRow*deviceWidth, i/perRow, deviceWidth, 1)
		if left := len(s.shown.Devices) - i; i == rows*perRow-1 && left > 1 {
			at.Put(0, 0, fmt.Sprintf("and %d more", left), cells.Faint)
			break
		}
		drawDevice(at, &s.shown.Devices[i])
	}
	return rest
}

func drawDevice(at cells.Area, d *model.Device) {
	at.PutRight(3, 0, fmt.Sprint(d.Index), cells.Label)
	x := 4
	if ratio, ok := d.Work.Busy.Get(); ok && !math.IsNaN(ratio) {
		at.Shade(x, 0, barWidth, ratio, d.Work.Bound != model.Exact, cells.Fill)
		x += barWidth + 1
	}
	at.Put(x, 0, words.Busy(&d.Work), cells.Text)
}

// note is a line below the table.
type note struct {
	text  string
	style cells.Style
}

// notes are what may be stuck, and why it is not known how busy devices are, in
// at most so many lines.
func (s *Screen) notes(w, most int) (list []note) {
	add := func(text string, st cells.Style) {
		for i, line := range words.Wrap(text, max(w-2, 10)) {
			if i > 0 {
				line = "  " + line
			}
			list = append(list, note{line, st})
		}
	}
	for _, n := range text.StuckNotes(s.shown) {
		add(n.Text, cells.OfNote(n.Level))
	}
	causes, devices := unknown(s.shown)
	for _, c := range causes {
		name := "device "
		if len(devices[c]) > 1 {
			name = "devices "
		}
		add(name+words.Ranges(devices[c])+": busy unknown: "+words.WorkCause(c), cells.Faint)
	}
	if n := len(list); n > most {
		list = append(list[:most-1:most-1], note{fmt.Sprintf("… %d lines more need a taller terminal", n-most+1), cells.Faint})
	}
	return list
}

// unknown lists why it is not known how busy devices are, in the order of the
// devices, and which those are.
func unknown(s *model.Snapshot) (causes []model.WorkCause, devices map[model.WorkCause][]int) {
	devices = map[model.WorkCause][]int{}
	for i := range s.Devices {
		d := &s.Devices[i]
		if d.Work.Measured() || d.Work.Cause == "" {
			continue
		}
		if !slices.Contains(causes, d.Work.Cause) {
			causes = append(causes, d.Work.Cause)
		}
		devices[d.Work.Cause] = append(devices[d.Work.Cause], d.Index)
	}
	return causes, devices
}

// mostName is how wide the column of names becomes where there is room.
const mostName = 64

// table lays out the operations. The column that they are sorted by is always there.
func (s *Screen) table(width int) (*lines.Table, []lines.Place) {
	t := sheet.TableOf(metric.Operations(), s.shown, s.rows).Lines()
	t.Fixed, t.Close, t.Indent = true, true, 1
	for i, f := range metric.Operations() {
		c := &t.Columns[i]
		if f.Name == s.sorted() {
			c.Rank = 0
		}
		if f.Kind == metric.Text && !c.Rest {
			c.Most = c.Least
		}
		if i == 1 {
			c.Most = mostName
		}
	}
	return t, t.Layout(width)
}

// sorted is the column that the table is sorted by.
func (s *Screen) sorted() string { return cmp.Or(s.which.Sort, metric.OpOrders()[0]) }

func (s *Screen) drawHeading(row cells.Area, t *lines.Table, at []lines.Place) {
	row.Fill(' ', cells.Heading)
	t.Head(at, cells.Heading).Put(row, 0, 0)
	for i, name := range metric.OpOrders() {
		if at[i].W < 0 {
			continue
		}
		if name == s.sorted() {
			row.Paint(at[i].X, 0, at[i].W, cells.Sorted)
		}
		s.Hits.AddPress(row.Sub(at[i].X, 0, at[i].W, 1), func() []tui.Effect { s.sortBy(name); return nil })
	}
}
