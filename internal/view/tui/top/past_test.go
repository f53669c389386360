package top

import (
	"errors"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/act"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// An earlier moment shows the whole screen as it was; sampling continues.
func TestLookBack(t *testing.T) {
	s, err := New(Options{Config: config.Default()})
	if err != nil {
		t.Fatal(err)
	}
	now, old := tuitest.Host(4, 10), tuitest.Host(2, 0)
	s.Update(tui.Resize{W: 120, H: 40})
	s.Update(tui.Sample{Snapshot: now})
	if got := s.Update(tui.Key(">")); got != nil {
		t.Errorf("after the present there is %v", got)
	}
	effects := s.Update(tui.Key("<"))
	if len(effects) != 1 || !effects[0].(act.Load).At.Equal(now.Time.Add(-time.Minute)) {
		t.Fatalf("effects %v", effects)
	}
	s.Update(act.Loaded{At: now.Time.Add(-time.Minute), Err: errors.New("nothing is kept")})
	if s.shown != now || s.flash.text == "" {
		t.Error("a failure is not said, or changes the screen")
	}
	s.Update(act.Loaded{At: now.Time.Add(-time.Minute), Snapshot: old})
	s.Update(tui.Sample{Snapshot: tuitest.Host(4, 11)})
	if s.shown != old {
		t.Error("the present overwrites the past")
	}
	if got := s.Update(tui.Key("<")); !got[0].(act.Load).At.Equal(now.Time.Add(-2 * time.Minute)) {
		t.Errorf("further back: %v", got)
	}
	if foot := s.footKeys(); foot[0].foot != "Earlier" || foot[2].foot != "Present" {
		t.Errorf("the footer does not tell the way: %q, %q", foot[0].foot, foot[2].foot)
	}
	s.Update(tui.Key("esc"))
	if s.shown != s.live || s.paused || !s.past.IsZero() {
		t.Error("Esc does not return to the present")
	}
}
