package mem

import (
	"time"

	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/words"
)

// past is the earlier moment that the screens show. Sampling continues; the
// changes and peaks of the present are kept apart meanwhile.
type past struct {
	at    time.Time // zero: the present is shown
	trend trend     // of the present
	why   string    // history is unavailable
}

// showEarlier moves the moment that the screens show.
func (s *State) showEarlier(by time.Duration) []tui.Effect {
	s.past.why = ""
	if s.live == nil {
		return nil
	}
	at := s.past.at
	if at.IsZero() {
		if by > 0 {
			s.past.why = "this is the present: < shows earlier samples"
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
		s.past.why = "history unavailable:  " + words.Escape(ev.Err.Error())
		return
	}
	if s.past.at.IsZero() {
		s.past.trend, s.trend = s.trend, trend{}
	}
	s.past.at, s.paused, s.shown, s.banks = ev.At, true, ev.Snapshot, banks{} // maps are of now
	s.clampSelection()
}

// present returns to the newest snapshot; false: it was there already.
func (s *State) present() bool {
	if s.past.at.IsZero() {
		return false
	}
	s.trend, s.past = s.past.trend, past{}
	s.Pause(false)
	return true
}

// nowTrend is what is known of changes in the present.
func (s *State) nowTrend() *trend {
	if s.past.at.IsZero() {
		return &s.trend
	}
	return &s.past.trend
}

// endName is what the newest end of a chart is called.
func (s *State) endName() string {
	if s.paused && s.shown != nil {
		return s.shown.Time.Local().Format("15:04:05")
	}
	return "now"
}
