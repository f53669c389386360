// Package picture draws the cells of a screen as SVG, in the colours of a
// theme: for documents, and to look at screens without a terminal.
//
// It is a second way to show what the screens draw, beside the terminal of
// package tui. Blocks, braille and lines are drawn as shapes, so that a picture
// does not depend on the fonts of whoever looks at it; letters are text.
package picture

import (
	"bytes"
	"fmt"
	"html"
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

// SVG draws a grid, its corners round or square.
func SVG(g *cells.Grid, t *theme.Theme, round bool) []byte {
	p := painter{theme: t, round: round, fg: 0xd5dae2, bg: 0x101418}
	if text := t.Styles[cells.Text]; text.BG != theme.Default {
		p.fg, p.bg = p.exact(text.FG, p.fg), p.exact(text.BG, p.bg)
	} else if t.Name == "light" {
		p.fg, p.bg = 0x24292f, 0xffffff
	}
	w, h := float64(g.W)*cellW+2*pad, float64(g.H)*cellH+2*pad
	fmt.Fprintf(&p.buf, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %s %s" width="%s" height="%s">`+"\n", num(w), num(h), num(w), num(h))
	p.buf.WriteString(`<style>text{font:14px "DejaVu Sans Mono","Liberation Mono",Menlo,Consolas,monospace;white-space:pre}.b{font-weight:bold}.d{opacity:.6}</style>` + "\n")
	fmt.Fprintf(&p.buf, `<rect width="100%%" height="100%%" rx="8" fill="%s"/>`+"\n", colour(p.bg))
	for y := range g.H {
		p.backgrounds(g, y)
		p.row(g, y)
	}
	p.buf.WriteString("</svg>\n")
	return p.buf.Bytes()
}

type painter struct {
	buf    bytes.Buffer
	theme  *theme.Theme
	round  bool
	fg, bg int32 // of the terminal
}

// look is how a cell is drawn.
type look struct {
	fg, bg               int32
	bold, dim, underline bool
}

func (p *painter) look(c cells.Cell) look {
	s := p.theme.Styles[c.Style]
	l := look{fg: p.exact(s.FG, p.fg), bg: p.exact(s.BG, p.bg), bold: s.Bold, dim: s.Dim, underline: s.Underline}
	if c.Tint > 0 {
		l.bg = p.exact(p.theme.Tints[c.Tint-1], l.bg)
	}
	if s.Reverse {
		l.fg, l.bg = l.bg, l.fg
	}
	return l
}

// exact is a colour in numbers.
func (p *painter) exact(c theme.Color, terminal int32) int32 {
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

// backgrounds draws what is behind a row, as few rectangles as there are
// changes of colour.
func (p *painter) backgrounds(g *cells.Grid, y int) {
	for x := 0; x < g.W; {
		from, bg := x, p.look(g.At(x, y)).bg
		for x < g.W && p.look(g.At(x, y)).bg == bg {
			x++
		}
		if bg != p.bg {
			p.rect(float64(from), float64(y), float64(x-from), 1, bg, 1)
		}
	}
}

// rect draws a rectangle in units of cells.
func (p *painter) rect(x, y, w, h float64, fill int32, opacity float64) {
	fmt.Fprintf(&p.buf, `<rect x="%s" y="%s" width="%s" height="%s" fill="%s"`, num(pad+x*cellW), num(pad+y*cellH), num(w*cellW), num(h*cellH), colour(fill))
	if opacity < 1 {
		fmt.Fprintf(&p.buf, ` opacity="%s"`, num(opacity))
	}
	p.buf.WriteString("/>\n")
}

// row draws the shapes and texts of a row.
func (p *painter) row(g *cells.Grid, y int) {
	for x := 0; x < g.W; {
		c := g.At(x, y)
		l := p.look(c)
		if n := p.fill(g, x, y, l); n > 0 {
			x += n
			continue
		}
		if p.shape(x, y, c.Rune, l) {
			x++
			continue
		}
		from, text := x, ""
		for x < g.W {
			c = g.At(x, y)
			if p.look(c) != l || isShape(c.Rune) {
				break
			}
			if c.Rune != 0 {
				text += string(c.Rune) + c.More
			}
			x++
		}
		p.text(from, y, x-from, text, l)
	}
}

// fill draws cells that are filled alike as one rectangle, without seams, and
// returns how many there are.
func (p *painter) fill(g *cells.Grid, x, y int, l look) (n int) {
	r := g.At(x, y).Rune
	opacity := map[rune]float64{'█': 1, '▓': 0.8, '▒': 0.5, '░': 0.2}[r]
	if opacity == 0 {
		return 0
	}
	for x+n < g.W && g.At(x+n, y).Rune == r && p.look(g.At(x+n, y)) == l {
		n++
	}
	p.rect(float64(x), float64(y), float64(n), 1, l.fg, opacity)
	return n
}

func (p *painter) text(x, y, w int, text string, l look) {
	if blank(text) {
		return
	}
	class := ""
	if l.bold {
		class += "b"
	}
	if l.dim {
		class += " d"
	}
	fmt.Fprintf(&p.buf, `<text x="%s" y="%s" textLength="%s" fill="%s"`, num(pad+float64(x)*cellW), num(pad+float64(y)*cellH+13), num(float64(w)*cellW), colour(l.fg))
	if class != "" {
		fmt.Fprintf(&p.buf, ` class="%s"`, class)
	}
	if l.underline {
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
	return strconv.FormatFloat(float64(int(v*100+0.5))/100, 'f', -1, 64)
}
