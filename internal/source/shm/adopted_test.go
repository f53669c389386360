package shm

import (
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// A Reader that starts after the successor in a dead process's slot has written
// cannot know whose bytes are in it, and must not show them as the successor's.
func TestAdoptedBeforeAnybodyLooked(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		o.Container, o.PID = true, 7
		dead := s.start(o, "name dead", "open 1", "alloc 1 dram 1000")
		s.kill(dead)
		successor := s.start(o, "name successor", "open 1", "alloc 1 dram 7", "alloc 1 l1 2")
		s.read()
		reg := s.region(1)
		u := s.use(reg, successor)
		for _, pool := range []model.Pool{model.DRAM, model.L1} {
			if _, bound, _ := u.Bytes[pool].Best(); bound != model.Unsure {
				t.Errorf("%s: %v, which may be a dead one's", pool, u.Bytes[pool])
			}
		}
		if show(u.Bytes[model.Trace]) != "0" {
			t.Errorf("trace %v: neither of them had any", u.Bytes[model.Trace])
		}
		if len(reg.StaleSlots) != 0 {
			t.Errorf("ghosts %v", reg.StaleSlots)
		}
		s.doubts(reg, model.SlotMaybeAdopted)
		// What it allocates from now on in a pool that was empty is its own.
		s.do(successor, "alloc 1 trace 5")
		s.read()
		if got := show(s.use(s.region(1), successor).Bytes[model.Trace]); got != "5" {
			t.Errorf("trace %s, want 5", got)
		}
		s.do(successor, "close 1")
		s.read()
		s.holds(1)
	})
}

// A dead process whose slot is still there left nothing to another. One of whom
// no slot is left may be, in a container or not, under any name.
func TestDeathsThatLeadToDoubt(t *testing.T) {
	s := newScene(t)
	dead := s.start(metal.Options{Container: true, PID: 7}, "open 1", "alloc 1 dram 1000")
	s.kill(dead)
	inside := s.start(metal.Options{Container: true, PID: 8}, "open 1", "alloc 1 dram 7")
	s.read()
	s.doubts(s.holds(1, inside))

	s = newScene(t)
	early := s.start(metal.Options{}, "open 2") // dies before it allocates: no slot
	s.kill(early)
	p := s.start(metal.Options{}, "open 2", "alloc 2 dram 7")
	s.read()
	s.doubts(s.holds(2, p), model.SlotMaybeAdopted)
	// Who has watched it hands on what it knows.
	s = newScene(t)
	s.read()
	s.kill(s.start(metal.Options{}, "open 4"))
	s.read()
	p = s.start(metal.Options{}, "open 4", "alloc 4 dram 7")
	s.read()
	s.doubts(s.holds(4, p))
	known := s.r.Adoptions()
	s.r = s.reader(Options{})
	s.r.Restore(known)
	s.read()
	s.doubts(s.holds(4, p))
	// A child's exit took one from the count; that no process died is not known,
	// and nothing points to it.
	s = newScene(t)
	q := s.start(metal.Options{Container: true, PID: 7}, "open 3", "alloc 3 dram 7")
	s.do(q, "fork quit", "fork quit")
	s.read()
	if got := show(s.use(s.region(3), q).Bytes[model.DRAM]); got != "7" {
		t.Errorf("after the count wrapped: %s", got)
	}
}

// TestHandedOnOwner: a successor knows who left the bytes that a live process
// counts on top of.
func TestHandedOnOwner(t *testing.T) {
	s := newScene(t)
	o := metal.Options{Container: true, PID: 7}
	dead := s.start(o, "name dead", "open 1", "alloc 1 dram 1000")
	s.read()
	s.kill(dead)
	s.read()
	successor := s.start(o, "name successor", "open 1", "alloc 1 dram 7")
	s.read()
	known := s.r.Adoptions()
	s.r = s.reader(Options{})
	s.r.Restore(known)
	s.read()
	reg := s.region(1)
	if got := show(s.use(reg, successor).Bytes[model.DRAM]); got != "7" {
		t.Errorf("the live one holds %s, want 7", got)
	}
	if len(reg.StaleSlots) != 1 || reg.StaleSlots[0].PID != 7 || reg.StaleSlots[0].Name != "dead" {
		t.Errorf("ghosts %+v, want one of pid 7", reg.StaleSlots)
	}
}
