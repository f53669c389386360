package shm

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// eachLayout runs a scenario with every writer that there is.
func eachLayout(t *testing.T, f func(t *testing.T, o metal.Options)) {
	for _, layout := range []int{2, 3, 4} {
		t.Run(fmt.Sprintf("layout %d", layout), func(t *testing.T) { f(t, metal.Options{Layout: layout}) })
	}
}

func TestLifeOfAProcess(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		if sweep := s.read(); len(sweep.Regions) != 0 || len(sweep.Processes) != 0 {
			t.Fatalf("an empty host shows %+v", sweep)
		}
		p := s.start(o, "name python", "open 4476187513037 3")
		s.read()
		reg := s.holds(4476187513037, p)
		s.doubts(reg)
		if reg.Version != uint32(o.Layout) || reg.DeviceID != 3 || reg.Path != "/dev/shm/tt_device_4476187513037_memory" {
			t.Errorf("region %+v", reg)
		}
		if u := s.use(reg, p); (u.Slot == -1) != (o.Layout < 4) {
			t.Errorf("slot %d before the first allocation", u.Slot)
		}
		for _, c := range []string{
			"alloc 4476187513037 dram 128M", "alloc 4476187513037 l1 2M", "alloc 4476187513037 l1_small 32K",
			"alloc 4476187513037 trace 1M", "cb 4476187513037 1351680", "host 4476187513037",
			"free 4476187513037 dram 64M", "free 4476187513037 l1 2M",
		} {
			s.do(p, c)
			s.read()
			s.doubts(s.holds(4476187513037, p))
		}
		s.do(p, "close 4476187513037")
		s.read()
		if reg := s.holds(4476187513037); len(reg.StaleSlots) != 0 || len(doubtsOf(reg)) != 0 {
			t.Errorf("an idle region shows %+v", reg)
		}
		if len(s.last.Processes) != 0 {
			t.Errorf("processes %+v after close", s.last.Processes)
		}
	})
}

// Bug 1 and 2 of the writer: who is killed stays in slot, totals and per-chip
// table for ever, and no clean exit corrects it.
func TestKilledProcessIsAGhost(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		a := s.start(o, "name first", "open 1", "alloc 1 dram 1000", "cb 1 70")
		b := s.start(o, "name second", "open 1", "alloc 1 dram 200")
		s.read()
		s.ghosts(s.holds(1, a, b))
		s.kill(a)
		s.read()
		reg := s.holds(1, b)
		s.ghosts(reg, "first:1000")
		g := reg.StaleSlots[0]
		if g.PID != a.PID || g.Updated.IsZero() || show(g.Bytes[model.CB]) != "70" {
			t.Errorf("ghost %+v", g)
		}
		// Layout 4 reaps it with the next process that comes or goes.
		s.end(b)
		s.read()
		reg = s.holds(1)
		if o.Layout == 4 {
			s.ghosts(reg)
			return
		}
		s.ghosts(reg, "first:1000")
		for range 3 {
			c := s.start(o, "open 1", "alloc 1 dram 77")
			s.read()
			s.ghosts(s.holds(1, c), "first:1000")
			s.end(c)
		}
	})
}

// A dead process that its parent has not waited for still has a pid and a
// name. It holds nothing.
func TestZombieIsAGhost(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "name zombie", "open 1", "alloc 1 dram 5")
	s.read()
	s.holds(1, p)
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	waitForZombie(t, p.PID)
	s.read()
	s.ghosts(s.holds(1), "zombie:5")
	s.r = s.reader(Options{})
	s.read()
	s.ghosts(s.holds(1), "zombie:5")
}

// Bug 5: the header's CB total is the last writer's.
func TestCircularBuffersAreSummed(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		a := s.start(o, "open 1", "alloc 1 dram 1", "cb 1 1000")
		b := s.start(o, "open 1", "alloc 1 dram 1", "cb 1 30")
		s.read()
		reg := s.holds(1, a, b)
		if want := map[bool]model.CBMeaning{true: model.CBResident, false: model.CBCached}[o.Layout == 4]; reg.Uses[0].CB != want {
			t.Errorf("CB means %q, want %q", reg.Uses[0].CB, want)
		}
	})
}

