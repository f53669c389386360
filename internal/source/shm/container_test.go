package shm

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// A container's pids mean nothing on the host: here pid 1 is alive for sure,
// and another one.
func TestContainerSharesShm(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		o.Container = true
		p := s.start(o, "name inside", "open 1", "alloc 1 dram 100")
		s.read()
		reg := s.holds(1, p)
		s.doubts(reg)
		if proc := s.process(p); proc.NSPID != 1 || proc.PID == 1 {
			t.Errorf("process %+v", proc)
		}
		s.kill(p)
		s.read()
		s.ghosts(s.holds(1), "inside:100")
	})
}

func TestContainerWithItsOwnShm(t *testing.T) {
	s := newScene(t)
	host := s.start(metal.Options{}, "open 1", "alloc 1 dram 5")
	o := metal.Options{Container: true, PID: 7, PrivateShm: true}
	a := s.start(o, "open 1", "alloc 1 dram 100", "open 2", "alloc 2 l1 3")
	s.read()
	if n := len(s.last.Regions); n != 1 {
		t.Fatalf("%d regions without a hint, want the host's", n)
	}
	s.read(a) // the driver names it as a user of a device
	if n := len(s.last.Regions); n != 3 {
		t.Fatalf("%d regions, want the host's and two of the container", n)
	}
	for _, reg := range s.last.Regions {
		switch {
		case reg.Path == "/dev/shm/tt_device_1_memory":
			if len(reg.Uses) != 1 || reg.Uses[0].PID != host.PID || show(usedOf(reg)[model.DRAM]) != "5" {
				t.Errorf("the host's region: %+v", reg)
			}
		case reg.Path == fmt.Sprintf("/proc/%d/root/dev/shm/tt_device_%d_memory", a.PID, reg.ID):
			if len(reg.Uses) != 1 || reg.Uses[0].PID != a.PID || show(usedOf(reg)[model.DRAM]) != fmt.Sprint(a.Held[reg.ID]["dram"]) {
				t.Errorf("the container's region: %+v", reg)
			}
		default:
			t.Errorf("region %s", reg.Path)
		}
	}
	// A scan of all of /proc finds it without a hint.
	s.r = s.reader(Options{FullScan: time.Hour})
	s.read()
	found := func() (n int) {
		for _, reg := range s.last.Regions {
			if strings.HasPrefix(reg.Path, fmt.Sprintf("/proc/%d/root", a.PID)) {
				n++
			}
		}
		return n
	}
	if n := found(); n != 2 {
		t.Errorf("%d regions of the container after a full scan", n)
	}
	s.kill(a)
	s.read(a)
	if n := found(); n != 0 {
		t.Errorf("%d regions after the container's end", n)
	}
}

// Two containers that share a region and have the same pid account in one slot.
// Their sum is right; their shares are unknown.
func TestContainersShareASlot(t *testing.T) {
	s := newScene(t)
	o := metal.Options{Container: true, PID: 7}
	a := s.start(o, "open 1", "alloc 1 dram 100")
	b := s.start(o, "open 1", "alloc 1 dram 30")
	s.read()
	reg := s.region(1)
	if show(usedOf(reg)[model.DRAM]) != "130" {
		t.Errorf("used %v, want what both hold", usedOf(reg)[model.DRAM])
	}
	for _, p := range []*metal.Process{a, b} {
		if u := s.use(reg, p); u.Bytes[model.DRAM].Known() {
			t.Errorf("process %d alone: %+v", p.PID, u)
		}
	}
	s.doubts(reg, model.SlotShared)
}

