package mem

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Keys lists what keys do on the page as it is, for footers and help.
func (s *State) Keys() []widget.Binding {
	do := func(f func()) func() []tui.Effect {
		return func() []tui.Effect { f(); return nil }
	}
	out := []widget.Binding{
		{Keys: []tui.Key{"enter"}, Foot: "Open", Help: "go in: a chip, who holds it, what a process holds", Do: s.enter},
		{Keys: []tui.Key{"d"}, Foot: "Mark", Help: "count changes from now on; again: no longer", Do: do(s.trend.setMark)},
		{Keys: []tui.Key{"z"}, Foot: "Peaks", Help: "reset the high-water marks", Do: do(s.trend.forgetPeaks)},
		{Keys: []tui.Key{"c"}, Foot: "Pool", Help: "chart another pool, and sort holders by it", Do: do(s.nextPool)},
		{Keys: []tui.Key{"right", "l", "n"}, Help: "next chip", Do: do(func() { s.step(1) })},
		{Keys: []tui.Key{"left", "h", "b"}, Help: "previous chip", Do: do(func() { s.step(-1) })},
	}
	switch s.depth {
	case overview:
		return append(out[:3:3], out[4:]...)
	case oneHolder:
		out[0] = widget.Binding{Keys: []tui.Key{"r"}, Foot: "Reload", Help: "read its buffers again", Do: s.inspect}
		return out[:2]
	}
	return out
}

// Move moves in the list of the present screen.
func (s *State) Move(k tui.Key) {
	m, ok := widget.MotionOf(k)
	if !ok {
		return
	}
	switch s.depth {
	case overview:
		s.list.Move(m)
		if list := s.chips(); len(list) > 0 {
			s.chip = list[min(s.list.Sel, len(list)-1)].key()
		}
	case oneChip:
		s.who.Move(m)
	case oneHolder:
		s.holder.sheet.Move(m)
	}
}

// Charts reports whether there is a chart on the page, where there is room for it.
func (s *State) Charts() bool { return s.depth == oneChip }

// Outermost reports whether there is nothing to go back to.
func (s *State) Outermost() bool {
	return s.depth == overview || s.depth == oneChip && len(s.chips()) < 2
}

// Back goes out by one; false when it is outermost already.
func (s *State) Back() bool {
	if s.Outermost() {
		return false
	}
	s.depth--
	s.clampSelection()
	return true
}

func (s *State) enter() []tui.Effect {
	c, ok := s.selected()
	if !ok {
		return nil
	}
	if s.depth == overview {
		s.chip, s.depth, s.who = c.key(), oneChip, widget.List{}
		return nil
	}
	list := holders(s.shown, c, s.pool)
	if s.who.Sel >= len(list) {
		return nil // nothing behind the rows below the processes
	}
	h := list[s.who.Sel]
	s.holder = holderPage{target: act.Target{PID: h.p.PID, StartTicks: h.p.StartTicks}, last: h}
	s.depth = oneHolder
	return s.inspect()
}

func (s *State) inspect() []tui.Effect { return []tui.Effect{act.Inspect{Target: s.holder.target}} }

func (s *State) nextPool() { s.pool = (s.pool + 1) % model.NumPools }

func (s *State) step(by int) {
	list := s.chips()
	i := s.list.Sel + by
	if i < 0 || i >= len(list) {
		return
	}
	s.list.Sel, s.chip = i, list[i].key()
	s.who = widget.List{}
	if s.depth == oneHolder {
		s.depth = oneChip
	}
}

// Meanings explains the figures of the page, for the help.
func Meanings() []widget.HelpLine {
	return []widget.HelpLine{
		{Key: "8.1/12.0 GiB", Text: "allocated, of what the chip has; free is not the difference"},
		{Key: "67 %", Text: "of the pool, where that is known; TRACE is measured against DRAM"},
		{Key: "+120 MiB/s", Text: "how fast it grew between the last two samples"},
		{Key: "peak", Text: "the most seen since the start, or since z"},
		{Key: "(dead)", Text: "left behind by a process that is gone; in no other figure: see ttmon mem --stale"},
		{Key: "(others)", Text: "counted for the chip, but for no process whose figures are visible"},
	}
}
