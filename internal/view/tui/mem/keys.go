package mem

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// Keys lists what keys do on the present screen, for footers and help.
func (s *State) Keys() []widget.Binding {
	do := func(f func()) func() []tui.Effect {
		return func() []tui.Effect { f(); return nil }
	}
	out := []widget.Binding{
		{Keys: []tui.Key{"enter"}, Foot: "Open", Help: "go in: a chip, who holds it, what a process holds", Do: s.enter},
		{Keys: []tui.Key{"d"}, Foot: "Mark", Help: "count changes from now on; again: no longer", Do: do(s.trend.setMark)},
		{Keys: []tui.Key{"z"}, Foot: "Peaks", Help: "reset the high-water marks", Do: do(s.trend.forgetPeaks)},
		{Keys: []tui.Key{"c"}, Foot: "Pool", Help: "chart another pool, and sort holders by it", Do: do(s.nextPool)},
		{Keys: []tui.Key{"+", "="}, Foot: "Zoom in", Help: "chart a shorter time", Do: do(func() { s.zoom(1) })},
		{Keys: []tui.Key{"-", "_"}, Foot: "Zoom out", Help: "chart a longer time", Do: do(func() { s.zoom(-1) })},
		{Keys: []tui.Key{"right", "l", "n"}, Help: "next chip", Do: do(func() { s.step(1) })},
		{Keys: []tui.Key{"left", "h", "b"}, Help: "previous chip", Do: do(func() { s.step(-1) })},
	}
	switch s.depth {
	case overview:
		return append(out[:3:3], out[6:]...)
	case oneHolder:
		out[0] = widget.Binding{Keys: []tui.Key{"r"}, Foot: "Reload", Help: "read its buffers again", Do: s.inspect}
		return out[:2]
	}
	return out
}

// AllKeys lists what keys do on a chip's page of a screen of its own, for
// documents: no other page has more.
func AllKeys() []widget.Binding {
	s := &State{depth: oneChip}
	return append(s.Keys(), s.alone()...)
}

// alone lists the keys that only a screen of its own has.
func (s *State) alone() []widget.Binding {
	look := func(by time.Duration) func() []tui.Effect { return func() []tui.Effect { return s.showEarlier(by) } }
	effect := func(e tui.Effect) func() []tui.Effect { return func() []tui.Effect { return []tui.Effect{e} } }
	return []widget.Binding{
		{Keys: []tui.Key{"p", " "}, Foot: "Pause", Help: "pause and continue; samples are still taken", Do: func() []tui.Effect {
			if !s.present() {
				s.Pause(!s.paused)
			}
			return nil
		}},
		{Keys: []tui.Key{"<"}, Help: "look back a minute: everything as it was, from ttmond", Do: look(-time.Minute)},
		{Keys: []tui.Key{">"}, Help: "a minute later again; Esc returns to the present", Do: look(time.Minute)},
		{Keys: []tui.Key{"{"}, Help: "look back half an hour", Do: look(-30 * time.Minute)},
		{Keys: []tui.Key{"}"}, Help: "half an hour later again", Do: look(30 * time.Minute)},
		{Keys: []tui.Key{"f1", "?"}, Foot: "Help", Help: "this help", Do: func() []tui.Effect { s.help = &widget.Help{}; return nil }},
		{Keys: []tui.Key{"R"}, Help: "refresh now", Do: effect(tui.Refresh{})},
		{Keys: []tui.Key{"ctrl-l"}, Help: "redraw the screen", Do: effect(tui.Repaint{})},
		{Keys: []tui.Key{"ctrl-z"}, Help: "suspend", Do: effect(tui.Suspend{})},
		{Keys: []tui.Key{"f10", "ctrl-c"}, Foot: "Quit", Help: "quit", Do: effect(tui.Quit{})},
		{Keys: []tui.Key{"esc"}, Help: "to the present, or back", Do: func() []tui.Effect {
			if !s.present() {
				s.Back()
			}
			return nil
		}},
		{Keys: []tui.Key{"q"}, Help: "back, and out at last", Do: func() []tui.Effect {
			if s.Back() {
				return nil
			}
			return []tui.Effect{tui.Quit{}}
		}},
	}
}

