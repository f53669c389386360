package top

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/golden"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// TestSizes draws the main page at all sizes and for all numbers of boards, with
// the style of every cell: eight and more boards are in trouble.
func TestSizes(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {100, 30}, {120, 40}, {200, 50}, {300, 80}} {
		name := fmt.Sprintf("size-%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, n := range []int{0, 1, 3, 8, 32} {
				st := open(t, n, size[0], size[1])
				fmt.Fprintf(&b, "-- %d devices --\n%s-- styles of it --\n%s", n, st.draw(), runs(st.g))
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), []byte(b.String()))
		})
	}
}

// runs names the styles of each row, with how many cells each has: "text 12".
func runs(g *cells.Grid) string {
	var b strings.Builder
	for y := range g.H {
		for x := 0; x < g.W; {
			from, style := x, g.At(x, y).Style
			for x < g.W && g.At(x, y).Style == style {
				x++
			}
			if from > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s %d", style, x-from)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
