package lines

import (
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Column is one column of a table. It is as wide as the most of its least width, its
// head and its cells: the least width is what a value can ever take, so that the
// column stays where it is while values change.
type Column struct {
	Head  string
	Least int
	Most  int  // it is cut there and, where room is short, down to Least; 0: it is not
	Right bool // cells and head are aligned to the right
	Rank  int  // when space is short the highest rank goes first; 0 never goes
	Tight bool // one blank before it instead of two: it begins with one, or with a mark
	Bar   bool // it takes what space is left, up to maxBar
	Rest  bool // it takes all that is left, and is cut there
}

// Widths of a bar.
const (
	MinBar = 4
	maxBar = 20
)

// Hidden is the width of a column that there is no room for.
const Hidden = -1

// Place is where a column stands in a line.
type Place struct{ X, W int }

// Cell is what stands in a column of a row.
type Cell struct {
	Span
	Bar *Bar // drawn in the width of the column, in the style of the span
}

// Bar is how full something is, and how sure that is.
type Bar struct {
	Ratio float64
	Bound model.Bound
}

// C is a cell with a text.
func C(text string, st ...cells.Style) Cell {
	if len(st) > 0 {
		return Cell{Span: Span{text, st[0]}}
	}
	return Cell{Span: Span{Text: text}}
}

// Row is a row of a table: its cells, or a rule with a title. Missing cells at its
// end are empty.
type Row struct {
	Cells []Cell
	Title string
}

// Table is rows with aligned columns.
type Table struct {
	Columns []Column
	Rows    []Row
	Indent  int  // blanks before each line
	Fixed   bool // columns do not grow with their cells: for screens, where they keep their places
	Close   bool // one blank between columns instead of two: for screens
	Ruled   bool // text draws a rule between heads and rows
}

// Add adds a row of plain text.
func (t *Table) Add(texts ...string) {
	r := Row{Cells: make([]Cell, len(texts))}
	for i, text := range texts {
		r.Cells[i] = C(text)
	}
	t.Rows = append(t.Rows, r)
}

// Heads makes columns as wide as what is in them; those with ">" before their name
// are aligned to the right.
func Heads(heads ...string) (list []Column) {
	for _, h := range heads {
		c := Column{Head: h}
		if h != "" && h[0] == '>' {
			c.Head, c.Right = h[1:], true
		}
		list = append(list, c)
	}
	return list
}

// Layout decides which columns are shown in a width, where, and how wide they are.
func (t *Table) Layout(total int) []Place {
	widths := make([]int, len(t.Columns))
	for i := range t.Columns {
		widths[i] = t.wanted(i, total)
	}
	t.drop(widths, total)
	for _, rest := range []bool{true, false} { // what was wanted, but is not there
		for i, col := range t.Columns {
			if over := t.used(widths) - total; widths[i] > col.Least && over > 0 && col.Rest == rest && (rest || col.Most > 0) {
				widths[i] = max(col.Least, widths[i]-over)
			}
		}
	}
	for i, col := range t.Columns {
		left := total - t.used(widths)
		switch {
		case left <= 0 || widths[i] < 0:
		case col.Bar:
			widths[i] = min(maxBar, widths[i]+left)
		case col.Rest:
			widths[i] += left
		case t.Fixed && col.Most > widths[i]:
			widths[i] = min(col.Most, widths[i]+left)
		}
	}
	at, x := make([]Place, len(widths)), t.Indent
	for i, w := range widths {
		at[i] = Place{x, w}
		if w >= 0 {
			at[i].X += t.gap(i, widths)
			x = at[i].X + w
		}
	}
	return at
}

// wanted is how wide a column would be if there were room: as its widest cell, the
// last one up to what makes sense of it, a bar no wider than it must be.
func (t *Table) wanted(i, total int) int {
	col := &t.Columns[i]
	if col.Bar || t.Fixed {
		return col.Least
	}
	most := math.MaxInt
	switch {
	case col.Rest:
		most = wantRest(total)
	case col.Most > 0:
		most = col.Most
	}
	w := max(col.Least, words.Width(col.Head))
	for _, r := range t.Rows {
		if i < len(r.Cells) {
			w = max(w, min(most, words.Width(r.Cells[i].Text)))
		}
	}
	return w
}

// wantRest is how much of a command makes other columns give way to it.
func wantRest(total int) int { return min(34, total*3/10) }

// drop takes columns away, the highest rank first, until the rest fits, and puts back
// what turns out to fit after all.
func (t *Table) drop(widths []int, total int) {
	full := slices.Clone(widths)
	var gone []int
	for t.used(widths) > total {
		next := -1
		for i, col := range t.Columns {
			if widths[i] >= 0 && col.Rank > 0 && (next < 0 || col.Rank > t.Columns[next].Rank) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		gone = append(gone, next)
		widths[next] = Hidden
	}
	if t.Fixed { // what is left is for those that may grow
		return
	}
	for _, i := range slices.Backward(gone) {
		if widths[i] = full[i]; t.used(widths) > total {
			widths[i] = Hidden
		}
	}
}

func (t *Table) used(widths []int) int {
	n := t.Indent
	for i, w := range widths {
		if w >= 0 {
			n += w + t.gap(i, widths)
		}
	}
	return n
}

// gap is how many blanks stand before column i.
func (t *Table) gap(i int, widths []int) int {
	if !slices.ContainsFunc(widths[:i], func(w int) bool { return w >= 0 }) {
		return 0
	}
	if t.Close || t.Columns[i].Tight && i > 0 && widths[i-1] >= 0 {
		return 1
	}
	return 2
}

// Head is the line of heads. That of a column that belongs to the bar on its left is said
// above the bar.
func (t *Table) Head(at []Place, st cells.Style) Line {
	heads := make([]Cell, len(at))
	for i, col := range t.Columns {
		switch {
		case col.Bar && t.Columns[i+1].Tight:
			heads[i] = C(t.Columns[i+1].Head, st)
		case col.Tight && i > 0 && t.Columns[i-1].Bar && at[i-1].W >= 0:
		default:
			heads[i] = C(col.Head, st)
		}
	}
	return t.line(at, heads, true, true)
}

// All are the lines of a table, with its heads.
func (t *Table) All(width int) (list []Line) {
	at := t.Layout(width)
	if t.HasHeads() {
		list = append(list, t.Head(at, cells.Faint))
	}
	for i := range t.Rows {
		list = append(list, t.Line(at, &t.Rows[i], true))
	}
	return list
}

// Line is a row. Where the last column is not to be cut, it is as long as it likes.
func (t *Table) Line(at []Place, r *Row, cut bool) Line { return t.line(at, r.Cells, cut, false) }

func (t *Table) line(at []Place, list []Cell, cut, head bool) (l Line) {
	x := 0
	for i, col := range t.Columns {
		if at[i].W < 0 || i >= len(list) {
			continue
		}
		c, w := list[i], at[i].W
		text := c.Text
		switch {
		case c.Bar != nil:
			text = words.SoftBar(c.Bar.Ratio, w, c.Bar.Bound)
		case !col.Rest || cut:
			text = words.Truncate(text, w)
		}
		begin := at[i].X
		if col.Right && !(head && col.Bar) {
			begin = max(begin, begin+w-words.Width(text))
		}
		if text == "" {
			continue
		}
		l = append(l, Span{Text: blanks(begin - x)}, Span{text, c.Style})
		x = begin + words.Width(text)
	}
	return l
}
