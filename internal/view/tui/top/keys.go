package top

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// binding is what keys do. The footer and the help are made of bindings, so
// that what they say is what happens.
type binding struct {
	keys []tui.Key
	foot string // word in the footer; empty: not there
	help string
	do   func(*State) []tui.Effect
}

// everywhere lists the keys that work on all pages.
func everywhere() []binding {
	return []binding{
		{keys: []tui.Key{"f1", "?"}, foot: "Help", help: "this help", do: func(s *State) []tui.Effect { s.dialog = &help{}; return nil }},
		{keys: []tui.Key{"f2", "S"}, foot: "Setup", help: "setup: everything the configuration file can say", do: (*State).openSetup},
		{keys: []tui.Key{"p"}, foot: "Pause", help: "pause and continue; samples are still taken", do: (*State).pause},
		{keys: []tui.Key{"<"}, help: "look back a minute: everything as it was, from ttmond", do: earlier},
		{keys: []tui.Key{">"}, help: "a minute later again; Esc returns to the present", do: later},
		{keys: []tui.Key{"{"}, help: "look back half an hour", do: func(s *State) []tui.Effect { return s.showEarlier(-30 * time.Minute) }},
		{keys: []tui.Key{"}"}, help: "half an hour later again", do: func(s *State) []tui.Effect { return s.showEarlier(30 * time.Minute) }},
		{keys: []tui.Key{"R"}, help: "refresh now", do: func(*State) []tui.Effect { return []tui.Effect{tui.Refresh{}} }},
		{keys: []tui.Key{"f12"}, help: "save the configuration as it is now", do: (*State).save},
		{keys: []tui.Key{"ctrl-l"}, help: "redraw the screen", do: func(*State) []tui.Effect { return []tui.Effect{tui.Repaint{}} }},
		{keys: []tui.Key{"ctrl-z"}, help: "suspend", do: func(*State) []tui.Effect { return []tui.Effect{tui.Suspend{}} }},
		{keys: []tui.Key{"1"}, help: "main page", do: func(s *State) []tui.Effect { s.page = nil; return nil }},
		{keys: []tui.Key{"2"}, help: "charts on the whole screen", do: (*State).openCharts},
		{keys: []tui.Key{"3"}, help: "telemetry of the selected device; arrows step through the others", do: (*State).openDevice},
		{keys: []tui.Key{"f10", "ctrl-c"}, foot: "Quit", help: "quit", do: quit},
	}
}

func earlier(s *State) []tui.Effect { return s.showEarlier(-time.Minute) }
func later(s *State) []tui.Effect   { return s.showEarlier(time.Minute) }

// throughPast lists the keys that the footer begins with in the past.
func throughPast() []binding {
	return []binding{
		{keys: []tui.Key{"<"}, foot: "Earlier", do: earlier},
		{keys: []tui.Key{">"}, foot: "Later", do: later},
		{keys: []tui.Key{"esc"}, foot: "Present", do: func(s *State) []tui.Effect { s.present(); return nil }},
	}
}

