// Package picture draws the cells of a screen as SVG, in the colours of a
// theme: for documents, and to look at screens without a terminal.
//
// It is a second way to show what the screens draw, beside the terminal of
// package tui. Blocks, braille and lines are drawn as shapes, so that a picture
// does not depend on the viewer's fonts; letters are text.
package picture

import (
	"bytes"
	"fmt"
	"html"
	"math"
	"strconv"

	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
)

// Size of a cell.
const (
	cellW = 8.4
	cellH = 17.0
	pad   = 10.0
)

// basic are the sixteen colours of a terminal, for themes that leave the choice
// of them to it.
var basic = [16]int32{
	0x101418, 0xe06c75, 0x8cc570, 0xd9a94f, 0x5b9bd5, 0xc07bd8, 0x4fb8c6, 0xc8ccd4,
	0x6b7380, 0xff7b86, 0xa5e075, 0xf2cf66, 0x76b8ff, 0xdf9cf0, 0x6fdbe8, 0xffffff,
}

// Style is how a cell is drawn, in the colours of a screen.
type Style struct {
	FG, BG               int32
	Bold, Dim, Underline bool
}

// Cell is one place of a screen. The cell right of a wide character has Rune 0.
type Cell struct {
	Rune  rune
	More  string // combining characters after Rune
	Style Style
}

// Screen is what a terminal shows.
type Screen struct {
	W, H   int
	FG, BG int32 // of the terminal
	Round  bool  // corners of frames
	Cells  []Cell
}

func (s *Screen) at(x, y int) Cell { return s.Cells[y*s.W+x] }

// SVG draws a grid in the colours of a theme, its corners round or square.
func SVG(g *cells.Grid, t *theme.Theme, round bool) []byte {
	s := ofGrid(g, t)
	s.Round = round
	return s.SVG()
}

// SVG draws the screen.
func (s *Screen) SVG() []byte {
	p := painter{screen: s}
	p.writeHead(s)
	for y := range s.H {
		p.row(y)
	}
	p.buf.WriteString("</svg>\n")
	return p.buf.Bytes()
}

