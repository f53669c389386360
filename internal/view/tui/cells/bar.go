package cells

import (
	"math"

	"github.com/ttmon/ttmon/internal/field/words"
)

// Bar is a gauge and its figure: "[████████▌      ] 10.2/24.0 GiB". The figure
// stands beside the bar, never over it: the end of a bar is what people read.
type Bar struct {
	Ratio float64 // 0..1 filled; NaN draws no bar: an empty one would say "nothing"
	Text  string  // the figure
	Fill  Style   // of the filled part
	Mark  rune    // what it is filled with; 0 means blocks, drawn to an eighth
	Soft  bool    // the figure is not exact: the end of the bar is soft
	// Beside is how many cells the figure has, so that bars below each other
	// have the same length; 0 means as many as the text needs.
	Beside int
}

// MinBar is the least that a bar is drawn with; in less room there is only
// the figure.
const MinBar = 5

// Bar draws b in w cells from (x, y).
func (a Area) Bar(x, y, w int, b Bar) {
	beside := max(b.Beside, words.Width(b.Text))
	bar := w - beside - 1
	if beside == 0 {
		bar = w
	}
	if bar < MinBar || math.IsNaN(b.Ratio) {
		room := w
		if words.Width(b.Text) > w { // a reason that is cut off does not touch the label before it
			room--
		}
		a.Sub(x, y, w, 1).PutRight(w, 0, words.Truncate(b.Text, room), Text)
		return
	}
	a.Set(x, y, '[', Faint)
	a.Set(x+bar-1, y, ']', Faint)
	a.fill(x+1, y, bar-2, &b)
	if beside > 0 {
		a.Sub(x+bar, y, beside+1, 1).PutRight(beside+1, 0, b.Text, Text)
	}
}

// fill draws the inside of a bar in w cells.
func (a Area) fill(x, y, w int, b *Bar) {
	if b.Mark != 0 {
		n := words.Filled(b.Ratio, w)
		for i := range w {
			if i < n {
				a.Set(x+i, y, b.Mark, b.Fill)
			} else {
				a.Set(x+i, y, ' ', Text)
			}
		}
		return
	}
	n := Eighths(b.Ratio, w)
	for i := range w {
		a.Set(x+i, y, eighth(n-8*i), b.Fill)
	}
	if b.Soft && n > 0 {
		a.Set(x+(n-1)/8, y, '▒', b.Fill)
	}
}

// Eighths is how many eighths of w cells a bar of the given ratio fills. Only
// nothing is drawn empty and only everything is drawn full, and more is never
// drawn shorter than less.
func Eighths(ratio float64, w int) int {
	full := 8 * w
	switch {
	case w <= 0 || !(ratio > 0):
		return 0
	case ratio >= 1:
		return full
	}
	return min(max(int(math.Round(ratio*float64(full))), 1), full-1)
}

// eighth is a block of n eighths of a cell, from the left.
func eighth(n int) rune {
	switch {
	case n <= 0:
		return ' '
	case n >= 8:
		return '█'
	}
	return rune('▏' - (n - 1)) // ▏▎▍▌▋▊▉
}

// Meter draws a ratio as blocks to an eighth of a cell, without a frame: in a
// row of a list, whose own style it leaves behind it. Where there is no ratio (NaN)
// nothing is drawn.
func (a Area) Meter(x, y, w int, ratio float64, soft bool, fill Style) {
	if !math.IsNaN(ratio) {
		a.fill(x, y, w, &Bar{Ratio: ratio, Soft: soft, Fill: fill})
	}
}

// Shade draws a ratio as solid and light blocks, "▓▓▓░░░". The bar of a figure
// that is not exact has a soft end, "▓▓▒░░░". Where there is no ratio (NaN)
// nothing is drawn: an empty bar would say that nothing is taken.
func (a Area) Shade(x, y, w int, ratio float64, soft bool, fill Style) {
	if math.IsNaN(ratio) {
		return
	}
	n := words.Filled(ratio, w)
	for i := range w {
		switch {
		case soft && i == n-1:
			a.Set(x+i, y, '▒', fill)
		case i < n:
			a.Set(x+i, y, '▓', fill)
		default:
			a.Set(x+i, y, '░', Faint)
		}
	}
}
