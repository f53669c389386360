package chart

import "github.com/ttmon/ttmon/internal/view/tui/cells"

// Dots per cell.
const (
	dotsX = 2
	dotsY = 4
)

// dotBits is the braille bit of each dot, by row and column within the cell.
var dotBits = [dotsY][dotsX]uint8{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}

// upperDots are those of the upper half of a cell.
const upperDots = 0x1b

// canvas collects the dots of several lines. A cell has one style: that of the
// line with the most dots in it, which is the one that runs through its middle.
type canvas struct {
	w, h int // in cells
	bits []uint8
	// counts has the dots of each line in each cell, line by line.
	counts [][]uint8
}

func newCanvas(w, h int) *canvas {
	return &canvas{w: w, h: h, bits: make([]uint8, w*h)}
}

// line begins the next line and returns its number.
func (c *canvas) line() int {
	c.counts = append(c.counts, make([]uint8, c.w*c.h))
	return len(c.counts) - 1
}

// dot sets the dot of a line in column x from the left and row y from the bottom.
func (c *canvas) dot(x, y, line int) {
	y = c.h*dotsY - 1 - y
	if x < 0 || y < 0 || x >= c.w*dotsX || y >= c.h*dotsY {
		return
	}
	i := y/dotsY*c.w + x/dotsX
	c.bits[i] |= dotBits[y%dotsY][x%dotsX]
	c.counts[line][i]++
}

// column sets the dots of column x from row lo to row hi.
func (c *canvas) column(x, lo, hi, line int) {
	for y := lo; y <= hi; y++ {
		c.dot(x, y, line)
	}
}

// tint colours what is behind the highest line, the more the higher.
func (c *canvas) tint(a cells.Area) {
	for x := range c.w {
		y := 0
		for y < c.h && c.bits[y*c.w+x] == 0 {
			y++
		}
		if y < c.h && c.bits[y*c.w+x]&upperDots == 0 {
			y++ // the line runs through the lower half: the upper one is above it
		}
		for ; y < c.h; y++ {
			a.Tint(x, y, cells.TintAt(1-float64(y)/float64(max(c.h-1, 1))))
		}
	}
}

// shade copies all cells with dots in them to an area, brighter the higher they
// are.
func (c *canvas) shade(a cells.Area) {
	for i, b := range c.bits {
		if b != 0 {
			y := i / c.w
			a.Set(i%c.w, y, '⠀'+rune(b), cells.RampAt(1-float64(y)/float64(max(c.h-1, 1))))
		}
	}
}

// draw copies all cells with dots in them to an area, in the styles of the lines.
func (c *canvas) draw(a cells.Area, styles []cells.Style) {
	for i, b := range c.bits {
		if b == 0 {
			continue
		}
		most := 0
		for l := range c.counts {
			if c.counts[l][i] > c.counts[most][i] {
				most = l
			}
		}
		a.Set(i%c.w, i/c.w, '⠀'+rune(b), styles[most])
	}
}
