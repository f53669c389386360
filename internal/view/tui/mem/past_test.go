package mem

import (
	"errors"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// An earlier moment shows what was held then, without what has changed since;
// sampling continues.
func TestLookBack(t *testing.T) {
	st := open(t, 4, 100, 30)
	s := st.s
	now, old := s.live, tuitest.Host(2, 3)
	if st.keys(">"); len(st.effects) != 0 || s.past.why == "" {
		t.Errorf("after the present there is %v, said %q", st.effects, s.past.why)
	}
	st.keys("<")
	if len(st.effects) != 1 || !st.effects[0].(act.Load).At.Equal(now.Time.Add(-time.Minute)) {
		t.Fatalf("effects %v", st.effects)
	}
	at := st.effects[0].(act.Load).At
	st.send(act.Loaded{At: at, Err: errors.New("nothing is kept")})
	if s.shown != now || s.past.why == "" {
		t.Error("a failure is not said, or changes the screen")
	}
	st.send(act.Loaded{At: at, Snapshot: old})
	st.run(1)
	if s.shown != old || len(s.chips()) != len(chipsOf(old, nil)) {
		t.Error("the present overwrites the past")
	}
	if foot := s.footer(); foot[0].Foot != "Earlier" || foot[2].Foot != "Present" {
		t.Errorf("the footer does not tell the way: %q, %q", foot[0].Foot, foot[2].Foot)
	}
	if s.trend.samples != 0 || len(s.trend.peak) != 0 {
		t.Error("changes of the present stand beside figures of the past")
	}
	st.keys("esc")
	if s.shown != s.live || s.paused || s.trend.samples == 0 {
		t.Error("Esc does not return to the present")
	}
}
