package top

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// modes is every way the screen can look, by the keys that lead there.
var modes = []struct {
	name string
	cfg  func(*config.Config)
	keys []tui.Key
}{
	{"main", nil, nil},
	{"devices", nil, []tui.Key{"tab", "down"}},
	{"worst", nil, []tui.Key{"w", "p"}},
	{"blocks", func(c *config.Config) { c.Top.Devices.Layout = "blocks" }, nil},
	{"compact", func(c *config.Config) { c.Top.Devices.Layout = "compact" }, nil},
	{"lines", func(c *config.Config) { c.Top.Devices.Layout = "lines" }, nil},
	{"grid", func(c *config.Config) { c.Top.Devices.Layout = "grid" }, nil},
	{"nocharts", nil, []tui.Key{"c", "p"}},
	{"noprocesses", nil, []tui.Key{"P"}},
	{"tree", nil, []tui.Key{"t", " "}},
	{"charts", nil, []tui.Key{"C", "left", "left", "left"}},
	{"bydevice", nil, []tui.Key{"C", "d"}},
	{"zoomed", func(c *config.Config) { c.Top.Charts.Metrics = []string{"activity", "temperature", "pcie_to"} }, []tui.Key{"C", "+", "+", "+", ",", "s"}},
	{"process", nil, []tui.Key{"enter"}},
	{"device", nil, []tui.Key{"tab", "enter"}},
	{"log", nil, []tui.Key{"e"}},
	{"help", nil, []tui.Key{"?"}},
	{"setup", nil, []tui.Key{"f2", "tab", "tab", "tab", "down"}},
	{"columns", nil, []tui.Key{"f2", "shift-tab", "down", "enter", " "}},
	{"sort", nil, []tui.Key{"f6"}},
	{"metrics", nil, []tui.Key{"a"}},
	{"filter", nil, []tui.Key{"/", "u", "s", "e", "r", "=", "a", "*"}},
	{"filtererror", nil, []tui.Key{"/", "d", "r", "a", "m", ">", "x"}},
	{"signals", nil, []tui.Key{"f9"}},
	{"confirm", nil, []tui.Key{"f9", "9", "enter"}},
}

// TestGolden draws every mode at every size for every number of devices.
func TestGolden(t *testing.T) {
	for _, m := range modes {
		t.Run(m.name, func(t *testing.T) {
			var b strings.Builder
			for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
				for _, n := range []int{0, 1, 4, 8, 32} {
					var cfg []func(*config.Config)
					if m.cfg != nil {
						cfg = append(cfg, m.cfg)
					}
					st := open(t, n, size[0], size[1], cfg...).keys(m.keys...)
					fmt.Fprintf(&b, "-- %dx%d, %d devices --\n%s", size[0], size[1], n, st.draw())
					if size[0] == 80 && n == 4 {
						fmt.Fprintf(&b, "-- styles of it --\n%s", styles(st.g))
					}
				}
			}
			golden.Check(t, filepath.Join("testdata", m.name+".txt"), []byte(b.String()))
		})
	}
}

// styles writes a letter per cell for what it means.
func styles(g *cells.Grid) string {
	const letters = ".fSlgwb~FXxHO+kKBdA01234567!@#$%^&*"
	var b strings.Builder
	for y := range g.H {
		for x := range g.W {
			b.WriteByte(letters[g.At(x, y).Style])
		}
		b.WriteByte('\n')
	}
	return b.String()
}
