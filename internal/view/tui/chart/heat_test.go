package chart

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// drawHeat draws a map of values of which each holds for the whole time;
// negative: the value is not known.
func drawHeat(values []float32, width, height int) (*cells.Grid, *Heat, Room) {
	g := cells.NewGrid(axisWidth+width, height)
	room := Divide(g.Area(), false)
	h := &Heat{Scale: Scale{0, 100}, Mark: -1}
	for i, v := range values {
		b := make([]history.Bucket, room.Columns)
		for k := range b {
			b[k] = history.Bucket{State: history.Sampled, Min: v, Max: v, Last: v}
			if v < 0 {
				b[k] = history.Bucket{State: history.Gap}
			}
		}
		h.Series, h.Names = append(h.Series, b), append(h.Names, i)
	}
	h.Draw(room)
	return g, h, room
}

// However many chips there are, and however few rows: one that is hot, cold or
// unknown among others that are alike looks different, in its own row.
func TestNoBadChipIsInvisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, height := rapid.IntRange(2, 200).Draw(t, "chips"), rapid.IntRange(1, 20).Draw(t, "rows")
		usual := rapid.SampledFrom([]float32{10, 50, 90}).Draw(t, "usual")
		bad := rapid.SampledFrom([]float32{-1, 0, 100}).Draw(t, "bad")
		at := rapid.IntRange(0, n-1).Draw(t, "which")
		if d := bad - usual; bad >= 0 && d < 50 && d > -50 {
			return // not that far from the others
		}
		values := make([]float32, n)
		for i := range values {
			values[i] = usual
		}
		well, _, _ := drawHeat(values, 3, height)
		values[at] = bad
		ill, h, room := drawHeat(values, 3, height)
		lanes, band := h.lanes(room.Plot.H)
		row := at / (lanes * band)
		if row >= room.Plot.H {
			t.Fatalf("chip %d of %d is in row %d of %d", at, n, row, room.Plot.H)
		}
		for y := range height {
			for x := range 3 {
				a, b := well.At(axisWidth+x, y), ill.At(axisWidth+x, y)
				if (a != b) != (y == row) {
					t.Fatalf("chip %d of %d is %v among %v: row %d of %d is %c (%v), %c (%v) without it; its row is %d", at, n, bad, usual, y, height, b.Rune, b.Style, a.Rune, a.Style, row)
				}
			}
		}
	})
}

// Where nothing was sampled nothing is drawn except hatching; and more is never
// drawn as less.
func TestHeat(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 40).Draw(t, "series")
		states := rapid.SliceOfN(rapid.SampledFrom([]history.State{history.Empty, history.Gap, history.Away, history.Sampled, history.Held}), 8, 8).Draw(t, "states")
		values := rapid.SliceOfN(rapid.Float32Range(0, 100), n, n).Draw(t, "values")
		g := cells.NewGrid(axisWidth+4, n)
		room := Divide(g.Area(), false)
		h := Heat{Scale: Scale{0, 100}, Mark: -1}
		for i, v := range values {
			b := make([]history.Bucket, len(states))
			for k, s := range states {
				b[k].State = s
				if b[k].Known() {
					b[k].Min, b[k].Max, b[k].Last = v, v, v
				}
			}
			h.Series, h.Names = append(h.Series, b), append(h.Names, i)
		}
		h.Draw(room)
		lanes, band := h.lanes(room.Plot.H)
		drawn := (n + lanes*band - 1) / (lanes * band)
		for x := range room.Plot.W {
			first, second := h.Series[0][2*x], h.Series[0][2*x+1]
			for y := range drawn {
				c := room.Plot.At(x, y)
				if known := first.Known() || second.Known(); known != (c.Rune != ' ' && c.Rune != '╱') {
					t.Fatalf("states %v and %v are drawn as %c", first.State, second.State, c.Rune)
				}
				if c.Rune == '╱' && first.State != history.Away && second.State != history.Away {
					t.Fatalf("states %v and %v are hatched", first.State, second.State)
				}
				for z := range y {
					if d := room.Plot.At(x, z); lanes == 1 && first.Known() && values[y] < values[z] && (c.Style > d.Style || shade(c.Rune) > shade(d.Rune)) {
						t.Fatalf("%v is %c, %v is %c", values[y], c.Rune, values[z], d.Rune)
					}
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

// Several bad chips among many, as three of 32 in half blocks: every row that has
// one looks different, and no other row does.
func TestNoneOfSeveralBadChipsIsInvisible(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, height := rapid.SampledFrom([]int{8, 32, 64, 128}).Draw(t, "chips"), rapid.IntRange(1, 40).Draw(t, "rows")
		bad := rapid.SampledFrom([]float32{-1, 100}).Draw(t, "bad")
		values := make([]float32, n)
		for i := range values {
			values[i] = 20
		}
		well, h, room := drawHeat(values, 3, height)
		lanes, band := h.lanes(room.Plot.H)
		ill := map[int]bool{}
		for _, at := range rapid.SliceOfNDistinct(rapid.IntRange(0, n-1), 3, 3, rapid.ID[int]).Draw(t, "which") {
			values[at] = bad
			ill[at/(lanes*band)] = true
		}
		grid, _, _ := drawHeat(values, 3, height)
		for y := range height {
			differs := false
			for x := range 3 {
				differs = differs || well.At(axisWidth+x, y) != grid.At(axisWidth+x, y)
			}
			if differs != ill[y] {
				t.Fatalf("row %d of %d looks different: %v; it has a bad chip: %v", y, height, differs, ill[y])
			}
		}
	})
}