// Bug 10: a process finds its slot by pid, and the dead one's bytes in it.
func TestPidReuse(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		o.Container, o.PID = true, 7
		steps := func(s *scene, watched bool) {
			dead := s.start(o, "name dead", "open 1", "alloc 1 dram 1000", "alloc 1 l1 10", "cb 1 50")
			if watched {
				s.read()
				s.holds(1, dead)
			}
			s.kill(dead)
			if watched {
				s.read()
				s.ghosts(s.holds(1), "dead:1000")
			}
			time.Sleep(20 * time.Millisecond) // start times count in ticks of 10 ms
			successor := s.start(o, "name successor", "open 1")
			s.read(successor)
			reg := s.holds(1, successor)
			s.ghosts(reg, "dead:1000")
			s.doubts(reg, model.SlotAdopted)
			s.do(successor, "alloc 1 dram 7", "alloc 1 trace 5")
			s.read()
			// Whether its circular buffers are the dead one's cannot be told.
			reg = s.region(1)
			u := s.use(reg, successor)
			if show(u.Bytes[model.DRAM]) != "7" || show(u.Bytes[model.L1]) != "0" || show(u.Bytes[model.Trace]) != "5" {
				s.Errorf("successor %+v", u)
			}
			if _, bound, _ := u.Bytes[model.CB].Best(); bound != model.Unsure {
				s.Errorf("CB %v", u.Bytes[model.CB])
			}
			s.do(successor, "cb 1 60", "free 1 dram 7")
			s.read()
			reg = s.holds(1, successor)
			s.ghosts(reg, "dead:1000")
			if g := reg.StaleSlots[0]; g.SuccessorPID != successor.PID || show(g.Bytes[model.CB]) != "0" || show(g.Bytes[model.L1]) != "10" {
				s.Errorf("ghost %+v", g)
			}
			s.do(successor, "close 1") // takes the dead one's bytes along
			s.read()
			s.ghosts(s.holds(1))
		}
		t.Run("watched", func(t *testing.T) { steps(newScene(t), true) })
		t.Run("first seen before it writes", func(t *testing.T) { steps(newScene(t), false) })
	})
}

// If the slot was last seen alive, what its owner left is not known.
func TestPidReuseBetweenSweeps(t *testing.T) {
	s := newScene(t)
	o := metal.Options{Container: true, PID: 7}
	dead := s.start(o, "open 1", "alloc 1 dram 1000")
	s.read()
	s.do(dead, "alloc 1 dram 1") // no Reader sees this
	s.kill(dead)
	successor := s.start(o, "open 1", "alloc 1 dram 7", "alloc 1 l1 2")
	s.read()
	reg := s.region(1)
	u := s.use(reg, successor)
	if _, bound, _ := u.Bytes[model.DRAM].Best(); bound != model.Unsure {
		t.Errorf("DRAM %v: it cannot be known", u.Bytes[model.DRAM])
	}
	if show(u.Bytes[model.L1]) != "2" {
		t.Errorf("L1 %v, of which the dead one had none", u.Bytes[model.L1])
	}
	s.doubts(reg, model.SlotMaybeAdopted)
}

// A process that is watched when it claims a free slot is not suspected,
// whatever process died on the chip before.
func TestClaimedUnderWatch(t *testing.T) {
	s := newScene(t)
	o := metal.Options{Container: true, PID: 7}
	s.kill(s.start(o, "open 1")) // dies attached, without a slot
	s.read()
	p := s.start(o, "open 1", "alloc 1 dram 7")
	s.read()
	s.doubts(s.holds(1, p))
}

// A writer of layout 4 considers a live process of another container dead, and
// erases it.
func TestErasedFromAnotherContainer(t *testing.T) {
	s := newScene(t)
	victim := s.start(metal.Options{Layout: 4, Container: true, PID: 4000}, "open 1", "alloc 1 dram 1000")
	s.read()
	s.holds(1, victim)
	other := s.start(metal.Options{Layout: 4, Container: true, PID: 7}, "open 1", "alloc 1 dram 5")
	check := func() {
		t.Helper()
		reg := s.region(1)
		if u := s.use(reg, victim); u.Bytes[model.DRAM].Known() {
			t.Errorf("victim %+v", u)
		}
		if show(usedOf(reg)[model.DRAM]) != "5" || show(s.use(reg, other).Bytes[model.DRAM]) != "5" {
			t.Errorf("used %v", usedOf(reg)[model.DRAM])
		}
		s.doubts(reg, model.RecordsErased)
	}
	s.read()
	check()
	watching := s.r
	s.r = s.reader(Options{})
	s.read(victim, other)
	check()
	// What it records from now on is not all it holds. Only who saw it before
	// can know that.
	s.do(victim, "alloc 1 dram 3")
	s.r = watching
	s.read()
	check()
}