// Bug 6: a process that dies while it makes a region leaves zeroes, or a claim
// that is never redeemed.
func TestUnfinishedRegion(t *testing.T) {
	for _, layout := range []int{3, 4} {
		t.Run(fmt.Sprintf("layout %d", layout), func(t *testing.T) {
			s := newScene(t)
			o := metal.Options{Layout: layout}
			s.kill(s.start(o, "make 9"))
			s.read()
			reg := s.region(9)
			s.doubts(reg, model.RegionUnreadable)
			if usedOf(reg)[model.DRAM].Known() {
				t.Errorf("DRAM used %v of an unfinished region", usedOf(reg)[model.DRAM])
			}
			// The next one waits for the dead one, then takes over.
			next := s.start(o, "open 9", "alloc 9 dram 3")
			s.read()
			s.doubts(s.holds(9, next))
		})
	}
}

// Bugs 7 and 8: totals that wrapped or kept what was released. They are never
// shown as memory; a slot that wrapped is not believed.
func TestWrappedCounters(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "open 1", "alloc 1 dram 100", "alloc 1 l1 10",
		"store 1 48 0xFFFFFFFFFFFFFF00", // header total of DRAM
		"store 1 88 0xFFFFFFFFFFFFFF00", // per-chip table
		"store 1 16 0xFFFFFFFF")         // reference count
	s.read()
	reg := s.holds(1, p)
	s.doubts(reg)
	if got := reg.Diagnostics.Unaccounted[0]; got != -256-100 {
		t.Errorf("unaccounted %d, want -356", got)
	}

	s.do(p, "store 1 864 0xFFFFFFFFFFFFFF00") // DRAM of slot 0
	s.read()
	reg = s.region(1)
	u := s.use(reg, p)
	if u.Bytes[model.DRAM].Status() != model.Implausible || usedOf(reg)[model.DRAM].Known() {
		t.Errorf("wrapped DRAM: %v, used %v", u.Bytes[model.DRAM], usedOf(reg)[model.DRAM])
	}
	if show(u.Bytes[model.L1]) != "10" || show(usedOf(reg)[model.L1]) != "10" {
		t.Errorf("L1 beside a wrapped DRAM: %v", u.Bytes[model.L1])
	}
	s.doubts(reg, model.FigureImpossible)

	q := s.start(metal.Options{}, "open 1", "alloc 1 dram 7")
	s.read()
	if reg = s.region(1); show(usedOf(reg)[model.DRAM]) != "7" {
		t.Errorf("used %v, want what the believable process %d holds", usedOf(reg)[model.DRAM], q.PID)
	}
}

func TestMoreThanTheChipHas(t *testing.T) {
	s := newScene(t)
	s.r = s.reader(Options{Capacity: func(id uint64) (c Capacity) {
		if id == 1 {
			c[model.DRAM] = 1000
		}
		return c
	}})
	a := s.start(metal.Options{}, "open 1", "alloc 1 dram 1050", "open 2", "alloc 2 dram 1051")
	s.read()
	s.holds(1, a)
	s.holds(2, a)
	s.do(a, "alloc 1 dram 1")
	s.read()
	s.doubts(s.region(1), model.FigureImpossible)
	if got := s.use(s.region(1), a).Bytes[model.DRAM]; got.Status() != model.Implausible {
		t.Errorf("1051 bytes of 1000: %v", got)
	}
}

