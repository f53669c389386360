package chart

import "github.com/ttmon/ttmon/internal/view/tui/cells"

// Dots per cell.
const (
	dotsX = 2
	dotsY = 4
)

// dotBits is the braille bit of each dot, by row and column within the cell.
var dotBits = [dotsY][dotsX]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// canvas collects dots. A cell has one style: the last line through it wins.
type canvas struct {
	w, h   int // in cells
	bits   []uint8
	styles []cells.Style
}

func newCanvas(w, h int) *canvas {
	return &canvas{w: w, h: h, bits: make([]uint8, w*h), styles: make([]cells.Style, w*h)}
}

// dot sets the dot in column x from the left and row y from the bottom.
func (c *canvas) dot(x, y int, s cells.Style) {
	y = c.h*dotsY - 1 - y
	if x < 0 || y < 0 || x >= c.w*dotsX || y >= c.h*dotsY {
		return
	}
	i := y/dotsY*c.w + x/dotsX
	c.bits[i] |= dotBits[y%dotsY][x%dotsX]
	c.styles[i] = s
}

// column sets the dots of column x from row lo to row hi.
func (c *canvas) column(x, lo, hi int, s cells.Style) {
	for y := lo; y <= hi; y++ {
		c.dot(x, y, s)
	}
}

// draw copies all cells with dots in them to an area.
func (c *canvas) draw(a cells.Area) {
	for i, b := range c.bits {
		if b != 0 {
			a.Set(i%c.w, i/c.w, '⠀'+rune(b), c.styles[i])
		}
	}
}
