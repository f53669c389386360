package ops

import (
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// orderKeys choose an order at once.
var orderKeys = [...]struct {
	key         tui.Key
	order, help string
}{
	{"s", "share", "sort by share of the chip's time"},
	{"c", "calls", "sort by calls per second"},
	{"m", "mean", "sort by mean time, the slowest first"},
	{"l", "longest", "sort by longest time"},
	{"t", "time", "sort by total time"},
	{"n", "name", "sort by name"},
}

// keys lists what keys do, for the footer, the help and the keyboard.
func (s *Screen) keys() []widget.Binding {
	do := func(f func()) func() []tui.Effect { return func() []tui.Effect { f(); return nil } }
	freeze := "Freeze"
	if s.frozen {
		freeze = "Continue"
	}
	list := []widget.Binding{
		{Keys: []tui.Key{" ", "p"}, Foot: freeze, Help: "freeze the table, and continue it", Do: do(s.freeze)},
		{Keys: []tui.Key{"/", "f3", "f4"}, Foot: "Filter", Help: "only operations with this text in their name", Do: do(func() { s.Edit(s.which.Filter) })},
		{Keys: []tui.Key{"o", "f6", ">"}, Foot: "Sort", Help: "sort by the next column", Do: do(func() { s.turn(1) })},
		{Keys: []tui.Key{"O", "<"}, Help: "sort by the previous column", Do: do(func() { s.turn(-1) })},
		{Keys: []tui.Key{"enter"}, Foot: "Process", Help: "only the process of the selected row, or all again", Do: do(s.oneProcess)},
	}
	for _, k := range orderKeys {
		list = append(list, widget.Binding{Keys: []tui.Key{k.key}, Help: k.help, Do: do(func() { s.sortBy(k.order) })})
	}
	list = append(list, widget.Binding{Keys: []tui.Key{"I"}, Help: "reverse the order (so does the key of the column it is sorted by)", Do: do(func() { s.sortBy(s.which.Sort) })})
	return append(list, s.Filtered.Keys(s.back, "end the filter, show all processes, continue")...)
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
		s.list.Move(m)
		s.remember()
	}
	return nil
}

func (s *Screen) helpLines() []widget.HelpLine {
	out := widget.HelpOf("Keys", s.around.Leaves(s.keys()))
	out = append(out, s.around.Help()...)
	out = append(out, widget.HelpLine{}, widget.HelpLine{Text: "What the columns mean"})
	for _, f := range metric.Operations() {
		out = append(out, widget.HelpLine{Key: f.Head, Text: f.Help})
	}
	return append(out, widget.HelpLine{Key: "≥ ~", Text: "busy: at least so much; unsure"})
}
