package theme

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/nearest"
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
	n := 0
	for line := range strings.Lines(src) {
		n++
		line, _, _ = strings.Cut(line, "//")
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		key, value, ok := strings.Cut(line, "=")
		if !ok {
			return nil, fmt.Errorf("%s, line %d: %q is not of the form name = value", name, n, line)
		}
		if err := t.set(strings.TrimSpace(key), strings.Fields(value)); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w", name, n, err)
		}
	}
	t.behind()
	return t, nil
}

// behind gives every style that has no background that of plain text.
func (t *Theme) behind() {
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
		b, err := shipped.ReadFile("themes/" + value[0] + suffix)
		if err != nil || value[0] == t.Name {
			return fmt.Errorf("base: %q is not one of %s", value[0], strings.Join(Names(), ", "))
		}
		base, err := Parse(value[0], string(b))
		if err != nil {
			return err
		}
		t.Styles, t.Tints = base.Styles, base.Tints
		return nil
	case "series":
		list, err := colours(value)
		for i := range cells.NumSeries {
			if err == nil {
				t.Styles[cells.Series(i)] = Paint{FG: list[i%len(list)], BG: Default}
			}
		}
		return err
	case "ramp":
		list, err := colours(value)
		for i := range cells.NumRamp {
			if err == nil {
				t.Styles[cells.Ramp0+cells.Style(i)] = Paint{FG: mix(list, i, cells.NumRamp), BG: Default}
			}
		}
		return err
	case "tint":
		list, err := colours(value)
		for i := range cells.NumTints {
			if err == nil {
				t.Tints[i] = mix(list, i, cells.NumTints)
			}
		}
		return err
	}
	p, err := paint(value)
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return t.style(key, p)
}

func (t *Theme) style(key string, p Paint) error {
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

// paint reads "bold #e6c35c on #202020".
func paint(words []string) (Paint, error) {
	p := Paint{FG: Default, BG: Default}
	behind := false
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
			behind = true
		default:
			c, err := parseColour(w)
			if err != nil {
				return p, err
			}
			if behind {
				p.BG = c
			} else {
				p.FG = c
			}
		}
	}
	return p, nil
}

func colours(words []string) ([]Color, error) {
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

// mix is step i of n on the way through a list of colours. Only exact ones can
// be mixed; of others the nearest in the list is taken.
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
