package theme

import (
	"embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Color is a colour: the terminal's own, one of its palette, or any.
type Color int32

// Default is the terminal's own colour. 0 to 255 are its palette, and RGB any
// other.
const (
	Default Color = -1
	rgb     Color = 1 << 24
)

// RGB is a colour by its parts, 0xrrggbb.
func RGB(v int32) Color { return rgb | Color(v&0xffffff) }

// Exact is the colour as 0xrrggbb; ok is false for the terminal's own ones.
func (c Color) Exact() (v int32, ok bool) { return int32(c &^ rgb), c&rgb != 0 && c >= 0 }

// Paint is how a style looks.
type Paint struct {
	FG, BG                        Color
	Bold, Dim, Underline, Reverse bool
}

// Theme is how all styles look.
type Theme struct {
	Name   string
	Styles [cells.NumStyles]Paint
	// Tints are the backgrounds of cells below a line of a chart, from little
	// to much. They are drawn only where every colour can be shown; Default
	// draws none.
	Tints [cells.NumTints]Color
}

//go:embed themes/*.theme
var shipped embed.FS

const suffix = ".theme"

// Names lists the themes that are shipped.
func Names() []string {
	entries, err := shipped.ReadDir("themes")
	if err != nil {
		panic("BUG: the shipped themes cannot be listed: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

// Load finds a theme: a shipped one by its name, or NAME.theme in one of the
// user's directories, or a file by its path.
func Load(name string, dirs ...string) (*Theme, error) {
	if b, err := shipped.ReadFile("themes/" + name + suffix); err == nil {
		return Parse(name, string(b))
	}
	paths := []string{name}
	if !strings.Contains(name, "/") {
		paths = nil
		for _, dir := range dirs {
			paths = append(paths, filepath.Join(dir, name+suffix))
		}
	}
	var err error
	for _, p := range paths {
		var b []byte
		if b, err = os.ReadFile(p); err == nil {
			return Parse(p, string(b))
		}
	}
	if err != nil && strings.Contains(name, "/") {
		return nil, fmt.Errorf("theme: %w", err)
	}
	return nil, fmt.Errorf("theme %q: none of %s, and there is no such file in %s", name, strings.Join(Names(), ", "), strings.Join(dirs, " or "))
}