// Bug 9: the table has 64 slots, and the dead keep theirs.
func TestSlotTableFull(t *testing.T) {
	for _, layout := range []int{3, 4} {
		t.Run(fmt.Sprintf("layout %d", layout), func(t *testing.T) {
			s := newScene(t)
			o := metal.Options{Layout: layout}
			var all []*metal.Process
			for i := range 65 {
				p, err := metal.Start(o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { s.end(p) })
				s.do(p, "open 1", fmt.Sprintf("alloc 1 dram %d", 1000+i))
				all = append(all, p)
			}
			s.read()
			reg := s.region(1)
			var sum uint64
			for _, p := range all[:64] {
				sum += p.Held[1]["dram"]
				if got := show(s.use(reg, p).Bytes[model.DRAM]); got != fmt.Sprint(p.Held[1]["dram"]) {
					t.Errorf("process %d: %s", p.PID, got)
				}
			}
			if show(usedOf(reg)[model.DRAM]) != fmt.Sprint(sum) {
				t.Errorf("used %v, want %d", usedOf(reg)[model.DRAM], sum)
			}
			u := s.use(reg, all[64])
			if u.Slot != -1 || u.Bytes[model.DRAM].Known() {
				t.Errorf("the process without a slot shows %+v", u)
			}
			s.doubts(reg, map[int][]model.DoubtKind{3: {model.SlotsFull, model.SlotsOverflowed}, 4: {model.SlotsFull}}[layout]...)
			if want := map[int]int64{3: 1064, 4: 0}[layout]; reg.Diagnostics.Unaccounted[0] != want {
				t.Errorf("unaccounted %d, want %d", reg.Diagnostics.Unaccounted[0], want)
			}

			for _, p := range all[:64] {
				if err := p.Kill(); err != nil {
					t.Fatal(err)
				}
			}
			for _, p := range all[:64] {
				s.end(p)
			}
			s.read()
			reg = s.region(1)
			if len(reg.StaleSlots) != 64 || len(reg.Uses) != 1 {
				t.Fatalf("%d ghosts, %d uses", len(reg.StaleSlots), len(reg.Uses))
			}
			s.doubts(reg, map[int][]model.DoubtKind{3: {model.SlotsFull, model.SlotsOverflowed}, 4: {model.SlotsFull}}[layout]...)
		})
	}
}

// Bug 11: a forked child's destructor takes its parent out of the count.
func TestForkedChild(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "open 1", "alloc 1 dram 100")
	child := s.do(p, "fork").Child
	s.read()
	reg := s.region(1)
	if got := show(s.use(reg, p).Bytes[model.DRAM]); got != "100" || show(usedOf(reg)[model.DRAM]) != "100" {
		t.Errorf("parent %s", got)
	}
	s.do(p, "fork quit") // runs the destructor: the count goes to 0, totals are reset
	s.do(p, "fork quit") // and wraps
	s.r = s.reader(Options{})
	s.read()
	reg = s.region(1)
	if reg.Diagnostics.Refs != 0xFFFFFFFF {
		t.Fatalf("reference count %#x: the scenario does not work", reg.Diagnostics.Refs)
	}
	s.doubts(reg)
	if len(reg.Uses) != 2 || reg.Uses[1].PID != child {
		t.Fatalf("uses %+v, want parent and child", reg.Uses)
	}
	if show(usedOf(reg)[model.DRAM]) != "100" || show(reg.Uses[0].Bytes[model.DRAM]) != "100" {
		t.Errorf("parent %v, used %v", reg.Uses[0], usedOf(reg)[model.DRAM])
	}
	if u := reg.Uses[1]; show(u.Bytes[model.DRAM]) != "0" {
		t.Errorf("child %+v", u)
	}
	// A child that allocates has its own slot; its parent's death changes nothing for it.
	q := s.do(p, "fork alloc 1 dram 7").Child
	s.kill(p)
	s.read()
	reg = s.region(1)
	if show(usedOf(reg)[model.DRAM]) != "0" && show(usedOf(reg)[model.DRAM]) != "7" {
		t.Errorf("used %v after the parent's death, child %d", usedOf(reg)[model.DRAM], q)
	}
}

// What a process leaves behind that executes another program: it did not
// detach, pid and start time are the same, and the memory is gone.
func TestExecLeavesAGhost(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "name before", "open 1", "alloc 1 dram 9")
	s.read()
	s.holds(1, p)
	if err := p.Send("exec"); err != nil {
		t.Fatal(err)
	}
	waitForName(t, p.PID, "cat")
	s.r.procs[p.PID].mapsAt = s.r.procs[p.PID].mapsAt.Add(-mapsAge)
	s.read()
	s.ghosts(s.holds(1), "before:9")
}

