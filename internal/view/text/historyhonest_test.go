package text

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// Whatever is drawn: a column is blank where nothing was sampled and nowhere else,
// and a higher value is never a lower bar, in whichever of the lines it is: they
// have one scale.
func TestPrintedHistoryIsHonest(t *testing.T) {
	const columns = 20
	rapid.Check(t, func(t *rapid.T) {
		h := History{Title: "m"}
		for range rapid.IntRange(1, 4).Draw(t, "lines") {
			v := rapid.SliceOfN(rapid.Float64Range(-100, 100), columns, columns).Draw(t, "values")
			for i := range v {
				if rapid.IntRange(0, 3).Draw(t, "gap") == 0 {
					v[i] = math.NaN()
				}
			}
			h.Lines = append(h.Lines, Line{Name: "x", Min: v, Max: v, Avg: v, Last: math.NaN()})
		}
		var bars [][]rune
		for line := range strings.Lines(string(AppendHistory(nil, h))) {
			if rest, ok := strings.CutPrefix(line, "  x  "); ok {
				bars = append(bars, []rune(rest)[:columns])
			}
		}
		if len(bars) != len(h.Lines) {
			t.Fatalf("%d lines of %d are drawn", len(bars), len(h.Lines))
		}
		for a, l := range h.Lines {
			for i, v := range l.Avg {
				if math.IsNaN(v) != (bars[a][i] == ' ') {
					t.Fatalf("line %d, column %d has %v and is drawn as %q", a, i, v, bars[a][i])
				}
				for b, m := range h.Lines {
					for k, w := range m.Avg {
						if v > w && bars[a][i] < bars[b][k] {
							t.Fatalf("%v is %c, %v is %c", v, bars[a][i], w, bars[b][k])
						}
					}
				}
			}
		}
	})
}