// Key does what a key means.
func (s *State) Key(k tui.Key) []tui.Effect {
	if s.help != nil && k != "ctrl-c" && k != "ctrl-z" && k != "ctrl-l" {
		if s.help.Key(k) {
			s.help = nil
		}
		return nil
	}
	if b := widget.Find(s.Keys(), k); b != nil {
		return b.Do()
	}
	if b := widget.Find(s.alone(), k); b != nil {
		return b.Do()
	}
	s.Move(k)
	return nil
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

// Back goes out by one; false when it is outermost already.
func (s *State) Back() bool {
	switch {
	case s.depth == oneHolder:
		s.depth = oneChip
	case s.depth == oneChip && len(s.chips()) > 1:
		s.depth = overview
	default:
		return false
	}
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

// Inspected takes in what was found out about a process.
func (s *State) Inspected(ev act.Inspected) {
	if ev.Target.PID == s.holder.target.PID && ev.Target.StartTicks == s.holder.target.StartTicks {
		s.holder.more = &ev
	}
}

func (s *State) nextPool() { s.pool = (s.pool + 1) % model.NumPools }

func (s *State) zoom(in int) {
	s.span = chart.Zoom(s.shownSpan(), in)
	s.zoomed = true
}

// shownSpan is the time the chart shows; it grows until the user chooses.
func (s *State) shownSpan() time.Duration {
	if s.zoomed || s.shown == nil {
		return s.span
	}
	oldest, _ := s.hist.Span()
	return chart.Grow(s.span, s.shown.Time.Sub(oldest))
}

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

// Pause stops the screens, or lets them go on; samples are taken all the same.
func (s *State) Pause(on bool) {
	s.paused = on
	if !s.paused && s.live != nil {
		s.shown = s.live
		s.clampSelection()
	}
}

// throughPast lists the keys that the footer begins with in the past.
func (s *State) throughPast() []widget.Binding {
	return []widget.Binding{
		{Keys: []tui.Key{"<"}, Foot: "Earlier", Do: func() []tui.Effect { return s.showEarlier(-time.Minute) }},
		{Keys: []tui.Key{">"}, Foot: "Later", Do: func() []tui.Effect { return s.showEarlier(time.Minute) }},
		{Keys: []tui.Key{"esc"}, Foot: "Present", Do: func() []tui.Effect { s.present(); return nil }},
	}
}

func (s *State) footer() []widget.Binding {
	back := widget.Binding{Keys: []tui.Key{"q"}, Foot: "Back", Do: func() []tui.Effect { s.Back(); return nil }}
	out := append(s.Keys(), s.alone()...)
	if !s.past.at.IsZero() {
		out = append(s.throughPast(), out...)
	}
	if s.depth != overview && (s.depth == oneHolder || len(s.chips()) > 1) {
		out = append([]widget.Binding{back}, out...)
	}
	return s.around.Leaves(out)
}

// Surround sets the screen around this one.
func (s *State) Surround(a widget.Around) { s.around = a }

func (s *State) helpLines() []widget.HelpLine {
	out := widget.HelpOf("This screen", s.around.Leaves(s.Keys()))
	out = append(out, s.around.Help()...)
	out = append(out, widget.HelpOf("Everywhere", s.around.Leaves(s.alone()))...)
	return append(out, widget.HelpLine{}, widget.HelpLine{Text: "What the figures mean"},
		widget.HelpLine{Key: "8.1/12.0 GiB", Text: "allocated, of what the chip has; free is not the difference"},
		widget.HelpLine{Key: "67 %", Text: "of the pool, where that is known; TRACE is measured against DRAM"},
		widget.HelpLine{Key: "+120 MiB/s", Text: "how fast it grew between the last two samples"},
		widget.HelpLine{Key: "peak", Text: "the most seen since the start, or since z"},
		widget.HelpLine{Key: "(dead)", Text: "left behind by a process that is gone; in no other figure: see ttmon mem --stale"},
		widget.HelpLine{Key: "(others)", Text: "counted for the chip, but for no process whose figures are visible"},
	)
}
