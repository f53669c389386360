package picture

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
)

// TestSVG: every cell is in the picture, as text or as a shape, in its colour,
// and what comes out is XML whatever stands in the cells.
func TestSVG(t *testing.T) {
	for _, name := range theme.Names() {
		th, err := theme.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		g := cells.NewGrid(12, 3)
		a := g.Area()
		a.Put(0, 0, "<a&b> 日本", cells.Bad)
		a.Put(0, 1, "█▏▒▀▐▁⣿─┌┼", cells.Ramp7)
		a.Tint(3, 2, 8)
		for _, round := range []bool{false, true} {
			got := string(SVG(g, th, round))
			for d := xml.NewDecoder(strings.NewReader(got)); ; {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v\n%s", name, err, got)
				}
			}
			if !strings.Contains(got, "&lt;a&amp;b&gt; 日本") {
				t.Errorf("%s: the text is not in it:\n%s", name, got)
			}
			if n := strings.Count(got, "<path") + strings.Count(got, "<rect") - 1; n < 8 {
				t.Errorf("%s: %d shapes:\n%s", name, n, got)
			}
			if v, ok := th.Styles[cells.Ramp7].FG.Exact(); ok && !strings.Contains(got, colour(v)) {
				t.Errorf("%s: no %s in it", name, colour(v))
			}
		}
	}
}

// TestPalette: the colours of a terminal's palette are those everybody knows.
func TestPalette(t *testing.T) {
	for c, want := range map[theme.Color]int32{16: 0, 231: 0xffffff, 196: 0xff0000, 232: 0x080808, 255: 0xeeeeee, theme.Default: 0x123456, theme.RGB(0xabcdef): 0xabcdef} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			if got := exact(c, 0x123456); got != want {
				t.Errorf("%d is %06x, want %06x", c, got, want)
			}
		})
	}
}
