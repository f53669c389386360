package cells

import "github.com/ttmon/ttmon/internal/view/words"

// Bar is the bar nvtop's users know: "[||||||    10.2/24.0 GiB]", the value
// written into its right end.
type Bar struct {
	Ratio float64 // 0..1 filled; NaN draws no fill
	Text  string  // written at the right end, over the bar
	Fill  Style   // of the filled part
	Mark  rune    // what it is filled with; 0 means '|'
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
		if i < n {
			a.Set(x+1+i, y, mark, b.Fill)
		} else {
			a.Set(x+1+i, y, ' ', Text)
		}
	}
	a.Sub(x+1, y, w-2, 1).PutRight(w-2, 0, b.Text, Text)
}

// Shade draws a ratio as solid and light blocks: "▓▓▓░░░".
func (a Area) Shade(x, y, w int, ratio float64, fill Style) {
	n := words.Filled(ratio, w)
	for i := range w {
		if i < n {
			a.Set(x+i, y, '▓', fill)
		} else {
			a.Set(x+i, y, '░', Faint)
		}
	}
}
