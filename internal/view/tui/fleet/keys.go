package fleet

import (
	"cmp"
	"math"
	"strings"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
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
	compare func(a, b sums.Host) int
}{
	byTrouble:     {"w", "the worst first", nil},
	byName:        {"n", "by name", func(a, b sums.Host) int { return strings.Compare(a.Name, b.Name) }},
	byTemperature: {"t", "the hottest first", func(a, b sums.Host) int { return falling(a.Temperature, b.Temperature) }},
	byPower:       {"p", "those that draw most first", func(a, b sums.Host) int { return falling(a.Power, b.Power) }},
	byBusy:        {"b", "the busiest first", func(a, b sums.Host) int { return falling(a.Busy, b.Busy) }},
	byMemory:      {"m", "the fullest first", func(a, b sums.Host) int { return falling(a.Used/a.Size, b.Used/b.Size) }},
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
	var list []widget.Binding
	if s.open == "" {
		list = []widget.Binding{
			{Keys: []tui.Key{"enter"}, Foot: "Open", Help: "one host, chip by chip", Do: s.enter},
			{Keys: []tui.Key{"/", "f4"}, Foot: "Filter", Help: "only hosts with this in their name", Do: do(func() { s.Edit(s.filter) })},
			{Keys: []tui.Key{"!"}, Foot: "Trouble", Help: "only hosts in trouble, or all again", Do: do(func() { s.bad = !s.bad; s.arrange() })},
		}
		for i, o := range orders {
			list = append(list, widget.Binding{Keys: []tui.Key{o.key}, Help: "sort: " + o.help, Do: do(func() { s.order = order(i); s.arrange() })})
		}
	} else {
		list = []widget.Binding{{Keys: []tui.Key{"backspace", "left"}, Foot: "All hosts", Help: "back to all hosts", Do: do(func() { s.back() })}}
	}
	return append(list, s.Filtered.Keys(s.back, "from a host, a filter")...)
}

// key does what a key means.
func (s *Screen) key(k tui.Key) []tui.Effect {
	if s.Filtered.Key(k, s.setFilter) {
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

func (s *Screen) helpLines() []widget.HelpLine {
	out := append(widget.HelpOf("Keys", s.keys()), widget.HelpLine{}, widget.HelpLine{Text: "What the cells mean"})
	for _, k := range assess.States() {
		out = append(out, widget.HelpLine{Key: words.StateMark(k), Text: words.Kind(k)})
	}
	return append(out,
		widget.HelpLine{Key: "BUSY", Text: "share of the time in which programs ran, mean of the host's devices; –: none of them reports"},
		widget.HelpLine{Key: "≥ ~", Text: "at least this much; uncertain: some holders' figures are unknown"},
	)
}
