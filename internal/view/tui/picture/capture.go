package picture

import (
	"strconv"
	"strings"

	"github.com/rivo/uniseg"

	"github.com/ttmon/ttmon/internal/view/tui/theme"
)

// Capture reads a screen as tmux prints it (capture-pane -e): lines of text with
// colours and attributes in between (SGR), and no other control.
func Capture(text string, w, h int, fg, bg int32) *Screen {
	s := &Screen{W: w, H: h, FG: fg, BG: bg, Cells: make([]Cell, w*h)}
	for i := range s.Cells {
		s.Cells[i] = Cell{Rune: ' ', Style: Style{FG: fg, BG: bg}}
	}
	pen := pen{fg: theme.Default, bg: theme.Default}
	for y, line := range strings.Split(text, "\n") {
		if y == h {
			break
		}
		captureLine(s, y, line, &pen)
	}
	return s
}

func captureLine(s *Screen, y int, line string, pen *pen) {
	for x := 0; line != "" && x < s.W; {
		if rest, ok := strings.CutPrefix(line, "\x1b["); ok {
			codes, after, found := strings.Cut(rest, "m")
			if !found {
				return
			}
			pen.set(codes)
			line = after
			continue
		}
		cluster, rest, width, _ := uniseg.FirstGraphemeClusterInString(line, -1)
		line = rest
		runes := []rune(cluster)
		if width == 0 || runes[0] < ' ' || x+width > s.W {
			continue
		}
		s.Cells[y*s.W+x] = Cell{Rune: runes[0], More: string(runes[1:]), Style: pen.attributes(s)}
		for i := 1; i < width; i++ {
			s.Cells[y*s.W+x+i] = Cell{Style: pen.attributes(s)}
		}
		x += width
	}
}

// pen is how the next characters look.
type pen struct {
	fg, bg                        theme.Color
	bold, dim, underline, reverse bool
}

func (p *pen) attributes(s *Screen) Style {
	l := Style{FG: exact(p.fg, s.FG), BG: exact(p.bg, s.BG), Bold: p.bold, Dim: p.dim, Underline: p.underline}
	if p.reverse {
		l.FG, l.BG = l.BG, l.FG
	}
	return l
}

// set applies the numbers of an SGR sequence; those that are not known change nothing.
func (p *pen) set(codes string) {
	list := strings.FieldsFunc(codes, func(r rune) bool { return r == ';' || r == ':' })
	if len(list) == 0 {
		list = []string{"0"}
	}
	n := make([]int, 0, len(list))
	for _, c := range list {
		v, err := strconv.Atoi(c)
		if err != nil || v < 0 || v > 255 {
			return
		}
		n = append(n, v)
	}
	for i := 0; i < len(n); i++ {
		switch v := n[i]; {
		case v == 38 || v == 48:
			c, used := extended(n[i+1:])
			i += used
			if used > 0 && v == 38 {
				p.fg = c
			} else if used > 0 {
				p.bg = c
			}
		case v >= 30 && v <= 37:
			p.fg = theme.Color(v - 30)
		case v >= 90 && v <= 97:
			p.fg = theme.Color(v - 90 + 8)
		case v >= 40 && v <= 47:
			p.bg = theme.Color(v - 40)
		case v >= 100 && v <= 107:
			p.bg = theme.Color(v - 100 + 8)
		default:
			p.attribute(v)
		}
	}
}

// extended is a colour behind 38 or 48: 5;N or 2;R;G;B.
func extended(n []int) (c theme.Color, used int) {
	switch {
	case len(n) >= 2 && n[0] == 5:
		return theme.Color(n[1]), 2
	case len(n) >= 4 && n[0] == 2:
		return theme.RGB(int32(n[1])<<16 | int32(n[2])<<8 | int32(n[3])), 4
	}
	return 0, 0
}

func (p *pen) attribute(v int) {
	switch v {
	case 0:
		*p = pen{fg: theme.Default, bg: theme.Default}
	case 1:
		p.bold = true
	case 2:
		p.dim = true
	case 4:
		p.underline = true
	case 7:
		p.reverse = true
	case 22:
		p.bold, p.dim = false, false
	case 24:
		p.underline = false
	case 27:
		p.reverse = false
	case 39:
		p.fg = theme.Default
	case 49:
		p.bg = theme.Default
	}
}
