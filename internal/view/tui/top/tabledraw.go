package top

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	columns "github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// minCommand is how much of the command must fit before less usual columns
// get room: a quarter of the line, and not less than this.
const minCommand = 20

// tagWidth is the room before the first column, where a tagged process has its sign.
const tagWidth = 1

// layout lays out the chosen columns in w cells, or as many of the usual ones as fit.
func (t *table) layout(names []string, w int) (fields []*metric.Process, x *columns.Table, at []columns.Place) {
	for _, name := range names {
		fields = append(fields, metric.ProcessNamed(name))
	}
	chosen := len(fields) > 0
	all := metric.Processes()
	for i := range all {
		if !chosen && all[i].Rank > 0 {
			fields = append(fields, &all[i])
		}
	}
	x = &columns.Table{Fixed: true, Close: true, Indent: tagWidth}
	for _, f := range fields {
		c := columns.Column{Head: f.Head, Least: f.Width, Right: f.Right(), Rank: f.Rank, Rest: f.Width == 0}
		if chosen || f.Rank <= 1 {
			c.Rank = 0
		}
		if c.Rest {
			c.Least = max(minCommand, w/4)
		}
		x.Columns = append(x.Columns, c)
	}
	return fields, x, x.Layout(w)
}

// fitted are the columns that there is room for, while none are chosen.
func (t *table) fitted(w int) (list []*metric.Process) {
	fields, _, at := t.layout(nil, w)
	for i, f := range fields {
		if at[i].W >= 0 {
			list = append(list, f)
		}
	}
	return list
}

// arrow is the sign of the order, at the title sorted by.
func (s *State) arrow() string {
	if s.cfg.Top.Processes.Descending {
		return "▼"
	}
	return "▲"
}

// draw draws the heading and as many rows as there is room for.
func (t *table) draw(s *State, area cells.Area) {
	if area.Empty() {
		return
	}
	s.hits.Add(area, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.WheelUp:
			t.wheel(s, widget.Up)
		case tui.WheelDown:
			t.wheel(s, widget.Down)
		}
		return nil
	})
	fields, x, at := t.layout(s.cfg.Top.Processes.Columns, area.W)
	heading, body := area.Top(1)
	t.drawHeading(s, heading, fields, x, at)
	t.height = body.H
	t.scroll = min(max(t.scroll, t.cursor-body.H+1), max(t.cursor, 0))
	t.scroll = min(max(t.scroll, 0), max(len(t.rows)-body.H, 0))
	for y := 0; y < body.H && t.scroll+y < len(t.rows); y++ {
		i := t.scroll + y
		line := body.Sub(0, y, body.W, 1)
		t.drawRow(s, line, fields, x, at, i)
		t.touchRow(s, line, i)
	}
	if len(t.rows) == 0 && body.H > 0 {
		body.Put(1, 0, words.Truncate(t.emptiness(s), body.W-2), cells.Faint)
	}
}

// emptiness says why there are no rows.
func (t *table) emptiness(s *State) string {
	switch {
	case s.shown == nil:
		return ""
	case t.total > 0:
		return fmt.Sprintf("None of %s matches the filter %q. Esc clears it.", count(t.total, "process", "processes"), t.filterText)
	default:
		return "No process uses a device."
	}
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

func (t *table) wheel(s *State, m widget.Motion) {
	for range 3 {
		t.move(s, m)
	}
}

// drawHeading draws the titles; the one sorted by carries an arrow. A press
// on a title sorts by it, a second one turns the order round.
func (t *table) drawHeading(s *State, row cells.Area, fields []*metric.Process, x *columns.Table, at []columns.Place) {
	row.Fill(' ', cells.Heading)
	for i, f := range fields {
		if s.sortField().Name == f.Name {
			x.Columns[i].Head += s.arrow()
		}
	}
	end := x.Head(at, cells.Heading).Put(row, 0, 0)
	for i, f := range fields {
		if at[i].W < 0 {
			continue
		}
		if s.sortField().Name == f.Name {
			n := min(words.Width(x.Columns[i].Head), at[i].W)
			from := at[i].X
			if x.Columns[i].Right {
				from += at[i].W - n
			}
			row.Paint(from, 0, n, cells.Sorted)
		}
		s.hits.Add(row.Sub(at[i].X, 0, at[i].W, 1), func(m tui.Mouse) []tui.Effect {
			if m.Action == tui.Press {
				s.focus = processes
				return s.sortBy(f.Name)
			}
			return nil
		})
	}
	t.drawFilter(row.Sub(end+1, 0, row.W-end-1, 1))
}

// drawFilter says what the rows were chosen by, in what the titles left of
// their row: how many there are, and of the filter as much as fits.
func (t *table) drawFilter(row cells.Area) {
	if t.filterText == "" || row.W < 6 {
		return
	}
	text := fmt.Sprintf(" %d of %d: ", t.matching(), t.total)
	switch room := row.W - words.Width(text) - 1; {
	case room >= 4:
		text += words.Truncate(words.Escape(t.filterText), room) + " "
	case words.Width(text) > row.W:
		text = " / "
	}
	row.PutRight(row.W, 0, text, cells.Banner)
}

// matching counts the processes listed, without stand-ins.
func (t *table) matching() int {
	n := 0
	for i := range t.rows {
		if !t.rows[i].parent {
			n++
		}
	}
	return n
}

// sortBy sorts by a column; doing so again turns the order round.
func (s *State) sortBy(name string) []tui.Effect {
	c := &s.cfg.Top.Processes
	if s.sortField().Name == name {
		return s.sortDescending(!c.Descending)
	}
	c.Sort = name
	// Names read from A to Z, quantities from the largest.
	return s.sortDescending(metric.ProcessNamed(name).Right())
}

func (t *table) drawRow(s *State, line cells.Area, fields []*metric.Process, x *columns.Table, at []columns.Place, i int) {
	r := &t.rows[i]
	_, tagged := t.tagged[r.id()]
	var out columns.Row
	for k, f := range fields {
		text, style := cellOf(f, s.shown, r)
		if tagged {
			style = cells.Tagged
		} else if r.parent {
			style = cells.Faint
		}
		if x.Columns[k].Rest {
			text = cut(text, t.sideways)
		}
		out.Cells = append(out.Cells, columns.C(text, style))
	}
	x.Line(at, &out, true).Put(line, 0, 0)
	if tagged {
		line.Set(0, 0, '+', cells.Tagged)
	}
	if i == t.cursor {
		style := cells.Selected
		if s.focus != processes {
			style = cells.Shadow
		}
		line.Paint(0, 0, line.W, style)
	}
}

// cut drops the first n cells of a text.
func cut(s string, n int) string {
	if n == 0 {
		return s
	}
	for i := range s {
		if words.Width(s[:i]) >= n {
			return s[i:]
		}
	}
	return ""
}

// touchRow selects a row by the mouse; a second press opens it.
func (t *table) touchRow(s *State, line cells.Area, i int) {
	r := t.rows[i].id()
	s.hits.Add(line, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.Press:
			again := s.focus == processes && t.sel == r
			s.focus, t.sel = processes, r
			t.restoreSelection()
			if again {
				return s.enter()
			}
		case tui.RightPress:
			s.focus, t.sel = processes, r
			t.restoreSelection()
			t.tag(s)
		case tui.WheelUp:
			t.wheel(s, widget.Up)
		case tui.WheelDown:
			t.wheel(s, widget.Down)
		}
		return nil
	})
}
