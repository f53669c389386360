package text

import (
	"math"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// column is one column of a grid. Its width is the most of its least width,
// its head and its cells: the least width is what a value can ever take, so
// that the column stays where it is while values change.
type column struct {
	head  string
	least int
	right bool // cells and head are aligned to the right
	rank  int  // when space is short the highest rank goes first; 0 never goes
	tight bool // one blank before it instead of two: it begins with one, or with a mark
	bar   bool // it takes what space is left, up to maxBar
	last  bool // it takes all that is left, and is cut there
}

// Widths of a bar.
const (
	minBar = 4
	maxBar = 20
)

// wantLast is how much of a command makes other columns give way to it.
func wantLast(total int) int { return min(34, total*3/10) }

type cell struct {
	text  string
	style style
}

func c(text string, st ...style) cell {
	if len(st) > 0 {
		return cell{text, st[0]}
	}
	return cell{text: text}
}

// row is a line of a grid: its cells, or a rule with a title.
type row struct {
	cells []cell
	title string
	bar   bar
}

// bar is how full something is, and how sure that is; ok is false where there
// is nothing to draw.
type bar struct {
	ratio float64
	bound model.Bound
	ok    bool
}

type grid struct {
	ruled   bool // a rule between heads and rows
	columns []column
	rows    []row
}

// layout decides which columns are shown and how wide they are; -1: not shown.
func (g *grid) layout(total int) []int {
	widths := make([]int, len(g.columns))
	for i := range g.columns {
		widths[i] = g.wanted(i, total)
	}
	g.drop(widths, total)
	for i, col := range g.columns { // what was wanted, but is not there
		if over := g.used(widths) - total; col.last && over > 0 {
			widths[i] = max(col.least, widths[i]-over)
		}
	}
	for i, col := range g.columns {
		left := total - g.used(widths)
		switch {
		case left <= 0 || widths[i] < 0:
		case col.bar:
			widths[i] = min(maxBar, widths[i]+left)
		case col.last:
			widths[i] += left
		}
	}
	return widths
}

// wanted is how wide a column would be if there were room: as its widest cell,
// the last one up to what makes sense of it, a bar no wider than it must be.
func (g *grid) wanted(i, total int) int {
	col := &g.columns[i]
	if col.bar {
		return col.least
	}
	most := math.MaxInt
	if col.last {
		most = wantLast(total)
	}
	w := max(col.least, words.Width(col.head))
	for _, r := range g.rows {
		if i < len(r.cells) {
			w = max(w, min(most, words.Width(r.cells[i].text)))
		}
	}
	return w
}

// drop takes columns away, the highest rank first, until the rest fits, and
// puts back what turns out to fit after all.
func (g *grid) drop(widths []int, total int) {
	full := slices.Clone(widths)
	var gone []int
	for g.used(widths) > total {
		next := -1
		for i, col := range g.columns {
			if widths[i] >= 0 && col.rank > 0 && (next < 0 || col.rank > g.columns[next].rank) {
				next = i
			}
		}
		if next < 0 {
			break
		}
		gone = append(gone, next)
		widths[next] = -1
	}
	for _, i := range slices.Backward(gone) {
		if widths[i] = full[i]; g.used(widths) > total {
			widths[i] = -1
		}
	}
}

func (g *grid) used(widths []int) int {
	n := 1
	for i, w := range widths {
		if w >= 0 {
			n += w + g.gap(i, widths)
		}
	}
	return n
}

// gap is how many blanks stand before column i.
func (g *grid) gap(i int, widths []int) int {
	if !slices.ContainsFunc(widths[:i], func(w int) bool { return w >= 0 }) {
		return 0
	}
	if g.columns[i].tight && i > 0 && widths[i-1] >= 0 {
		return 1
	}
	return 2
}

// print draws the grid. The head of a column whose left neighbour is a bar is
// said above the bar.
func (g *grid) print(p *printer, heads bool) {
	total := p.layoutWidth()
	widths := g.layout(total)
	cut := p.Width > 0
	if heads {
		p.blanks(1)
		for i, col := range g.columns {
			head := col.head
			switch {
			case widths[i] < 0:
				continue
			case col.bar:
				head = g.columns[i+1].head
			case i > 0 && g.columns[i-1].bar && widths[i-1] >= 0:
				head = ""
			}
			p.blanks(g.gap(i, widths))
			p.cell(c(head, faint), widths[i], col.right && !col.bar)
		}
		p.newline()
		if g.ruled && (len(g.rows) == 0 || g.rows[0].title == "") {
			p.rule("")
		}
	}
	for _, r := range g.rows {
		g.printRow(p, r, widths, cut)
	}
}

func (g *grid) printRow(p *printer, r row, widths []int, cut bool) {
	if r.title != "" {
		p.rule(r.title)
		return
	}
	p.blanks(1)
	for i, col := range g.columns {
		if widths[i] < 0 {
			continue
		}
		p.blanks(g.gap(i, widths))
		if col.bar {
			if r.bar.ok && !p.Plain {
				p.appendStyled(words.SoftBar(r.bar.ratio, widths[i], r.bar.bound), plain) // a bar is there only where it fits
				p.used += widths[i]
			} else {
				p.blanks(widths[i])
			}
			continue
		}
		cl := c("")
		if i < len(r.cells) {
			cl = r.cells[i]
		}
		if col.last && !cut {
			p.write(cl.text, cl.style)
			continue
		}
		p.cell(cl, widths[i], col.right)
	}
	p.newline()
}

// cell prints a cell in its width; the style is on the text alone, so that
// blanks at the end of a line can go.
func (p *printer) cell(cl cell, width int, right bool) {
	text := words.Truncate(cl.text, width)
	space := width - words.Width(text)
	if right {
		p.blanks(space)
	}
	p.write(text, cl.style)
	if !right {
		p.blanks(space)
	}
}

func pad(s string, width int, right bool) string {
	if right {
		return words.PadLeft(s, width)
	}
	return words.Pad(s, width)
}
