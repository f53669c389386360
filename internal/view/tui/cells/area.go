package cells

import (
	"unicode/utf8"

	"github.com/rivo/uniseg"

	"github.com/ttmon/ttmon/internal/field/words"
)

// Area is a rectangle of a grid. Coordinates are its own, from 0; drawing
// outside is cut off. Areas are values: cut them up freely.
type Area struct {
	g    *Grid
	X, Y int // position in the grid
	W, H int
}

// Sub is the part of a that starts at (x, y) and is w by h, as far as a reaches.
func (a Area) Sub(x, y, w, h int) Area {
	x, y = max(x, 0), max(y, 0)
	return Area{
		g: a.g, X: a.X + x, Y: a.Y + y,
		W: max(min(w, a.W-x), 0), H: max(min(h, a.H-y), 0),
	}
}

// Top splits off the first h rows.
func (a Area) Top(h int) (top, rest Area) {
	h = min(max(h, 0), a.H)
	return a.Sub(0, 0, a.W, h), a.Sub(0, h, a.W, a.H-h)
}

// Bottom splits off the last h rows.
func (a Area) Bottom(h int) (rest, bottom Area) {
	h = min(max(h, 0), a.H)
	return a.Sub(0, 0, a.W, a.H-h), a.Sub(0, a.H-h, a.W, h)
}

// Contains reports whether the grid cell (x, y) lies in a.
func (a Area) Contains(x, y int) bool {
	return x >= a.X && y >= a.Y && x < a.X+a.W && y < a.Y+a.H
}

// Empty reports whether there is no room at all.
func (a Area) Empty() bool { return a.W <= 0 || a.H <= 0 }

// Set draws one character of one cell.
func (a Area) Set(x, y int, r rune, s Style) {
	if x < 0 || y < 0 || x >= a.W || y >= a.H {
		return
	}
	i := (a.Y+y)*a.g.W + a.X + x
	a.uncover(i, a.X+x)
	a.g.cells[i] = Cell{Rune: r, Style: s}
}

// uncover blanks the other half of a wide character that cell i is about to cut.
func (a Area) uncover(i, x int) {
	c := a.g.cells
	if c[i].Rune == 0 && x > 0 {
		c[i-1].Rune, c[i-1].More = ' ', ""
	}
	if x+1 < a.g.W && c[i+1].Rune == 0 {
		c[i+1].Rune = ' '
	}
}

// Put draws s from column x of row y and returns the column after it. What
// does not fit is cut off. Control characters are drawn as "?": foreign text
// is escaped before it comes here, this is the last line of defence.
func (a Area) Put(x, y int, s string, st Style) int {
	if y < 0 || y >= a.H {
		return x
	}
	for state := -1; s != "" && x < a.W; {
		if r, n := utf8.DecodeRuneInString(s); single(r) && standsAlone(s[n:]) {
			if r < ' ' || r == 0x7f {
				r = '?'
			}
			a.Set(x, y, r, st)
			s, x, state = s[n:], x+1, -1
			continue
		}
		var cluster string
		var w int
		cluster, s, w, state = uniseg.FirstGraphemeClusterInString(s, state)
		x = a.putCluster(x, y, cluster, w, st)
	}
	return x
}

// single reports whether a character is known to take one cell and to combine
// with nothing before it: ASCII, Latin, and what the screens draw with.
func single(r rune) bool {
	return r < 0x80 || r >= 0xa1 && r < 0x300 && r != 0xad || r >= 0x2500 && r <= 0x259f || r >= 0x2800 && r <= 0x28ff
}

// standsAlone reports whether the next character of text does not combine
// with the one before.
func standsAlone(rest string) bool {
	if rest == "" || rest[0] < utf8.RuneSelf {
		return true
	}
	r, _ := utf8.DecodeRuneInString(rest)
	return single(r)
}

func (a Area) putCluster(x, y int, cluster string, w int, st Style) int {
	r, size := utf8.DecodeRuneInString(cluster)
	switch {
	case w == 0:
		r, size, w = '?', len(cluster), 1
	case x+w > a.W: // half a wide character is none
		a.Set(x, y, ' ', st)
		return a.W
	}
	a.Set(x, y, r, st)
	if x < 0 {
		return x + w
	}
	a.g.cells[(a.Y+y)*a.g.W+a.X+x].More = cluster[size:]
	if w == 2 {
		a.Set(x+1, y, ' ', st) // uncovers what it cuts
		a.g.cells[(a.Y+y)*a.g.W+a.X+x+1] = Cell{Style: st}
		a.g.cells[(a.Y+y)*a.g.W+a.X+x] = Cell{Rune: r, Style: st, More: cluster[size:]}
	}
	return x + w
}

// PutRight draws s so that it ends before column x; it is cut at its left end.
func (a Area) PutRight(x, y int, s string, st Style) {
	a.Put(x-words.Width(s), y, s, st)
}

// At is the cell at (x, y), which must lie in the area.
func (a Area) At(x, y int) Cell { return a.g.At(a.X+x, a.Y+y) }

// Fill draws every cell of the area.
func (a Area) Fill(r rune, s Style) {
	for y := range a.H {
		for x := range a.W {
			a.Set(x, y, r, s)
		}
	}
}

// Paint changes the style of n cells from (x, y) and leaves their text.
func (a Area) Paint(x, y, n int, s Style) {
	if y < 0 || y >= a.H {
		return
	}
	for x, end := max(x, 0), min(x+n, a.W); x < end; x++ {
		a.g.cells[(a.Y+y)*a.g.W+a.X+x].Style = s
	}
}

// Tint colours what is behind a cell and leaves the cell as it is.
func (a Area) Tint(x, y int, tint uint8) {
	if x >= 0 && y >= 0 && x < a.W && y < a.H {
		a.g.cells[(a.Y+y)*a.g.W+a.X+x].Tint = tint
	}
}

// HLine draws a thin rule of n cells.
func (a Area) HLine(x, y, n int, s Style) {
	for i := range n {
		a.Set(x+i, y, '─', s)
	}
}

// Box draws a frame along the area's edge, its title in the top edge, and
// returns the area inside.
func (a Area) Box(title string, s Style) Area {
	if a.W < 2 || a.H < 2 {
		return a.Sub(0, 0, 0, 0)
	}
	right, bottom := a.W-1, a.H-1
	a.HLine(1, 0, a.W-2, s)
	a.HLine(1, bottom, a.W-2, s)
	for y := 1; y < bottom; y++ {
		a.Set(0, y, '│', s)
		a.Set(right, y, '│', s)
	}
	for _, c := range []struct {
		x, y int
		r    rune
	}{{0, 0, '┌'}, {right, 0, '┐'}, {0, bottom, '└'}, {right, bottom, '┘'}} {
		a.Set(c.x, c.y, with(a.At(c.x, c.y).Rune, c.r), s)
	}
	if title != "" {
		a.Sub(1, 0, a.W-2, 1).Put(0, 0, " "+title+" ", s)
	}
	return a.Sub(1, 1, a.W-2, a.H-2)
}

// Cursor puts the terminal's cursor at (x, y).
func (a Area) Cursor(x, y int) {
	if x >= 0 && y >= 0 && x < a.W && y < a.H {
		a.g.CursorX, a.g.CursorY = a.X+x, a.Y+y
	}
}

// Copy draws what is in another grid, as far as it reaches.
func (a Area) Copy(from *Grid) {
	for y := range min(a.H, from.H) {
		for x := range min(a.W, from.W) {
			a.g.cells[(a.Y+y)*a.g.W+a.X+x] = from.cells[y*from.W+x]
		}
	}
}
