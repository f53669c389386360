package tui

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/theme"
)

// palette is a theme in the terminal library's terms, which takes the nearest
// of 256 or 16 colours where there are no more.
type palette struct {
	styles [cells.NumStyles]tcell.Style
	tints  [cells.NumTints]tcell.Color // ColorDefault: none
}

// of is how a cell looks.
func (p *palette) of(c cells.Cell) tcell.Style {
	st := p.styles[c.Style]
	if c.Tint > 0 && p.tints[c.Tint-1] != tcell.ColorDefault {
		st = st.Background(p.tints[c.Tint-1])
	}
	return st
}

// paletteOf translates a theme. Tints are for terminals with every colour: the
// nearest of 256 would be steps, and louder than the lines before them.
func paletteOf(t *theme.Theme, every bool) *palette {
	p := &palette{}
	for i, s := range t.Styles {
		p.styles[i] = tcell.StyleDefault.Foreground(colourOf(s.FG)).Background(colourOf(s.BG)).
			Bold(s.Bold).Dim(s.Dim).Underline(s.Underline).Reverse(s.Reverse)
	}
	for i, c := range t.Tints {
		p.tints[i] = tcell.ColorDefault
		if every {
			p.tints[i] = colourOf(c)
		}
	}
	return p
}

func colourOf(c theme.Color) tcell.Color {
	if v, ok := c.Exact(); ok {
		return tcell.NewHexColor(v)
	}
	if c == theme.Default {
		return tcell.ColorDefault
	}
	return tcell.PaletteColor(int(c))
}

// themeOf finds the theme of a name. NO_COLOR outranks every choice, and a
// theme that cannot be read is the usual one: the command line and the setup page
// refuse such a name, so that only a file that vanished since comes here.
func themeOf(name string, getenv func(string) string) *theme.Theme {
	if getenv("NO_COLOR") != "" {
		name = "mono"
	}
	if name == "auto" || name == "" {
		name = "dark"
		if lightBackground(getenv("COLORFGBG")) {
			name = "light"
		}
	}
	t, err := theme.Load(name, themeDir(getenv))
	if err != nil {
		t, err = theme.Load("dark")
	}
	if err != nil {
		panic("BUG: a shipped theme cannot be read: " + err.Error())
	}
	return t
}

// CheckTheme tells what is wrong with a name of a theme.
func CheckTheme(name string, getenv func(string) string) error {
	if name == "auto" || name == "" {
		return nil
	}
	_, err := theme.Load(name, themeDir(getenv))
	return err
}

// themeDir is where the user's own themes are: beside the configuration.
func themeDir(getenv func(string) string) string {
	path := config.Path(getenv)
	if path == "" {
		return ""
	}
	return filepath.Join(filepath.Dir(path), "themes")
}

// lightBackground reads the variable some terminals set: "foreground;background".
func lightBackground(v string) bool {
	bg, err := strconv.Atoi(v[strings.LastIndexByte(v, ';')+1:])
	return err == nil && (bg == 7 || bg > 8 && bg <= 15)
}

// environ is os.Getenv where the loop needs it.
func environ(key string) string { return os.Getenv(key) }
