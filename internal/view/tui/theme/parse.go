package theme

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Parse reads a theme file: lines of the form name = value. A value has
// colours ("#rrggbb", a number of the palette, a name such as red or brightblue,
// default), the background after "on", and bold, dim, underline or reverse. What
// follows "//" is a comment.
//
//	base = dark                // begin with what another theme has
//	text = #c8ccd4 on #14161b
//	warn = bold #e6c35c
//	series = #5cc8d7 #c792ea   // chart lines, up to eight
//	ramp = #1f3a5f #5cc8d7     // filled areas and heat maps, from little to much
//	tint = #141b26 #20415f     // behind the lines of a chart
func Parse(name, src string) (*Theme, error) {
	t := blank(name)
	number := 0
	for line := range strings.Lines(src) {
		number++
		line, _, _ = strings.Cut(line, "//")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s, line %d: %q is not of the form name = value", name, number, line)
		}
		if err := t.set(strings.TrimSpace(key), strings.Fields(value)); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, number, err)
		}
	}
	t.inheritBackground()
	return t, nil
}

// inheritBackground gives styles without a background that of plain text.
func (t *Theme) inheritBackground() {
	for i := range t.Styles {
		if p := &t.Styles[i]; p.BG == Default && !p.Reverse {
			p.BG = t.Styles[cells.Text].BG
		}
	}
}

func blank(name string) *Theme {
	t := &Theme{Name: name}
	for i := range t.Styles {
		t.Styles[i].FG, t.Styles[i].BG = Default, Default
	}
	for i := range t.Tints {
		t.Tints[i] = Default
	}
	return t
}

func (t *Theme) set(key string, value []string) error {
	if len(value) == 0 {
		return fmt.Errorf("%s has no value", key)
	}
	switch key {
	case "base":
		return t.setBase(value[0])
	case "series", "ramp", "tint":
		list, err := parseColours(value)
		if err != nil {
			return err
		}
		t.setColours(key, list)
		return nil
	}
	p, err := parsePaint(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return t.setStyle(key, p)
}

// setBase copies a shipped theme, for the lines that follow to change.
func (t *Theme) setBase(name string) error {
	b, err := shipped.ReadFile("themes/" + name + suffix)
	if err != nil || name == t.Name {
		return fmt.Errorf("base: %q is not one of %s", name, strings.Join(Names(), ", "))
	}
	base, err := Parse(name, string(b))
	if err != nil {
		return err
	}
	t.Styles, t.Tints = base.Styles, base.Tints
	return nil
}

// setColours spreads a list of colours over the styles that share a key.
func (t *Theme) setColours(key string, list []Color) {
	switch key {
	case "series":
		for i := range cells.NumSeries {
			t.Styles[cells.Series(i)] = Paint{FG: list[i%len(list)], BG: Default}
		}
	case "ramp":
		for i := range cells.NumRamp {
			t.Styles[cells.Ramp0+cells.Style(i)] = Paint{FG: mix(list, i, cells.NumRamp), BG: Default}
		}
	case "tint":
		for i := range cells.NumTints {
			t.Tints[i] = mix(list, i, cells.NumTints)
		}
	}
}

func (t *Theme) setStyle(key string, p Paint) error {
	var names []string
	for s := range cells.Series0 {
		if s.String() == key {
			t.Styles[s] = p
			return nil
		}
		names = append(names, s.String())
	}
	names = append(names, "base", "series", "ramp", "tint")
	if n := nearest.Word(key, names); n != "" {
		return fmt.Errorf("unknown style %q: did you mean %s?", key, n)
	}
	return fmt.Errorf("unknown style %q: one of %s", key, strings.Join(names, ", "))
}

// parsePaint reads "bold #e6c35c on #202020".
func parsePaint(words []string) (Paint, error) {
	p := Paint{FG: Default, BG: Default}
	afterOn := false
	for _, w := range words {
		switch w {
		case "bold":
			p.Bold = true
		case "dim":
			p.Dim = true
		case "underline":
			p.Underline = true
		case "reverse":
			p.Reverse = true
		case "on":
			afterOn = true
		default:
			c, err := parseColour(w)
			if err != nil {
				return p, err
			}
			if afterOn {
				p.BG = c
			} else {
				p.FG = c
			}
		}
	}
	return p, nil
}

func parseColours(words []string) ([]Color, error) {
	list := make([]Color, len(words))
	for i, w := range words {
		c, err := parseColour(w)
		if err != nil {
			return nil, err
		}
		list[i] = c
	}
	return list, nil
}

var colourNames = []string{
	"black", "red", "green", "yellow", "blue", "magenta", "cyan", "white",
	"grey", "brightred", "brightgreen", "brightyellow", "brightblue", "brightmagenta", "brightcyan", "brightwhite",
}

func parseColour(w string) (Color, error) {
	if hex, ok := strings.CutPrefix(w, "#"); ok {
		if v, err := strconv.ParseUint(hex, 16, 24); err == nil && len(hex) == 6 {
			return RGB(int32(v)), nil
		}
		return Default, fmt.Errorf("%q is not a colour: write it as #rrggbb", w)
	}
	if n, err := strconv.ParseUint(w, 10, 8); err == nil {
		return Color(n), nil
	}
	if w == "default" {
		return Default, nil
	}
	for i, name := range colourNames {
		if w == name {
			return Color(i), nil
		}
	}
	return Default, fmt.Errorf("%q is not a colour: #rrggbb, 0 to 255, default, or one of %s", w, strings.Join(colourNames, ", "))
}

// mix returns step i of n of the gradient through a list of colours. A colour of
// the terminal's palette has no known value: next to one, the nearest of the list
// is returned.
func mix(list []Color, i, n int) Color {
	if len(list) == 1 || n < 2 {
		return list[0]
	}
	at := float64(i) * float64(len(list)-1) / float64(n-1)
	from := min(int(at), len(list)-2)
	share := at - float64(from)
	a, okA := list[from].Exact()
	b, okB := list[from+1].Exact()
	if !okA || !okB {
		if share > 0.5 {
			return list[from+1]
		}
		return list[from]
	}
	part := func(shift int32) int32 {
		x, y := a>>shift&0xff, b>>shift&0xff
		return int32(float64(x)+float64(y-x)*share+0.5) << shift
	}
	return RGB(part(16) | part(8) | part(0))
}