// A region that was removed by hand is still used by the processes that map it.
func TestRemovedUnderAProcess(t *testing.T) {
	s := newScene(t)
	a := s.start(metal.Options{}, "open 1", "alloc 1 dram 10")
	s.read(a)
	s.holds(1, a)
	remove(t, "/dev/shm/tt_device_1_memory")
	s.do(a, "alloc 1 dram 5")
	s.read(a)
	if reg := s.holds(1, a); !reg.Deleted {
		t.Error("not shown as deleted")
	}
	// A Reader that comes later finds it over the process.
	s.r = s.reader(Options{})
	s.read(a)
	if reg := s.holds(1, a); !reg.Deleted {
		t.Error("not shown as deleted")
	}
	b := s.start(metal.Options{}, "open 1", "alloc 1 dram 200")
	s.read(a, b)
	if len(s.last.Regions) != 2 {
		t.Fatalf("%d regions", len(s.last.Regions))
	}
	for _, reg := range s.last.Regions {
		want := map[bool]string{true: "15", false: "200"}[reg.Deleted]
		if show(usedOf(reg)[model.DRAM]) != want {
			t.Errorf("deleted %v: used %v, want %s", reg.Deleted, usedOf(reg)[model.DRAM], want)
		}
	}
	s.end(a)
	s.read(b)
	s.holds(1, b)
}

// A process keeps running when its first thread exits. /proc/<pid>/maps is
// empty then.
func TestFirstThreadEnded(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{}, "open 1", "alloc 1 dram 5")
	s.read()
	s.holds(1, p)
	s.do(p, "leave")
	waitFor(t, "the end of the first thread", func() bool {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", p.PID))
		return err == nil && len(b) == 0
	})
	s.do(p, "alloc 1 dram 7")
	s.read()
	s.holds(1, p)
	s.r = s.reader(Options{})
	s.read()
	s.doubts(s.holds(1, p))
	s.kill(p)
	s.read()
	if reg := s.holds(1); len(reg.StaleSlots) != 1 {
		t.Errorf("ghosts %+v", reg.StaleSlots)
	}
}

// Without time to read all processes none is declared dead.
func TestSearchOutOfTime(t *testing.T) {
	s := newScene(t)
	s.kill(s.start(metal.Options{}, "name dead", "open 1", "alloc 1 dram 5"))
	s.r.opts.SearchTime = -1
	s.read()
	reg := s.holds(1)
	s.ghosts(reg)
	s.doubts(reg, model.SlotUndecided)
	if len(reg.Unknown) != 1 {
		t.Errorf("unknown %+v", reg.Unknown)
	}
	s.r.opts.SearchTime = time.Minute
	s.read()
	s.ghosts(s.holds(1), "dead:5")
}

// A container's regions stay reachable while a process in it runs.
func TestPathFollowsTheLiving(t *testing.T) {
	s := newScene(t)
	p := s.start(metal.Options{Container: true, PrivateShm: true}, "open 1", "alloc 1 dram 5")
	child := s.do(p, "fork").Child
	children, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.PID))
	if err != nil || child == 0 {
		t.Fatal(err, child)
	}
	inner := 0
	for _, path := range children {
		fmt.Sscan(string(contents(t, path)), &inner)
	}
	sweep := s.r.Read([]User{{PID: inner}})
	if len(sweep.Regions) != 1 || sweep.Regions[0].Path != fmt.Sprintf("/proc/%d/root/dev/shm/tt_device_1_memory", inner) {
		t.Fatalf("regions of %d: %+v", inner, sweep.Regions)
	}
	if err := unix.Kill(inner, unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitForZombie(t, inner)
	s.read(p)
	if reg := s.holds(1, p); reg.Path != fmt.Sprintf("/proc/%d/root/dev/shm/tt_device_1_memory", p.PID) {
		t.Errorf("path %s", reg.Path)
	}
}
