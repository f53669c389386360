package fleet

import (
	"cmp"
	"math"
	"strings"

	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// order is what hosts are sorted by.
type order int

const (
	byTrouble order = iota
	byName
	byTemperature
	byPower
	byBusy
	byMemory
)

// orders sort hosts that are sorted by trouble already.
var orders = [...]struct {
	key     tui.Key
	help    string
	compare func(a, b text.FleetHost) int
}{
	byTrouble:     {"w", "the worst first", nil},
	byName:        {"n", "by name", func(a, b text.FleetHost) int { return strings.Compare(a.Name, b.Name) }},
	byTemperature: {"t", "the hottest first", func(a, b text.FleetHost) int { return falling(a.Temperature, b.Temperature) }},
	byPower:       {"p", "those that draw most first", func(a, b text.FleetHost) int { return falling(a.Power, b.Power) }},
	byBusy:        {"b", "the busiest first", func(a, b text.FleetHost) int { return falling(a.Busy, b.Busy) }},
	byMemory:      {"m", "the fullest first", func(a, b text.FleetHost) int { return falling(a.Used/a.Size, b.Used/b.Size) }},
}

// falling puts what is not known last.
func falling(a, b float64) int {
	switch an, bn := math.IsNaN(a), math.IsNaN(b); {
	case an && bn:
		return 0
	case an:
		return 1
	case bn:
		return -1
	}
	return cmp.Compare(b, a)
}

// keys lists what keys do, for the footer, the help and the keyboard.
func (s *Screen) keys() []widget.Binding {
	do := func(f func()) func() []tui.Effect { return func() []tui.Effect { f(); return nil } }
	effect := func(e tui.Effect) func() []tui.Effect { return func() []tui.Effect { return []tui.Effect{e} } }
	var list []widget.Binding
	if s.open == "" {
		list = []widget.Binding{
			{Keys: []tui.Key{"enter"}, Foot: "Open", Help: "one host, chip by chip", Do: s.enter},
			{Keys: []tui.Key{"/", "f4"}, Foot: "Filter", Help: "only hosts with this in their name", Do: do(func() { s.edit = widget.NewLine(s.filter) })},
			{Keys: []tui.Key{"!"}, Foot: "Trouble", Help: "only hosts in trouble, or all again", Do: do(func() { s.bad = !s.bad; s.arrange() })},
		}
		for i, o := range orders {
			list = append(list, widget.Binding{Keys: []tui.Key{o.key}, Help: "sort: " + o.help, Do: do(func() { s.order = order(i); s.arrange() })})
		}
	} else {
		list = []widget.Binding{{Keys: []tui.Key{"backspace", "left"}, Foot: "All hosts", Help: "back to all hosts", Do: do(func() { s.back() })}}
	}
	return append(list,
		widget.Binding{Keys: []tui.Key{"R", "f5"}, Foot: "Now", Help: "ask for news now", Do: effect(tui.Refresh{})},
		widget.Binding{Keys: []tui.Key{"f1", "?"}, Foot: "Help", Help: "this help", Do: do(func() { s.help = &widget.Help{} })},
		widget.Binding{Keys: []tui.Key{"ctrl-l"}, Help: "draw the screen anew", Do: effect(tui.Repaint{})},
		widget.Binding{Keys: []tui.Key{"ctrl-z"}, Help: "suspend", Do: effect(tui.Suspend{})},
		widget.Binding{Keys: []tui.Key{"esc"}, Help: "back: from a host, a filter", Do: do(func() { s.back() })},
		widget.Binding{Keys: []tui.Key{"f10", "ctrl-c"}, Foot: "Quit", Help: "quit", Do: effect(tui.Quit{})},
		widget.Binding{Keys: []tui.Key{"q"}, Help: "back, and out at last", Do: func() []tui.Effect {
			if s.back() {
				return nil
			}
			return []tui.Effect{tui.Quit{}}
		}},
	)
}

// key does what a key means.
func (s *Screen) key(k tui.Key) []tui.Effect {
	switch {
	case s.help != nil && k != "ctrl-c" && k != "ctrl-z" && k != "ctrl-l":
		if s.help.Key(k) {
			s.help = nil
		}
		return nil
	case s.edit != nil && k != "ctrl-c":
		s.typed(k)
		return nil
	}
	if b := widget.Find(s.keys(), k); b != nil {
		return b.Do()
	}
	if m, ok := widget.MotionOf(k); ok {
		if s.open != "" {
			s.rows.Move(m)
		} else {
			s.list.Move(m)
			s.remember()
		}
	}
	return nil
}

// typed changes the filter by one key.
func (s *Screen) typed(k tui.Key) {
	switch k {
	case "enter":
		s.edit = nil
	case "esc":
		s.edit = nil
		s.setFilter("")
	default:
		if s.edit.Key(k) {
			s.setFilter(s.edit.Text)
		}
	}
}

func (s *Screen) helpLines() []widget.HelpLine {
	return append(widget.HelpOf("Keys", s.keys()), widget.HelpLine{}, widget.HelpLine{Text: "What the cells mean"},
		widget.HelpLine{Key: "■", Text: "a chip that is well"},
		widget.HelpLine{Key: "H X", Text: "hung, lost"},
		widget.HelpLine{Key: "r ?", Text: "resetting, not known"},
		widget.HelpLine{Key: "BUSY", Text: "share of the time in which programs ran, mean of the host's devices; N/A: none of them reports"},
		widget.HelpLine{Key: "≥ ~", Text: "at least so much; unsure: somebody's figures are not known"},
	)
}
