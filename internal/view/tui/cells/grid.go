package cells

import "strings"

// Cell is one place on the screen. The cell right of a wide character is
// covered by it and has Rune 0.
type Cell struct {
	Rune  rune
	Style Style
	Tint  uint8  // 1 to NumTints: coloured behind, where the terminal can; 0: not
	More  string // combining characters after Rune, mostly none
}

var blank = Cell{Rune: ' '}

// Grid is a screen's worth of cells. The zero Grid is empty; Resize gives it room.
type Grid struct {
	W, H  int
	cells []Cell

	// CursorX, CursorY is where the terminal's cursor stands; negative hides it.
	CursorX, CursorY int
}

// NewGrid is an empty grid of w by h cells.
func NewGrid(w, h int) *Grid {
	g := &Grid{}
	g.Resize(w, h)
	return g
}

// Resize gives the grid a new size and clears it.
func (g *Grid) Resize(w, h int) {
	g.W, g.H = max(w, 0), max(h, 0)
	if n := g.W * g.H; n <= cap(g.cells) {
		g.cells = g.cells[:n]
	} else {
		g.cells = make([]Cell, n)
	}
	g.Clear()
}

// Clear blanks every cell and hides the cursor.
func (g *Grid) Clear() {
	for i := range g.cells {
		g.cells[i] = blank
	}
	g.CursorX, g.CursorY = -1, -1
}

// At is the cell in column x of row y, which must lie in the grid.
func (g *Grid) At(x, y int) Cell { return g.cells[y*g.W+x] }

// Area is the whole grid as an area.
func (g *Grid) Area() Area { return Area{g: g, W: g.W, H: g.H} }

// Row is the text of row y, without trailing blanks.
func (g *Grid) Row(y int) string {
	var b strings.Builder
	for _, c := range g.cells[y*g.W : (y+1)*g.W] {
		if c.Rune == 0 {
			continue
		}
		b.WriteRune(c.Rune)
		b.WriteString(c.More)
	}
	return strings.TrimRight(b.String(), " ")
}

// String is the text of the grid, a line per row.
func (g *Grid) String() string {
	var b strings.Builder
	for y := range g.H {
		b.WriteString(g.Row(y))
		b.WriteByte('\n')
	}
	return b.String()
}

// Diff calls emit for each cell in which g differs from prev, and for every
// cell if the sizes differ. It returns how many there were.
func (g *Grid) Diff(prev *Grid, emit func(x, y int, c Cell)) int {
	all := prev.W != g.W || prev.H != g.H
	n := 0
	for i, c := range g.cells {
		if all || c != prev.cells[i] {
			emit(i%g.W, i/g.W, c)
			n++
		}
	}
	return n
}
