package recording

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// played is a player of a minute, a snapshot every two seconds and an event at
// 20 and 40, with a clock of the test's own.
func played(t *testing.T) (p *Player, clock *time.Time) {
	t.Helper()
	w, path := create(t)
	ok(t, w.Meta(at(-1), Meta{Version: "test"}))
	for s := 0; s <= 60; s += 2 {
		ok(t, w.Snapshot(at(float64(s)), wire.Append(nil, tuitest.Host(1, s))))
		if s%20 == 0 && s > 0 && s < 60 {
			ok(t, w.Event(model.Event{Time: at(float64(s)), Kind: "alert", Text: "hot"}))
		}
	}
	ok(t, w.Close())
	r, err := Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	p = NewPlayer(r)
	now := time.Unix(1000, 0)
	p.now = func() time.Time { return now }
	p.since = now
	marks, err := Open(path)
	ok(t, err)
	defer marks.Close()
	ok(t, p.Find(marks))
	return p, &now
}

// shows fails unless the snapshot is that of a second.
func (p *Player) shows(t *testing.T, second int) {
	t.Helper()
	s, err := p.Next(t.Context())
	ok(t, err)
	if got := s.Time.Sub(t0); got != time.Duration(second)*time.Second {
		t.Errorf("it shows %v, want %d s", got, second)
	}
}

func TestPlayer(t *testing.T) {
	p, now := played(t)
	p.shows(t, 0) // before the first snapshot it shows that
	p.Play(true)
	*now = now.Add(7 * time.Second)
	p.shows(t, 6)
	p.SetSpeed(10)
	*now = now.Add(2 * time.Second)
	p.shows(t, 26)
	p.Play(false)
	*now = now.Add(time.Hour)
	p.shows(t, 26)
	ok(t, p.Step(true))
	p.shows(t, 28)
	ok(t, p.Step(false))
	ok(t, p.Step(false))
	p.shows(t, 24)
	if m, found := p.Jump(true); !found || m.Event.Text != "hot" {
		t.Errorf("the next event: %+v", m)
	}
	p.shows(t, 40)
	if _, found := p.Jump(true); found {
		t.Error("there is no event after 40")
	}
	if _, found := p.Jump(false); !found {
		t.Error("no event before 40")
	}
	p.shows(t, 20)
	p.Go(at(1e6))
	p.shows(t, 60)
	p.Play(true)
	*now = now.Add(time.Hour)
	p.shows(t, 60)
	p.Go(at(-1e6))
	if st := p.Status(); !st.Pos.Equal(at(-1)) || !st.Last.Equal(at(60)) {
		t.Errorf("%+v", st)
	}
	p.Play(false)
	p.Go(at(30))
	if list := p.Before(10*time.Second, 5); len(list) != 5 || !list[0].Time.Equal(at(20)) {
		t.Errorf("%d snapshots before", len(list))
	}
}

func TestPeakOfSnapshots(t *testing.T) {
	p, _ := played(t)
	peak, err := Peak(p.r, model.DRAM)
	ok(t, err)
	most, want := uint64(0), 0
	for s := 0; s <= 60; s += 2 {
		if n := heldBy(tuitest.Host(1, s), model.DRAM); n > most {
			most, want = n, s
		}
	}
	if !peak.Equal(at(float64(want))) {
		t.Errorf("the peak is at %v, want %d s", peak.Sub(t0), want)
	}
	if shown, err := PeakSnapshot(p.r, model.DRAM); err != nil || !shown.Equal(peak) {
		t.Errorf("the snapshot with the most is at %v, %v", shown.Sub(t0), err)
	}
	p.Go(peak)
	s, err := p.Next(t.Context())
	ok(t, err)
	if n := heldBy(s, model.DRAM); n != most {
		t.Errorf("the snapshot of the peak has %d bytes, want %d", n, most)
	}
}
