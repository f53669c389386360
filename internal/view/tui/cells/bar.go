package cells

import (
	"math"

	"github.com/ttmon/ttmon/internal/view/words"
)

// Bar is the bar nvtop's users know: "[||||||    10.2/24.0 GiB]", the value
// written into its right end.
type Bar struct {
	Ratio float64 // 0..1 filled; NaN draws no fill
	Text  string  // written at the right end, over the bar
	Fill  Style   // of the filled part
	Mark  rune    // what it is filled with; 0 means '|'
	Soft  bool    // the figure is not exact: the end of the bar is soft
}

// Bar draws b in w cells from (x, y).
func (a Area) Bar(x, y, w int, b Bar) {
	if w < 3 {
		return
	}
	mark := b.Mark
	if mark == 0 {
		mark = '|'
	}
	a.Set(x, y, '[', Faint)
	a.Set(x+w-1, y, ']', Faint)
	n := words.Filled(b.Ratio, w-2)
	for i := range w - 2 {
		switch {
		case b.Soft && i == n-1:
			a.Set(x+1+i, y, '¦', b.Fill)
		case i < n:
			a.Set(x+1+i, y, mark, b.Fill)
		default:
			a.Set(x+1+i, y, ' ', Text)
		}
	}
	a.Sub(x+1, y, w-2, 1).PutRight(w-2, 0, b.Text, Text)
}

// Shade draws a ratio as solid and light blocks: "▓▓▓░░░".
func (a Area) Shade(x, y, w int, ratio float64, fill Style) { a.SoftShade(x, y, w, ratio, false, fill) }

// SoftShade is Shade; the bar of a figure that is not exact has a soft end,
// "▓▓▒░░░". Where there is no ratio (NaN) nothing is drawn: an empty bar would
// say that nothing is taken.
func (a Area) SoftShade(x, y, w int, ratio float64, soft bool, fill Style) {
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
