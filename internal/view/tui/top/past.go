package top

import (
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// showEarlier moves the moment that the whole screen shows.
func (s *State) showEarlier(by time.Duration) []tui.Effect {
	if s.live == nil {
		return nil
	}
	at := s.past
	if at.IsZero() {
		if by > 0 {
			s.showMessage(cells.Faint, "this is the present: < shows earlier samples")
			return nil
		}
		at = s.live.Time
	}
	if at = at.Add(by); !at.Before(s.live.Time) {
		s.present()
		return nil
	}
	return []tui.Effect{act.Load{At: at}}
}

// showPast shows the snapshot that came.
func (s *State) showPast(ev act.Loaded) {
	if ev.Err != nil {
		s.showMessage(cells.Warn, "history unavailable: %s", words.Escape(ev.Err.Error()))
		return
	}
	s.past, s.paused = ev.At, true
	s.chart.end = ev.At
	s.show(ev.Snapshot)
}

// present returns to the newest snapshot.
func (s *State) present() {
	s.past, s.paused = time.Time{}, false
	s.chart.live()
	s.thaw()
}
