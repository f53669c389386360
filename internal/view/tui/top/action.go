package top

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// leave closes what is open, one thing at a time, and quits at last.
func (s *State) leave() []tui.Effect {
	if s.closeOne() {
		return nil
	}
	return quit(s)
}

// close is leave without the quitting: Esc is pressed once too often by
// everybody.
func (s *State) close() []tui.Effect {
	if !s.closeOne() {
		s.showMessage(cells.Text, "nothing is open: q quits")
	}
	return nil
}

// closeOne closes what the main page has open; false if there is nothing.
func (s *State) closeOne() bool {
	switch {
	case !s.past.IsZero():
		s.present()
	case !s.chart.at.IsZero() || !s.chart.end.IsZero():
		s.chart.live()
	case s.proc.filterText != "":
		s.proc.setFilter(s, "")
	default:
		return false
	}
	return true
}

func (s *State) pause() []tui.Effect {
	s.paused = !s.paused
	if !s.paused {
		s.past = time.Time{}
		s.chart.live()
		s.thaw()
	}
	return nil
}

func (s *State) save() []tui.Effect { return []tui.Effect{act.Save{Config: s.cfg.Clone()}} }

func (s *State) saved(ev act.Saved) {
	if ev.Err != nil {
		s.showMessage(cells.Bad, "not saved: %v", ev.Err)
		return
	}
	s.showMessage(cells.Good, "saved to %s", ev.Path)
}

func (s *State) toggleTree() []tui.Effect {
	s.cfg.Top.Processes.Tree = !s.cfg.Top.Processes.Tree
	s.proc.build(s)
	return nil
}

func (s *State) sortDescending(on bool) []tui.Effect {
	s.cfg.Top.Processes.Descending = on
	s.proc.build(s)
	return nil
}

// pace takes the next longer or shorter time between updates.
func (s *State) pace(by int) []tui.Effect {
	now := time.Duration(s.cfg.Top.Interval)
	next := nextInterval(now, by)
	s.cfg.Top.Interval = config.Duration(next)
	s.showMessage(cells.Text, "updates every %s", s.cfg.Top.Interval)
	if next == now {
		return nil
	}
	return []tui.Effect{tui.SetInterval(next)}
}

func (s *State) space() []tui.Effect {
	if s.focus == charts {
		return s.pause()
	}
	s.proc.tag(s)
	return nil
}

// openDevice opens the page of the selected device.
func (s *State) openDevice() []tui.Effect {
	if d := s.dev.selected(s); d != nil {
		s.page = &devicePage{bus: d.BusID}
	}
	return nil
}

func (s *State) enter() []tui.Effect {
	switch s.focus {
	case devices:
		return s.openDevice()
	case charts:
		return s.openCharts()
	default:
		return s.openProcess()
	}
}

func (s *State) toggleWorst() []tui.Effect {
	if s.cfg.Top.Devices.Order == "worst" {
		s.cfg.Top.Devices.Order = "index"
	} else {
		s.cfg.Top.Devices.Order = "worst"
	}
	s.dev.scroll = 0
	s.showMessage(cells.Text, "devices: %s", map[string]string{"worst": "the one in most trouble first", "index": "by index"}[s.cfg.Top.Devices.Order])
	return nil
}

func (s *State) toggleProcesses() []tui.Effect {
	s.cfg.Top.Processes.Show = !s.cfg.Top.Processes.Show
	if !s.cfg.Top.Processes.Show {
		s.showMessage(cells.Text, "processes are hidden: P shows them again")
	}
	if !s.visible(s.focus) {
		s.turn(1)
	}
	return nil
}

// toggleCharts shows the charts where they are hidden, by choice or for want
// of room, and hides them where they are shown.
func (s *State) toggleCharts() []tui.Effect {
	if s.visible(charts) {
		s.cfg.Top.Charts.Show = "never"
		if s.focus == charts {
			s.turn(1)
		}
	} else {
		s.cfg.Top.Charts.Show = "always"
		if !s.visible(charts) {
			s.showMessage(cells.Warn, "no room for charts here: C shows them on the whole screen")
		}
	}
	return nil
}

func (s *State) nextLayout() []tui.Effect {
	i := slices.Index(layouts, s.cfg.Top.Devices.Layout)
	s.setLayout(layouts[(i+1)%len(layouts)])
	return nil
}

func (s *State) setLayout(name string) {
	s.cfg.Top.Devices.Layout = name
	s.dev.scroll = 0
	s.showMessage(cells.Text, "device layout: %s", name)
}
