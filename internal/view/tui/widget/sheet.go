package widget

import (
	"strings"

	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/words"
)

// Sheet is text to scroll in: names with values under headings.
type Sheet struct {
	scroll int
	height int
	lines  int
}

// Entry is a line of a sheet: a heading, or a name with its value. Long
// values are wrapped, unless they are part of a table.
type Entry struct {
	Heading string
	Name    string
	Value   string
	Style   cells.Style
	Table   bool // cut at the edge, never wrapped
	Wide    bool // takes the place of the name too
}

// indentOf is the column of the values: behind the longest name, within reason.
func indentOf(entries []Entry, w int) int {
	longest := 0
	for i := range entries {
		longest = max(longest, words.Width(entries[i].Name))
	}
	return max(18, min(longest+4, w*9/20))
}

// Move scrolls.
func (p *Sheet) Move(m Motion) {
	switch m {
	case Up:
		p.scroll--
	case Down:
		p.scroll++
	case PageUp:
		p.scroll -= max(p.height-1, 1)
	case PageDown:
		p.scroll += max(p.height-1, 1)
	case First:
		p.scroll = 0
	case Last:
		p.scroll = p.lines
	}
	p.clamp()
}

func (p *Sheet) clamp() { p.scroll = min(max(p.scroll, 0), max(p.lines-p.height, 0)) }

// Draw draws the entries in view.
func (p *Sheet) Draw(h *Hits, area cells.Area, entries []Entry) {
	indent := indentOf(entries, area.W)
	lines := layout(entries, area.W, indent)
	p.height, p.lines = area.H, len(lines)
	p.clamp()
	for y := 0; y < area.H && p.scroll+y < len(lines); y++ {
		e := lines[p.scroll+y]
		if e.Heading != "" {
			x := area.Put(1, y, words.Truncate(e.Heading, area.W-2)+" ", cells.Strong)
			area.HLine(x, y, area.W-x-1, cells.Faint)
			continue
		}
		if e.Wide {
			area.Put(2, y, e.Value, e.Style)
			continue
		}
		area.Put(2, y, words.Truncate(e.Name, indent-3), cells.Label)
		area.Put(indent, y, words.Truncate(e.Value, area.W-indent), e.Style)
	}
	if p.scroll > 0 {
		area.PutRight(area.W, 0, " ↑ ", cells.Banner)
	}
	if p.scroll+area.H < len(lines) && area.H > 0 {
		area.PutRight(area.W, area.H-1, " ↓ more ", cells.Banner)
	}
	h.Add(area, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.WheelUp:
			p.scroll -= 3
		case tui.WheelDown:
			p.scroll += 3
		}
		p.clamp()
		return nil
	})
}

// layout wraps values and sets headings apart.
func layout(entries []Entry, w, indent int) []Entry {
	var out []Entry
	for i, e := range entries {
		switch {
		case e.Heading != "":
			if i > 0 {
				out = append(out, Entry{})
			}
			out = append(out, e)
		case e.Table:
			out = append(out, e)
		default:
			room := w - indent - 1
			if e.Wide {
				room = w - 3
			}
			for j, part := range Wrap(e.Value, max(room, 8)) {
				if j > 0 {
					e.Name = ""
				}
				e.Value = part
				out = append(out, e)
			}
		}
	}
	return out
}

// Wrap cuts text into lines of at most w cells, at blanks where there are any.
func Wrap(s string, w int) []string {
	var out []string
	for words.Width(s) > w {
		cut, blank := 0, 0
		for i, r := range s {
			if words.Width(s[:i]) > w {
				break
			}
			cut = i
			if r == ' ' {
				blank = i
			}
		}
		if blank > w/2 {
			cut = blank
		}
		if cut == 0 {
			break // not even one character fits
		}
		out = append(out, s[:cut])
		s = strings.TrimLeft(s[cut:], " ")
	}
	return append(out, s)
}