// writeHead writes the head of a picture as large as a screen, and its background.
func (p *painter) writeHead(s *Screen) {
	w, h := float64(s.W)*cellW+2*pad, float64(s.H)*cellH+2*pad
	fmt.Fprintf(&p.buf, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s">`+"\n", num(w), num(h), num(w), num(h))
	p.buf.WriteString(`<style>text{font:14px "DejaVu Sans Mono","Liberation Mono",Menlo,Consolas,monospace;white-space:pre}.b{font-weight:bold}.d{opacity:.6}` +
		`.o{stroke-width:2.6;stroke-linecap:round}path{fill:none}</style>` + "\n")
	fmt.Fprintf(&p.buf, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", colour(s.BG))
}

// ofGrid is a grid as a terminal with that theme shows it.
func ofGrid(g *cells.Grid, t *theme.Theme) *Screen {
	s := &Screen{W: g.W, H: g.H, FG: 0xd5dae2, BG: 0x101418, Cells: make([]Cell, 0, g.W*g.H)}
	if text := t.Styles[cells.Text]; text.BG != theme.Default {
		s.FG, s.BG = exact(text.FG, s.FG), exact(text.BG, s.BG)
	} else if t.Name == "light" {
		s.FG, s.BG = 0x24292f, 0xffffff
	}
	for y := range g.H {
		for x := range g.W {
			c := g.At(x, y)
			s.Cells = append(s.Cells, Cell{c.Rune, c.More, lookOf(c, t, s)})
		}
	}
	return s
}

func lookOf(c cells.Cell, t *theme.Theme, terminal *Screen) Style {
	s := t.Styles[c.Style]
	l := Style{FG: exact(s.FG, terminal.FG), BG: exact(s.BG, terminal.BG), Bold: s.Bold, Dim: s.Dim, Underline: s.Underline}
	if c.Tint > 0 {
		l.BG = exact(t.Tints[c.Tint-1], l.BG)
	}
	if s.Reverse {
		l.FG, l.BG = l.BG, l.FG
	}
	return l
}

// painter writes rows of a screen as SVG.
type painter struct {
	buf    bytes.Buffer
	screen *Screen
	y      float64 // of the row that is drawn, in cells
}

// exact is a colour in numbers.
func exact(c theme.Color, terminal int32) int32 {
	if v, ok := c.Exact(); ok {
		return v
	}
	switch {
	case c < 0:
		return terminal
	case c < 16:
		return basic[c]
	case c < 232: // a cube of six steps
		step := func(n theme.Color) int32 {
			if n == 0 {
				return 0
			}
			return int32(55 + 40*n)
		}
		n := c - 16
		return step(n/36)<<16 | step(n/6%6)<<8 | step(n%6)
	default:
		v := int32(8 + 10*(c-232))
		return v<<16 | v<<8 | v
	}
}

// row draws a row: what is behind it, its shapes and its texts.
func (p *painter) row(y int) {
	p.y = float64(y)
	p.backgrounds(y)
	for x := 0; x < p.screen.W; {
		x += p.run(x, y)
	}
}

// backgrounds draws what is behind a row, as few rectangles as there are
// changes of colour.
func (p *painter) backgrounds(y int) {
	s := p.screen
	for x := 0; x < s.W; {
		from, bg := x, s.at(x, y).Style.BG
		for x < s.W && s.at(x, y).Style.BG == bg {
			x++
		}
		if bg != s.BG {
			p.rect(float64(from), 0, float64(x-from), 1, bg, 1)
		}
	}
}

// run draws the cells from x that are drawn together, and returns how many they are.
func (p *painter) run(x, y int) int {
	c := p.screen.at(x, y)
	switch k := kindOf(c.Rune); k {
	case letter:
	case shade:
		n := p.while(x, y, func(next Cell) bool { return next.Rune == c.Rune && next.Style == c.Style })
		p.rect(float64(x), 0, float64(n), 1, c.Style.FG, shades[c.Rune])
		return n
	default:
		n := p.while(x, y, func(next Cell) bool { return kindOf(next.Rune) == k && next.Style == c.Style })
		p.shapes(k, x, y, n, c.Style.FG)
		return n
	}
	text := ""
	n := p.while(x, y, func(next Cell) bool {
		if next.Style != c.Style || kindOf(next.Rune) != letter {
			return false
		}
		if next.Rune != 0 {
			text += string(next.Rune) + next.More
		}
		return true
	})
	p.text(x, n, text, c.Style)
	return n
}

// while counts the cells from x on that are so.
func (p *painter) while(x, y int, so func(Cell) bool) (n int) {
	for x+n < p.screen.W && so(p.screen.at(x+n, y)) {
		n++
	}
	return max(n, 1)
}

// shades are characters that fill a cell, and how much of it.
var shades = map[rune]float64{'█': 1, '▓': 0.8, '▒': 0.5, '░': 0.2}

// rect draws a rectangle in units of cells, y from the top of the row.
func (p *painter) rect(x, y, w, h float64, fill int32, opacity float64) {
	y += p.y
	fmt.Fprintf(&p.buf, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"`, num(pad+x*cellW), num(pad+y*cellH), num(w*cellW), num(h*cellH), colour(fill))
	if opacity < 1 {
		fmt.Fprintf(&p.buf, ` opacity="%s"`, num(opacity))
	}
	p.buf.WriteString("/>\n")
}

func (p *painter) text(x, w int, text string, l Style) {
	if blank(text) {
		return
	}
	class := ""
	if l.Bold {
		class += "b"
	}
	if l.Dim {
		class += " d"
	}
	fmt.Fprintf(&p.buf, `<text x="%s" y="%s" textLength="%s" fill="%s"`, num(pad+float64(x)*cellW), num(pad+p.y*cellH+13), num(float64(w)*cellW), colour(l.FG))
	if class != "" {
		fmt.Fprintf(&p.buf, ` class="%s"`, class)
	}
	if l.Underline {
		p.buf.WriteString(` text-decoration="underline"`)
	}
	fmt.Fprintf(&p.buf, ` xml:space="preserve">%s</text>`+"\n", html.EscapeString(text))
}

func blank(s string) bool {
	for _, r := range s {
		if r != ' ' {
			return false
		}
	}
	return true
}

func colour(v int32) string { return fmt.Sprintf("#%06x", v) }

// num is a coordinate with at most two digits behind the point.
func num(v float64) string {
	return strconv.FormatFloat(math.Round(v*100)/100, 'f', -1, 64)
}
