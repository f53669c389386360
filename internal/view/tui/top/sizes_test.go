package top

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
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

// TestOtherSizes draws what TestSizes does not: few boards in trouble, and
// many that are well. Styles are written at one size: they do not depend on it.
func TestOtherSizes(t *testing.T) {
	for _, size := range [][2]int{{40, 10}, {80, 24}, {100, 30}, {120, 40}, {200, 50}, {300, 80}} {
		name := fmt.Sprintf("other-%dx%d", size[0], size[1])
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			for _, c := range []struct {
				n    int
				what string
				make func(n, second int) *model.Snapshot
			}{{1, "in trouble", tuitest.Ill}, {3, "in trouble", tuitest.Ill}, {8, "well", tuitest.Well}, {32, "well", tuitest.Well}} {
				st := openAfter(t, 0, c.n, size[0], size[1])
				st.make = c.make
				st.run(60)
				fmt.Fprintf(&b, "-- %d devices, %s --\n%s", c.n, c.what, st.draw())
				if size[0] == 100 {
					fmt.Fprintf(&b, "-- styles of it --\n%s", runs(st.g))
				}
			}
			golden.Check(t, filepath.Join("testdata", name+".txt"), []byte(b.String()))
		})
	}
}

// TestWithoutColour: what the colours of health say is on the screen in words
// and attributes too, at every size: a device in trouble is never only red.
func TestWithoutColour(t *testing.T) {
	mono, err := theme.Load("mono")
	if err != nil {
		t.Fatal(err)
	}
	for _, size := range [][2]int{{40, 10}, {80, 24}, {120, 40}, {300, 80}} {
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			for _, n := range []int{1, 3, 8, 32} {
				st := openAfter(t, 0, n, size[0], size[1])
				st.make = tuitest.Ill
				st.run(3)
				if !st.has("hung") {
					t.Errorf("%d devices at %v: nothing says that one is hung:\n%s", n, size, st.g)
				}
				for y := range st.g.H {
					for x := range st.g.W {
						p := mono.Styles[st.g.At(x, y).Style]
						if p.FG != theme.Default || p.BG != theme.Default {
							t.Fatalf("mono has a colour for %s", st.g.At(x, y).Style)
						}
					}
				}
			}
		})
	}
	if bad := mono.Styles[cells.Bad]; bad == mono.Styles[cells.Text] {
		t.Error("without colours, trouble looks like everything else")
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
