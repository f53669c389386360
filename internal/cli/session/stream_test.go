package session

import (
	"testing"
	"time"
)

// What is told is waited for while ttmond may still tell it, and a time in which
// the recorder itself was not run is not held against ttmond: what comes after its
// time has been written would be recorded as of a later one.
func TestSettled(t *testing.T) {
	start := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	every := func(d time.Duration, n int) (list []time.Duration) {
		for i := range n {
			list = append(list, d*time.Duration(i+1))
		}
		return list
	}
	for name, c := range map[string]struct {
		off   bool
		most  time.Duration
		turns []time.Duration // after start, without a word
		waits bool
	}{
		"it was heard a moment ago":   {turns: every(DrainEvery, 10), waits: true},
		"it is silent":                {turns: every(DrainEvery, 201)},
		"the user is patient":         {most: 20 * time.Second, turns: every(DrainEvery, 201), waits: true},
		"no stream":                   {off: true, turns: every(DrainEvery, 1)},
		"we were not run":             {turns: []time.Duration{DrainEvery, time.Minute, time.Minute + DrainEvery}, waits: true},
		"we are run rarely":           {turns: every(time.Second, 5), waits: true},
		"we were run rarely for ever": {turns: every(time.Second, 101)},
	} {
		t.Run(name, func(t *testing.T) {
			s := stream{on: !c.off, most: c.most, upTo: start, turn: start}
			var now time.Time
			for _, after := range c.turns {
				now = start.Add(after)
				s.wait(now)
			}
			want := now.Add(-settle)
			if c.waits {
				want = s.upTo
			}
			if got := s.settled(now); !got.Equal(want) {
				t.Errorf("after %v of silence all up to %v is written, want %v", s.quiet, got, want)
			}
		})
	}
}
