package top

import (
	"os"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/view/tui/picture"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
)

// The picture in the README is what the program draws; make update redraws it.
func TestReadme(t *testing.T) {
	const readme, svg = "../../../../README.md", "docs/pictures/top.svg"
	page, err := os.ReadFile(readme)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "]("+svg+")") {
		t.Errorf("%s does not show %s", readme, svg)
	}
	if _, first, _ := strings.Cut(string(page), "]("); !strings.HasPrefix(first, "docs/pictures/first-look.svg)") {
		t.Errorf("the first picture of %s is not the film (make film)", readme)
	}
	dusk, err := theme.Load("dusk")
	if err != nil {
		t.Fatal(err)
	}
	st := openAfter(t, 300, 3, 116, 36, func(c *config.Config) { c.Display.Corners = "round" })
	st.draw()
	golden.Check(t, "../../../../"+svg, picture.SVG(st.g, dusk, true))
}
