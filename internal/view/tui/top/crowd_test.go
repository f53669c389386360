package top

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
)

// Whatever room a chart of many devices has, its map shows one that is far from the
// others, or unknown.
func TestNoBadChipIsInvisibleInTheMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n, height := rapid.IntRange(9, 128).Draw(t, "devices"), rapid.IntRange(2, 60).Draw(t, "rows")
		at, unknown := rapid.IntRange(0, n-1).Draw(t, "which"), rapid.Bool().Draw(t, "unknown")
		draw := func(ill bool) *cells.Grid {
			g := cells.NewGrid(40, height)
			line, area := splitCrowd(g.Area(), n)
			if line.H+area.H != height || area.H < 1 {
				t.Fatalf("%d rows for the average and %d for the map, of %d", line.H, area.H, height)
			}
			room := chart.Divide(area, true)
			h := chart.Heat{Scale: chart.Scale{Top: 100}, Mark: -1}
			for i := range n {
				b := make([]history.Bucket, room.Columns)
				for k := range b {
					b[k] = history.Bucket{State: history.Sampled, Min: 20, Max: 20, Last: 20}
					switch {
					case ill && i == at && unknown:
						b[k] = history.Bucket{State: history.Gap}
					case ill && i == at:
						b[k].Min, b[k].Max, b[k].Last = 95, 95, 95
					}
				}
				h.Series, h.Names = append(h.Series, b), append(h.Names, i)
			}
			h.Draw(room)
			return g
		}
		if draw(false).String() == draw(true).String() && sameStyles(draw(false), draw(true)) {
			t.Fatalf("device %d of %d looks like the others in %d rows", at, n, height)
		}
	})
}

// sameStyles reports whether all cells of two grids look alike.
func sameStyles(a, b *cells.Grid) bool {
	area := a.Area()
	for y := range area.H {
		for x := range area.W {
			if a.At(x, y) != b.At(x, y) {
				return false
			}
		}
	}
	return true
}
