package mem

import (
	"time"

	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/words"
)

// past is the moment that the screens look back at. Samples are still taken,
// and what they say of changes and peaks is kept aside: it is not the past's.
type past struct {
	at    time.Time // zero: the present is shown
	trend trend     // of the present
	why   string    // there is no looking back
}

// lookBack moves the moment that the screens show.
func (s *State) lookBack(by time.Duration) []tui.Effect {
	s.past.why = ""
	if s.live == nil {
		return nil
	}
	at := s.past.at
	if at.IsZero() {
		if by > 0 {
			s.past.why = "this is the present: < looks back"
			return nil
		}
		at = s.live.Time
	}
	if at = at.Add(by); !at.Before(s.live.Time) {
		s.present()
		return nil
	}
	return []tui.Effect{act.Look{At: at}}
}

// looked shows the snapshot that came.
func (s *State) looked(ev act.Looked) {
	if ev.Err != nil {
		s.past.why = "no looking back: " + words.Escape(ev.Err.Error())
		return
	}
	if s.past.at.IsZero() {
		s.past.trend, s.trend = s.trend, trend{}
	}
	s.past.at, s.paused, s.shown, s.banks = ev.At, true, ev.Snapshot, banks{} // maps are of now
	s.settle()
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
