package shm

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sim/metal"
)

// Who first looks after the heir of a dead process's slot has written cannot
// know whose bytes are in it, and must not show them as the heir's.
func TestAdoptedBeforeAnybodyLooked(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		o.Container, o.PID = true, 7
		dead := s.start(o, "name dead", "open 1", "alloc 1 dram 1000")
		s.kill(dead)
		heir := s.start(o, "name heir", "open 1", "alloc 1 dram 7", "alloc 1 l1 2")
		s.read()
		reg := s.region(1)
		u := s.use(reg, heir)
		for _, pool := range []model.Pool{model.DRAM, model.L1} {
			if u.Bytes[pool].Status != model.Stale {
				t.Errorf("%s: %v, which may be a dead one's", pool, u.Bytes[pool])
			}
		}
		if show(u.Bytes[model.Trace]) != "0" {
			t.Errorf("trace %v: neither of them had any", u.Bytes[model.Trace])
		}
		if reg.Used[model.DRAM].Known() || len(reg.Ghosts) != 0 {
			t.Errorf("used %v, ghosts %v", reg.Used[model.DRAM], reg.Ghosts)
		}
		s.tracking(reg, model.TrackPartial, "may hold what a dead process of the same pid left")
		// What it allocates from now on in a pool that was empty is its own.
		s.do(heir, "alloc 1 trace 5")
		s.read()
		if got := show(s.use(s.region(1), heir).Bytes[model.Trace]); got != "5" {
			t.Errorf("trace %s, want 5", got)
		}
		s.do(heir, "close 1")
		s.read()
		s.holds(1)
	})
}

// A dead process whose slot is still there is nobody's ancestor, and neither
// is one outside of containers: there numbers come back after a long time.
func TestDeathsThatLeadToNoDoubt(t *testing.T) {
	s := newScene(t)
	dead := s.start(metal.Options{Container: true, PID: 7}, "open 1", "alloc 1 dram 1000")
	s.kill(dead)
	inside := s.start(metal.Options{Container: true, PID: 8}, "open 1", "alloc 1 dram 7")
	s.read()
	s.holds(1, inside)

	s = newScene(t)
	early := s.start(metal.Options{}, "open 2") // dies before it allocates: no slot
	s.kill(early)
	p := s.start(metal.Options{}, "open 2", "alloc 2 dram 7")
	s.read()
	s.holds(2, p)
	// A name of its own, though, that is not the slot's.
	s.do(p, "name other")
	s.r = s.reader(Options{})
	s.read()
	if u := s.use(s.region(2), p); u.Bytes[model.DRAM].Known() {
		t.Errorf("a slot under another name: %+v", u)
	}
	// A child's exit took one from the count; that nobody died is not known,
	// and nothing points to it.
	s = newScene(t)
	q := s.start(metal.Options{Container: true, PID: 7}, "open 3", "alloc 3 dram 7")
	s.do(q, "fork quit", "fork quit")
	s.read()
	if got := show(s.use(s.region(3), q).Bytes[model.DRAM]); got != "7" {
		t.Errorf("after the count wrapped: %s", got)
	}
}
