package widget

import (
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Binding is what keys do. Footer and help are made of bindings, so that
// what they say is what happens.
type Binding struct {
	Keys []tui.Key
	Foot string // word in the footer; empty: not there
	Help string
	Do   func() []tui.Effect
}

// Find is the binding of a key, or nil.
func Find(list []Binding, k tui.Key) *Binding {
	for i := range list {
		for _, own := range list[i].Keys {
			if own == k {
				return &list[i]
			}
		}
	}
	return nil
}

// Around is what a screen around another one does with keys, which it gets
// first; footer and help of the inner one tell it.
type Around struct {
	Title string
	Keys  []Binding
}

// Leaves is what of the inner screen's bindings is left.
func (a Around) Leaves(list []Binding) (out []Binding) {
	for _, b := range list {
		if Find(a.Keys, b.Keys[0]) == nil {
			out = append(out, b)
		}
	}
	return out
}

// Footer draws the keys of a screen in one row; each answers to the mouse.
func Footer(h *Hits, row cells.Area, list []Binding) {
	var fit []Binding
	used := 0
	for _, b := range list {
		w := words.Width(KeyName(b.Keys[0])) + words.Width(b.Foot) + 1
		if b.Foot == "" || used+w > row.W {
			continue
		}
		fit = append(fit, b)
		used += w
	}
	if len(fit) == 0 {
		return
	}
	// What is left of the row makes the keys wider, which are pressed too.
	spare := min((row.W-used)/len(fit), maxFootPad)
	x := 0
	for _, b := range fit {
		start := x
		x = row.Put(x, 0, KeyName(b.Keys[0]), cells.Key)
		x = row.Put(x, 0, b.Foot+strings.Repeat(" ", spare), cells.KeyText)
		h.AddPress(row.Sub(start, 0, x-start, 1), b.Do)
		x++
	}
}

// maxFootPad is the most that a key of the footer is widened by.
const maxFootPad = 6

// KeyName is how a key is written on a screen.
func KeyName(k tui.Key) string {
	switch k {
	case " ":
		return "Space"
	case "pgup":
		return "PgUp"
	case "pgdn":
		return "PgDn"
	}
	if len(k) == 1 {
		return string(k)
	}
	parts := strings.Split(string(k), "-")
	for i, p := range parts {
		if p != "" {
			parts[i] = strings.ToUpper(p[:1]) + p[1:]
		}
	}
	return strings.Join(parts, "-")
}

// HelpLine is a key with its meaning, or a heading.
type HelpLine struct {
	Key, Text string
	more      bool // the rest of the line before
}

// helpIndent is the column at which meanings begin.
const helpIndent = 20

// wrapHelp breaks meanings into as many lines as the box is narrow: help that
// is cut off is none.
func wrapHelp(lines []HelpLine, w int) []HelpLine {
	var out []HelpLine
	for _, l := range lines {
		if l.Key == "" {
			out = append(out, l)
			continue
		}
		at := max(2+words.Width(l.Key)+2, helpIndent)
		first, rest := l.Text, ""
		if parts := words.Wrap(l.Text, max(w-at-1, 8)); len(parts) > 1 {
			first = parts[0]
			rest = strings.TrimLeft(l.Text[len(first):], " ")
		}
		out = append(out, HelpLine{Key: l.Key, Text: first})
		if rest != "" {
			for _, part := range words.Wrap(rest, max(w-helpIndent-1, 8)) {
				out = append(out, HelpLine{Text: part, more: true})
			}
		}
	}
	return out
}

// Help is what the outer keys do, if there are any.
func (a Around) Help() []HelpLine {
	if len(a.Keys) == 0 {
		return nil
	}
	return HelpOf(a.Title, a.Keys)
}

// HelpOf is a heading and the keys below it.
func HelpOf(title string, list []Binding) []HelpLine {
	out := []HelpLine{{}, {Text: title}}
	for _, b := range list {
		var names []string
		for _, k := range b.Keys {
			names = append(names, KeyName(k))
		}
		out = append(out, HelpLine{Key: strings.Join(names, " "), Text: b.Help})
	}
	return out
}

// Help is a box of help lines to scroll in.
type Help struct {
	scroll int
	height int
}

// Key scrolls; done is true when the key closes the help.
func (p *Help) Key(k tui.Key) (done bool) {
	page := max(p.height-1, 1)
	switch m, ok := MotionOf(k); {
	case k == " ":
		p.scroll += page
	case !ok:
		return true
	case m == Up:
		p.scroll--
	case m == Down:
		p.scroll++
	case m == PageUp:
		p.scroll -= page
	case m == PageDown:
		p.scroll += page
	case m == First:
		p.scroll = 0
	case m == Last:
		p.scroll = 1 << 20 // Draw keeps it in bounds
	}
	return false
}

// Draw draws the box; close is called when it is pressed.
func (p *Help) Draw(h *Hits, screen cells.Area, lines []HelpLine, close func()) {
	box := Center(screen, min(100, screen.W-2), screen.H-2)
	box.Fill(' ', cells.Dialog)
	in := box.Box("Help", cells.Strong)
	in, foot := in.Bottom(1)
	foot.Put(1, 0, "↑ ↓ PgUp PgDn scroll, any other key closes", cells.Faint)
	lines = wrapHelp(lines, in.W)
	p.height = in.H
	p.scroll = min(max(p.scroll, 0), max(len(lines)-in.H, 0))
	for y := 0; y < in.H && p.scroll+y < len(lines); y++ {
		l := lines[p.scroll+y]
		switch {
		case l.more:
			in.Put(helpIndent, y, l.Text, cells.Text)
		case l.Key == "":
			in.Put(1, y, words.Truncate(l.Text, in.W-1), cells.Label)
		default:
			x := in.Put(2, y, l.Key, cells.Key)
			in.Put(max(x+2, helpIndent), y, l.Text, cells.Text)
		}
	}
	h.Add(box, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.WheelUp:
			p.scroll -= 3
		case tui.WheelDown:
			p.scroll += 3
		case tui.Press:
			close()
		}
		return nil
	})
}

// Center is the middle of an area.
func Center(a cells.Area, w, h int) cells.Area {
	w, h = min(max(w, 0), a.W), min(max(h, 0), a.H)
	return a.Sub((a.W-w)/2, (a.H-h)/2, w, h)
}
