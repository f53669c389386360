package tui

import (
	"os"
	"strconv"
	"strings"

	"github.com/gdamore/tcell/v2"

	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// palette is how each style looks. Colours are the terminal's own sixteen
// wherever they are readable, so that a screen fits the user's choice of them.
type palette [cells.NumStyles]tcell.Style

func colour(n int) tcell.Style { return tcell.StyleDefault.Foreground(tcell.PaletteColor(n)) }

// Numbers of the terminal's palette.
const (
	red, green, yellow, blue, magenta, cyan = 1, 2, 3, 4, 5, 6
	grey                                    = 8
	brightYellow, brightBlue, orange        = 11, 12, 208
	brown, darkGrey, lightGrey              = 94, 236, 254
)

// themeOf is the palette of a theme. NO_COLOR outranks every choice.
func themeOf(name string, getenv func(string) string) *palette {
	if getenv("NO_COLOR") != "" {
		name = "mono"
	}
	if name == "auto" || name == "" {
		name = "dark"
		if lightBackground(getenv("COLORFGBG")) {
			name = "light"
		}
	}
	switch name {
	case "mono":
		return mono()
	case "light":
		return light()
	default:
		return dark()
	}
}

// lightBackground reads the variable some terminals set: "foreground;background".
func lightBackground(v string) bool {
	bg, err := strconv.Atoi(v[strings.LastIndexByte(v, ';')+1:])
	return err == nil && (bg == 7 || bg > 8 && bg <= 15)
}

func dark() *palette {
	p := shared()
	p[cells.Warn] = colour(brightYellow).Bold(true)
	p[cells.Faint] = colour(grey)
	p[cells.Axis] = colour(grey)
	p[cells.Shadow] = tcell.StyleDefault.Background(tcell.PaletteColor(darkGrey))
	for i, c := range []int{cyan, magenta, brightBlue, 15, 141, 45, 213, 250} {
		p[cells.Series(i)] = colour(c)
	}
	p.ramp(0x2b4c7e, 0x7fe7f5)
	return p
}

func light() *palette {
	p := shared()
	p[cells.Warn] = colour(brown).Bold(true)
	p[cells.Faint] = colour(245)
	p[cells.Axis] = colour(245)
	p[cells.Label] = colour(blue)
	p[cells.Guess] = colour(magenta)
	p[cells.Shadow] = tcell.StyleDefault.Background(tcell.PaletteColor(lightGrey))
	for i, c := range []int{blue, magenta, 30, 0, 55, 24, 133, 240} {
		p[cells.Series(i)] = colour(c)
	}
	p.ramp(0x8fb8dd, 0x10356b)
	return p
}

// ramp colours the steps from little to much, from one colour to the other. The
// terminal library takes the nearest of 256 or 16 where there are no more.
func (p *palette) ramp(from, to int32) {
	for i := range cells.NumRamp {
		mix := func(shift int32) int32 {
			a, b := from>>shift&0xff, to>>shift&0xff
			return a + (b-a)*int32(i)/int32(cells.NumRamp-1)
		}
		p[cells.Ramp0+cells.Style(i)] = tcell.StyleDefault.Foreground(tcell.NewRGBColor(mix(16), mix(8), mix(0)))
	}
}

func shared() *palette {
	d := tcell.StyleDefault
	p := &palette{
		cells.Text:     d,
		cells.Strong:   d.Bold(true),
		cells.Label:    colour(cyan),
		cells.Good:     colour(green),
		cells.Bad:      colour(red).Bold(true),
		cells.Guess:    colour(cyan),
		cells.Fill:     colour(green),
		cells.Selected: d.Foreground(tcell.PaletteColor(0)).Background(tcell.PaletteColor(cyan)),
		cells.Heading:  d.Reverse(true),
		cells.Sorted:   d.Reverse(true).Bold(true).Underline(true),
		cells.Tagged:   colour(yellow).Bold(true),
		cells.Key:      d.Bold(true),
		cells.KeyText:  d.Foreground(tcell.PaletteColor(0)).Background(tcell.PaletteColor(cyan)),
		cells.Banner:   d.Reverse(true).Bold(true),
		cells.Dialog:   d,
	}
	return p
}

func mono() *palette {
	d := tcell.StyleDefault
	p := &palette{
		cells.Strong:   d.Bold(true),
		cells.Faint:    d.Dim(true),
		cells.Axis:     d.Dim(true),
		cells.Warn:     d.Underline(true),
		cells.Bad:      d.Bold(true).Underline(true),
		cells.Selected: d.Reverse(true),
		cells.Shadow:   d.Underline(true),
		cells.Heading:  d.Bold(true).Underline(true),
		cells.Sorted:   d.Reverse(true).Bold(true),
		cells.Tagged:   d.Bold(true),
		cells.Key:      d.Bold(true),
		cells.KeyText:  d.Reverse(true),
		cells.Banner:   d.Reverse(true).Bold(true),
	}
	return p
}

// environ is os.Getenv where the loop needs it.
func environ(key string) string { return os.Getenv(key) }