// onMain lists the keys of the main page.
func onMain() []binding {
	return []binding{
		{keys: []tui.Key{"f3", "/", "f4"}, foot: "Filter", help: "filter processes: user=root dram>1G device=3 cmd~llama", do: (*State).openFilter},
		{keys: []tui.Key{"f5", "t"}, foot: "Tree", help: "children below their parents", do: (*State).toggleTree},
		{keys: []tui.Key{"f6", "o"}, foot: "Sort", help: "choose the column to sort by", do: (*State).openSort},
		{keys: []tui.Key{"I"}, help: "reverse the order", do: func(s *State) []tui.Effect { return s.sortDescending(!s.cfg.Top.Processes.Descending) }},
		{keys: []tui.Key{"+", "="}, help: "a longer time between updates · charts: zoom in", do: func(s *State) []tui.Effect { return s.pace(1) }},
		{keys: []tui.Key{"-", "_"}, help: "a shorter time between updates · charts: zoom out", do: func(s *State) []tui.Effect { return s.pace(-1) }},
		{keys: []tui.Key{"f9", "k"}, foot: "Kill", help: "send a signal to the selected or the tagged processes", do: (*State).openKill},
		{keys: []tui.Key{" "}, help: "tag the selected process · charts: pause", do: (*State).space},
		{keys: []tui.Key{"U"}, help: "untag all", do: func(s *State) []tui.Effect { s.proc.tagged = nil; return nil }},
		{keys: []tui.Key{"enter"}, help: "details of the selected process or device; the chart on the whole screen", do: (*State).enter},
		{keys: []tui.Key{"tab"}, help: "next pane: processes, devices, charts", do: func(s *State) []tui.Effect { s.turn(1); return nil }},
		{keys: []tui.Key{"shift-tab"}, help: "previous pane", do: func(s *State) []tui.Effect { s.turn(-1); return nil }},
		{keys: []tui.Key{"m"}, foot: "Memory", help: "the memory of a device, and who holds it", do: (*State).openMemory},
		{keys: []tui.Key{"c"}, foot: "Charts", help: "show or hide the charts", do: (*State).toggleCharts},
		{keys: []tui.Key{"C"}, foot: "Full charts", help: "charts on the whole screen", do: (*State).openCharts},
		{keys: []tui.Key{"a"}, foot: "Metrics", help: "choose what is charted", do: (*State).openMetrics},
		{keys: []tui.Key{"e"}, foot: "Events", help: "events of this run and all notices", do: func(s *State) []tui.Effect { s.page = &logPage{}; return nil }},
		{keys: []tui.Key{"L"}, help: "Ethernet links: the mesh of the chips, and what is down", do: func(s *State) []tui.Effect { s.page = &linksPage{}; return nil }},
		{keys: []tui.Key{"v"}, foot: "Layout", help: "layout of the devices: auto, blocks, compact, lines, grid", do: (*State).nextLayout},
		{keys: []tui.Key{"w"}, foot: "Worst", help: "worst device first, or by index", do: (*State).toggleWorst},
		{keys: []tui.Key{"P"}, foot: "Processes", help: "show or hide the processes", do: (*State).toggleProcesses},
		{keys: []tui.Key{"q"}, help: "quit (closes pages, dialogs and the filter first)", do: (*State).leave},
		{keys: []tui.Key{"esc"}, help: "close what is open: page, dialog, cursor, filter; never quits", do: (*State).close},
	}
}

// bound gives bindings the state they act on.
func (s *State) bound(list []binding) []widget.Binding {
	out := make([]widget.Binding, len(list))
	for i, b := range list {
		out[i] = widget.Binding{Keys: b.keys, Foot: b.foot, Help: b.help, Do: func() []tui.Effect { return b.do(s) }}
	}
	return out
}

func quit(*State) []tui.Effect { return []tui.Effect{tui.Quit{}} }

// key finds out who gets a key: the dialog, the page, the focused pane.
func (s *State) key(k tui.Key) []tui.Effect {
	if k == "ctrl-c" || k == "ctrl-z" || k == "ctrl-l" {
		return run(s, everywhere(), k)
	}
	if s.dialog != nil {
		return s.dialog.key(s, k)
	}
	if s.page != nil {
		if b := find(s.page.keys(), k); b != nil {
			return b.do(s)
		}
		if b := find(everywhere(), k); b != nil {
			return b.do(s)
		}
		if k == "q" || k == "esc" {
			s.page = nil
			return nil
		}
		return s.page.key(s, k)
	}
	if b := find(everywhere(), k); b != nil {
		return b.do(s)
	}
	if b := find(s.paneKeys(), k); b != nil {
		return b.do(s)
	}
	if b := find(onMain(), k); b != nil {
		return b.do(s)
	}
	if m, ok := widget.MotionOf(k); ok {
		s.move(m)
	}
	return nil
}

func find(list []binding, k tui.Key) *binding {
	for i := range list {
		if slices.Contains(list[i].keys, k) {
			return &list[i]
		}
	}
	return nil
}

func run(s *State, list []binding, k tui.Key) []tui.Effect {
	if b := find(list, k); b != nil {
		return b.do(s)
	}
	return nil
}

// paneKeys are keys that only the focused pane has.
func (s *State) paneKeys() []binding {
	if s.focus == charts {
		return chartKeys()
	}
	return nil
}

// move moves in the focused pane.
func (s *State) move(m widget.Motion) {
	switch s.focus {
	case processes:
		s.proc.move(s, m)
	case devices:
		s.dev.move(s, m)
	case charts:
		s.chart.move(s, m)
	}
}

// turn gives the focus to another pane that is on the screen.
func (s *State) turn(by int) {
	for range numPanes {
		s.focus = (s.focus + pane(by) + numPanes) % numPanes
		if s.visible(s.focus) {
			return
		}
	}
}

// visible reports whether a pane has room on the screen.
func (s *State) visible(p pane) bool {
	l := s.plan()
	switch p {
	case processes:
		return l.processes > 0
	case charts:
		return l.charts > 0
	default:
		return true
	}
}

// mouse gives a mouse event to what was drawn at its place.
func (s *State) mouse(m tui.Mouse) []tui.Effect {
	if m.Action == tui.Release {
		return nil
	}
	if m.Action != tui.Drag {
		s.flash = flash{}
	}
	return s.hits.Send(m)
}
