package widget

import (
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Filtered is what screens with one list, a filter line and a help have in
// common: who gets a key, and what is drawn over the list.
type Filtered struct {
	Hits Hits
	edit *Line // of the filter, while it is typed
	help *Help
}

// Typing reports whether keys go into the filter line.
func (f *Filtered) Typing() bool { return f.edit != nil }

// Edit opens the filter line.
func (f *Filtered) Edit(filter string) { f.edit = NewLine(filter) }

// Key gives a key to the help or the filter line, if one of them is open; filter
// is called with what was typed.
func (f *Filtered) Key(k tui.Key, filter func(string)) (taken bool) {
	switch {
	case f.help != nil && k != "ctrl-c" && k != "ctrl-z" && k != "ctrl-l":
		if f.help.Key(k) {
			f.help = nil
		}
	case f.edit == nil || k == "ctrl-c":
		return false
	case k == "enter":
		f.edit = nil
	case k == "esc":
		f.edit = nil
		filter("")
	default:
		if f.edit.Key(k) {
			filter(f.edit.Text)
		}
	}
	return true
}

// Paste puts text into the filter line, if it is open.
func (f *Filtered) Paste(text string, filter func(string)) {
	if f.edit != nil {
		f.edit.Insert(text)
		filter(f.edit.Text)
	}
}

// Keys are what such screens have in common. back undoes one thing and reports
// whether there was any; q quits then. What it undoes is said by the help.
func (f *Filtered) Keys(back func() bool, undoes string) []Binding {
	do := func(g func()) func() []tui.Effect { return func() []tui.Effect { g(); return nil } }
	effect := func(e tui.Effect) func() []tui.Effect { return func() []tui.Effect { return []tui.Effect{e} } }
	return []Binding{
		{Keys: []tui.Key{"R", "f5"}, Foot: "Refresh", Help: "refresh now", Do: effect(tui.Refresh{})},
		{Keys: []tui.Key{"f1", "?"}, Foot: "Help", Help: "this help", Do: do(func() { f.help = &Help{} })},
		{Keys: []tui.Key{"ctrl-l"}, Help: "redraw the screen", Do: effect(tui.Repaint{})},
		{Keys: []tui.Key{"ctrl-z"}, Help: "suspend", Do: effect(tui.Suspend{})},
		{Keys: []tui.Key{"esc"}, Help: "back: " + undoes, Do: do(func() { back() })},
		{Keys: []tui.Key{"f10", "ctrl-c"}, Foot: "Quit", Help: "quit", Do: effect(tui.Quit{})},
		{Keys: []tui.Key{"q"}, Help: "back; quit when there is nothing to go back from", Do: func() []tui.Effect {
			if back() {
				return nil
			}
			return []tui.Effect{tui.Quit{}}
		}},
	}
}

// Draw draws the list by body, and below and over it the filter line or the keys,
// and the help.
func (f *Filtered) Draw(g *cells.Grid, body func(cells.Area), keys []Binding, help []HelpLine) {
	f.Hits.Reset()
	area, foot := g.Area().Bottom(1)
	body(area)
	if f.edit != nil {
		x := foot.Put(0, 0, "Filter: ", cells.Label)
		f.edit.Draw(foot.Sub(x, 0, foot.W-x, 1), cells.Text)
	} else {
		Footer(&f.Hits, foot, keys)
	}
	if f.help != nil {
		f.Hits.Reset()
		f.help.Draw(&f.Hits, g.Area(), help, func() { f.help = nil })
	}
}
