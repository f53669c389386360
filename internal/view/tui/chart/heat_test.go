package chart

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// More is never drawn as less, nothing is drawn where nothing is known, and
// every series has a row, however few rows there are.
func TestHeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, rows := rapid.IntRange(1, 40).Draw(t, "series"), rapid.IntRange(1, 20).Draw(t, "rows")
		values := rapid.SliceOfN(rapid.Float32Range(0, 100), n, n).Draw(t, "values")
		g := cells.NewGrid(axisWidth+3, rows)
		room := Divide(g.Area(), false)
		h := Heat{Scale: Scale{0, 100}, Mark: -1}
		for i, v := range values {
			b := make([]history.Bucket, room.Columns)
			b[2] = history.Bucket{State: history.Sampled, Min: v, Max: v, Last: v}
			h.Series, h.Names = append(h.Series, b), append(h.Names, i)
		}
		h.Draw(room)
		per := h.bands(room.Plot.H)
		if per*room.Plot.H < n {
			t.Fatalf("%d rows of %d for %d", room.Plot.H, per, n)
		}
		level := func(band int) (rune, cells.Style, float32) {
			most := float32(0)
			for i := band * per; i < min((band+1)*per, n); i++ {
				most = max(most, values[i])
			}
			c := g.At(axisWidth+1, band)
			return c.Rune, c.Style, most
		}
		for a := 0; a*per < n; a++ {
			if r := g.At(axisWidth, a).Rune; r != ' ' {
				t.Fatalf("%c before the first sample", r)
			}
			ra, sa, va := level(a)
			for b := 0; b*per < n; b++ {
				if rb, sb, vb := level(b); va < vb && (sa > sb || shade(ra) > shade(rb)) {
					t.Fatalf("%v is %c %v, %v is %c %v", va, ra, sa, vb, rb, sb)
				}
			}
		}
	})
}

func shade(r rune) int {
	for i, s := range []rune("░▒▓█") {
		if s == r {
			return i
		}
	}
	return -1
}
