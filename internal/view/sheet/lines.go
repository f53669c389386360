package sheet

import (
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Lines draws a sheet in so many columns, for text.
func Lines(s *Sheet, width int) []lines.Line {
	d := &drawer{width: width}
	s.Draw(d)
	return d.list
}

// Screen draws parts in so many columns, for a page of a screen to scroll in: a rule
// behind each title, and sentences without bullets.
func Screen(width int, parts ...Part) []lines.Line {
	d := &drawer{width: width - 1, ruled: true}
	(&Sheet{Parts: parts}).Draw(d)
	return d.list
}

// drawer is the medium of lines.
type drawer struct {
	width  int
	ruled  bool
	column int // of the values of facts
	list   []lines.Line
	hidden int // where a part that is left out began
	titled bool
}

func (d *drawer) add(list ...lines.Line) { d.list = append(d.list, list...) }

// Head draws the title and how it is.
func (d *drawer) Head(s *Sheet) {
	for i := range s.Parts {
		for _, p := range s.Parts[i].Pairs {
			d.column = max(d.column, words.Width(p.Name))
		}
	}
	least := leastName
	if d.ruled {
		least = leastNameOnScreen
	}
	d.column = min(max(d.column, least), d.width*9/20)
	if s.Title != "" {
		d.add(lines.Hang(nil, s.Title, cells.Strong, d.width, 2)...)
	}
	if s.Status != nil {
		d.add(lines.Hang(lines.Plain("  → "), s.Status.Text, cells.OfNote(s.Status.Level), d.width, 0)...)
	}
}

// Begin draws the title of a part.
func (d *drawer) Begin(p *Part) {
	if d.hidden = len(d.list); len(d.list) > 0 {
		d.add(nil)
	}
	switch d.titled = p.Title != ""; {
	case d.titled && d.ruled && !p.Below:
		title := " " + words.Truncate(p.Title, d.width-2) + " "
		d.add(lines.Line{lines.S(title, cells.Strong), lines.S(strings.Repeat("─", max(d.width-words.Width(title), 0)), cells.Faint)})
	case d.titled:
		d.add(lines.Styled("  "+words.Truncate(p.Title, d.width-2), cells.Strong))
	}
}

// End takes back what is not shown.
func (d *drawer) End(p *Part) {
	if p.Folded {
		d.list = d.list[:d.hidden]
	}
}

// Pairs draws facts, their names beside them.
func (d *drawer) Pairs(list []Pair) {
	for i := range list {
		p := &list[i]
		label := lines.Line{lines.S("  "+words.Fit(p.Name, d.column)+"  ", cells.Label)}
		d.hang(label, p.Value.Full(), p.Value.style())
	}
}

// hang adds a text behind a label. A page of a screen has nothing beyond its edge, so a
// word that is longer than the line is broken there.
func (d *drawer) hang(label lines.Line, text string, st cells.Style) {
	if d.ruled {
		text = broken(text, d.width-label.Width())
	}
	d.add(lines.Hang(label, text, st, d.width, 0)...)
}

// broken puts blanks into the words that are longer than a line.
func broken(text string, width int) string {
	var b strings.Builder
	used := 0
	for _, r := range text {
		w := words.Width(string(r))
		if used+w > max(width, 1) {
			b.WriteByte(' ')
			used = 0
		}
		if used += w; r == ' ' {
			used = 0
		}
		b.WriteRune(r)
	}
	return b.String()
}

// The least width of the names of facts, so that values do not move about.
const (
	leastName         = 10
	leastNameOnScreen = 14
)

// Table draws a table.
func (d *drawer) Table(t *Table) {
	d.add(t.Lines().All(d.width)...)
	if t.More != "" {
		d.add(lines.Plain("  " + t.More))
	}
}

// Lines is a table to be laid out.
func (t *Table) Lines() *lines.Table {
	x := &lines.Table{Indent: 2}
	for _, c := range t.Columns {
		x.Columns = append(x.Columns, lines.Column{Head: c.Head, Least: c.Least, Most: c.Most, Right: c.Right, Rank: c.Rank, Rest: c.Rest, Bar: c.Bar})
	}
	for _, r := range t.Rows {
		row := lines.Row{Cells: make([]lines.Cell, len(r.Cells))}
		for i := range r.Cells {
			v := &r.Cells[i]
			row.Cells[i] = lines.C(v.Text, v.style())
			if t.Columns[i].Bar && v.N != nil {
				row.Cells[i] = lines.Cell{Span: lines.S("", Color(r.Color)), Bar: &lines.Bar{Ratio: *v.N / max(t.Largest(i), 1)}}
			}
		}
		x.Rows = append(x.Rows, row)
	}
	return x
}

// Map draws a bank in one line, each cell in the colour of who has most of it, and
// below it what was asked for, to the same scale.
func (d *drawer) Map(m *Map) {
	if l := m.Line(d.width - 4); l != nil {
		d.add(append(lines.Plain("  "), l...))
		d.piece(m, d.width-4-words.Width(m.End)-3)
	}
}

// Line is the bank in one line: "0 ██▓░░░ 1.3 MiB"; nil: there is no room.
func (m *Map) Line(width int) lines.Line {
	n := width - words.Width(m.End) - 3
	if n < leastMap {
		return nil
	}
	l := lines.Plain("0 ")
	for _, c := range m.Cells(n) {
		mark, st := "░", cells.Text
		switch {
		case c.Used >= full:
			mark = "█"
		case c.Used > 0:
			mark = "▓"
		case !m.Exact:
			mark = "?" // what lies there may not be known
		}
		if c.Used > 0 {
			st = Color(c.Color)
		}
		if last := &l[len(l)-1]; len(l) > 1 && last.Style == st {
			last.Text += mark
		} else {
			l = append(l, lines.S(mark, st))
		}
	}
	return append(l, lines.S(" "+m.End, cells.Text))
}

// leastMap is the width from which on a map says something.
const leastMap = 10

// piece draws what was asked for, and its label behind it, before it or, where both
// are too narrow, below it.
func (d *drawer) piece(m *Map, width int) {
	if m.Piece == nil {
		return
	}
	const indent = "    "
	scale := float64(width) / float64(m.Size)
	n := max(int(float64(m.Piece.Size)*scale+0.5), 1)
	more := ""
	if n > width {
		n, more = width, ">"
	}
	at := min(int(float64(m.Piece.At-m.Base)*scale), width-n)
	piece := lines.S(strings.Repeat("▒", n)+more, cells.Bad)
	label := m.Piece.Label
	switch taken := words.Width(label) + 1; {
	case at+n+taken <= width:
		d.add(lines.Line{lines.S(words.Pad(indent, len(indent)+at), cells.Text), piece, lines.S(" "+label, cells.Text)})
	case taken <= at:
		d.add(lines.Line{lines.S(indent+words.PadLeft(label, at-1)+" ", cells.Text), piece})
	default:
		d.add(lines.Line{lines.S(words.Pad(indent, len(indent)+at), cells.Text), piece}, lines.Plain(indent+words.Truncate(label, width)))
	}
}

// Notes draws sentences, a bullet each.
func (d *drawer) Notes(list []Note) {
	bullet := "  - "
	switch {
	case d.ruled:
		bullet = "  "
	case d.titled:
		bullet = "    - "
	}
	for _, n := range list {
		d.hang(lines.Plain(bullet), n.Text, cells.OfNote(n.Level))
	}
}

// Full is a value with the reason why it is missing.
func (v *Value) Full() string {
	if v.Gone && v.Why != "" {
		return v.Text + " (" + v.Why + ")"
	}
	return v.Text
}

func (v *Value) style() cells.Style {
	if v.Gone {
		return cells.Faint
	}
	return cells.OfNote(v.Level)
}

// Color is the style of the nth colour; all beyond share the last one.
func Color(n int) cells.Style {
	if n == 0 {
		return cells.Text
	}
	return cells.Series(min(n, cells.NumSeries) - 1)
}
