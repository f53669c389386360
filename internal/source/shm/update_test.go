package shm

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// TestLoadFigures: however a region changes, what is parsed of it is what is
// parsed of its bytes alone, and only where the owners stay it is new figures.
func TestLoadFigures(t *testing.T) {
	at := time.Unix(1_790_000_000, 42)
	for _, c := range []struct {
		name    string
		version uint32
	}{{"layout 3", 3}, {"layout 4", 4}} {
		t.Run(c.name, func(t *testing.T) {
			b := newImage(c.version, 1).slot(0, 7, "python", at, 1, 2, 3).slot(5, 8, "worker", at, 4).slot(63, 9, "last", at)
			path := filepath.Join(t.TempDir(), "region")
			write(t, path, string(b))
			fd, err := unix.Open(path, unix.O_RDWR, 0)
			if err != nil {
				t.Fatal(err)
			}
			f := &file{fd: fd}
			defer f.close()
			buf := newBuffer()
			if got, err := f.load(buf); got != newMembers || err != nil {
				t.Fatalf("the first time: %v %v", got, err)
			}
			random := rand.New(rand.NewPCG(1, uint64(c.version)))
			for range 20_000 {
				before := slices.Clone(b)
				for range 1 + random.IntN(3) {
					mutate(random, b)
				}
				if _, err := unix.Pwrite(fd, b, 0); err != nil {
					t.Fatal(err)
				}
				got, err := f.load(buf)
				if want := changeOf(before, b); got != want || err != nil {
					t.Fatalf("%v %v, want %v", got, err, want)
				}
				checkParsed(t, f, b)
			}
		})
	}
}

// mutate changes a word of a region: mostly a counter or a time, sometimes any.
func mutate(random *rand.Rand, b image) {
	slot := offSlots + slotSize*[]int{0, 5, 6, 63}[random.IntN(4)]
	switch random.IntN(8) {
	case 0:
		b.put32(4*random.IntN(offSlots/4-1)+4, uint32(random.IntN(3)))
	case 1:
		b.put32(slot+slotPID, uint32(random.IntN(3)-1))
	case 2:
		b[slot+slotName+random.IntN(nameSize)] = byte('a' + random.IntN(3))
	default:
		b.put64(slot+slotBytes+8*random.IntN(numPools+1), random.Uint64N(1<<62))
	}
}

// changeOf is what load must find.
func changeOf(before, now image) change {
	if slices.Equal(before, now) {
		return unchanged
	}
	a, err := Parse(before)
	b, err2 := Parse(now)
	if err != nil || err2 != nil || !sameOwners(before, now) || membersOf(a) != membersOf(b) || !slices.Equal(before[offRefs:offTotals], now[offRefs:offTotals]) {
		return newMembers
	}
	return newFigures
}

func checkParsed(t *testing.T, f *file, b image) {
	t.Helper()
	want, wantErr := Parse(b)
	if (f.parseErr == nil) != (wantErr == nil) {
		t.Fatalf("error %v, want %v", f.parseErr, wantErr)
	}
	if diff := cmp.Diff(want, f.parsed, cmpopts.EquateComparable(Layout{}), cmpopts.EquateEmpty()); diff != "" {
		t.Fatalf("-alone +after another:\n%s", diff)
	}
	var held [numPools]uint64
	for _, s := range want.Slots {
		for pool, n := range s.Bytes {
			held[pool] += n
		}
	}
	if f.held != held {
		t.Fatalf("all slots hold %d, want %d", f.held, held)
	}
}

// checkJudged checks that the results are what they are when all regions are
// judged and built again.
func (s *scene) checkJudged() {
	s.Helper()
	for _, reg := range s.r.regions {
		reg.dirty = true
	}
	before := map[*region]*Region{}
	for _, reg := range s.r.regions {
		before[reg] = reg.result
	}
	s.r.judgeAll()
	for reg, was := range before {
		if !reflect.DeepEqual(was, reg.result) {
			s.Errorf("%s: %+v, and judged again %+v", was.Path, was, reg.result)
		}
	}
}

// updated checks that a chip's region was updated and not judged, for all but
// the given workload: what is known of the others is what was known.
func (s *scene) updated(before *Region, w *metal.Process) {
	s.Helper()
	now := s.region(before.ID)
	if now == before {
		s.Error("the region is the same as before")
	}
	for i, u := range now.Uses {
		if same := u == before.Uses[i]; same == (u.PID == w.PID) {
			s.Errorf("process %d: the same as before: %v", u.PID, same)
		}
	}
}

// A sweep that was given out does not change, and the next one shares with it
// what is as it was.
func TestOneOfManyAllocates(t *testing.T) {
	eachLayout(t, func(t *testing.T, o metal.Options) {
		s := newScene(t)
		a := s.start(o, "open 1", "alloc 1 dram 10")
		b := s.start(o, "open 1", "alloc 1 dram 20", "cb 1 5")
		c := s.start(o, "open 1", "alloc 1 dram 30")
		s.read()
		first := s.holds(1, a, b, c)
		s.do(b, "alloc 1 dram 5", "alloc 1 l1 7")
		s.read()
		s.updated(first, b)
		second := s.holds(1, a, b, c)
		if got := show(usedOf(first)[model.DRAM]); got != "60" {
			t.Errorf("the sweep before now says %s", got)
		}
		s.read()
		if s.region(1) != second {
			t.Error("no process allocated, and there is another result")
		}
		s.checkJudged()
	})
}

// What makes more of a region's results wrong than the slots whose bytes changed
// is noticed, also where only the figures of others change.
func TestUpdateNotices(t *testing.T) {
	layout3, layout4 := metal.Options{Layout: 3}, metal.Options{Layout: 4}
	tests := []struct {
		name  string
		first metal.Options
		// event happens to the first of two processes; then the other one
		// allocates. check checks the result.
		event func(s *scene, first *metal.Process)
		check func(s *scene, reg *Region, first, other *metal.Process)
	}{
		{
			"a process died", layout3,
			func(s *scene, first *metal.Process) { s.kill(first) },
			func(s *scene, reg *Region, _, other *metal.Process) { s.ghosts(s.holds(1, other), "first:10") },
		},
		{
			"a process died whose mappings may not be read", layout3,
			func(s *scene, first *metal.Process) {
				s.hideMaps(first)
				s.kill(first)
			},
			func(s *scene, reg *Region, _, other *metal.Process) { s.ghosts(s.holds(1, other), "first:10") },
		},
		{
			"a process executed another program", layout3,
			func(s *scene, first *metal.Process) {
				if err := first.Send("exec"); err != nil {
					s.Fatal(err)
				}
				waitForName(s.T, first.PID, "cat")
				s.forgetMaps(first)
			},
			func(s *scene, reg *Region, _, other *metal.Process) { s.ghosts(s.holds(1, other), "first:10") },
		},
		{
			"a slot was released", layout4,
			func(s *scene, first *metal.Process) { s.do(first, "close 1") },
			func(s *scene, reg *Region, _, other *metal.Process) { s.ghosts(s.holds(1, other)) },
		},
		{
			"a slot has another owner", layout4,
			func(s *scene, first *metal.Process) {
				s.do(first, "close 1")
				s.start(layout4, "open 1", "alloc 1 dram 3")
			},
			func(s *scene, reg *Region, first, other *metal.Process) {
				if len(reg.Uses) != 2 || slices.ContainsFunc(reg.Uses, func(u *Use) bool { return u.PID == first.PID }) {
					s.Errorf("uses %+v", reg.Uses)
				}
			},
		},
		{
			"a pid was reused",
			metal.Options{Container: true, PID: 7},
			func(s *scene, first *metal.Process) {
				s.kill(first)
				s.read()
				time.Sleep(20 * time.Millisecond) // start times count in ticks of 10 ms
				s.start(metal.Options{Container: true, PID: 7}, "name successor", "open 1", "alloc 1 dram 3")
			},
			func(s *scene, reg *Region, _, other *metal.Process) {
				s.ghosts(reg, "first:10")
				if reg.StaleSlots[0].SuccessorPID == 0 || show(usedOf(reg)[model.DRAM]) != fmt.Sprint(3+other.Held[1]["dram"]) {
					s.Errorf("used %v, ghosts %+v", usedOf(reg)[model.DRAM], reg.StaleSlots)
				}
			},
		},
		{
			"a slot of a dead process was written", layout3,
			func(s *scene, first *metal.Process) {
				s.kill(first)
				s.read()
				other := s.start(layout3, "open 1", "store 1 864 11")
				s.do(other, "close 1")
			},
			func(s *scene, reg *Region, _, other *metal.Process) { s.ghosts(reg, "first:11") },
		},
		{
			"a newer release wiped it", layout3,
			func(s *scene, _ *metal.Process) { s.start(layout4, "open 1", "alloc 1 dram 5") },
			func(s *scene, reg *Region, first, other *metal.Process) {
				s.doubts(reg, model.RecordsErased)
				if reg.Version != 4 || s.use(reg, first).Bytes[model.DRAM].Known() {
					s.Errorf("region %+v", reg)
				}
			},
		},
		{
			"the capacity is another", layout3,
			func(s *scene, _ *metal.Process) {
				s.r.opts.Capacity = func(uint64) (c Capacity) { c[model.DRAM] = 5; return c }
			},
			func(s *scene, reg *Region, first, _ *metal.Process) {
				if s.doubts(reg, model.FigureImpossible); s.use(reg, first).Bytes[model.DRAM].Known() {
					s.Errorf("10 bytes of 5: %+v", s.use(reg, first))
				}
			},
		},
		{
			"its release is another", layout3,
			func(s *scene, first *metal.Process) {
				s.do(first, "lib "+install(s.T, "0.71.2"))
				s.forgetMaps(first)
			},
			func(s *scene, reg *Region, first, _ *metal.Process) {
				if !slices.ContainsFunc(s.use(reg, first).Doubts, model.Doubt{Kind: model.GraphCapture, Release: "0.71.2"}.Equal) {
					s.Errorf("doubts %+v", s.use(reg, first).Doubts)
				}
			},
		},
		{
			"its name is gone", layout3,
			func(s *scene, _ *metal.Process) { remove(s.T, "/dev/shm/tt_device_1_memory") },
			func(s *scene, reg *Region, first, other *metal.Process) {
				if s.holds(1, first, other); !reg.Deleted {
					s.Error("not shown as deleted")
				}
			},
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newScene(t)
			first := s.start(tt.first, "name first", "open 1", "alloc 1 dram 10")
			other := s.start(metal.Options{Layout: tt.first.Layout}, "name other", "open 1", "alloc 1 dram 20")
			s.read()
			before := s.holds(1, first, other)
			s.do(other, "alloc 1 dram 4")
			s.read()
			s.updated(before, other)
			tt.event(s, first)
			s.do(other, "alloc 1 dram 1")
			s.read()
			tt.check(s, s.region(1), first, other)
			s.checkJudged()
			s.do(other, "alloc 1 dram 1")
			s.read()
			tt.check(s, s.region(1), first, other)
		})
	}
}

// forgetMaps makes the mappings of a process too old to be believed.
func (s *scene) forgetMaps(p *metal.Process) {
	known := s.r.procs[p.PID]
	known.mapsAt = known.mapsAt.Add(-mapsAge)
}

// The figures of a slot that is in more than its owner's use change all of that.
func TestUpdateOfMoreThanAUse(t *testing.T) {
	t.Run("of several processes", func(t *testing.T) {
		s := newScene(t)
		o := metal.Options{Container: true, PID: 7}
		a := s.start(o, "open 1", "alloc 1 dram 100")
		s.start(o, "open 1", "alloc 1 dram 10")
		s.read()
		s.do(a, "alloc 1 dram 5")
		s.read()
		if reg := s.region(1); show(reg.Together[model.DRAM]) != "115" || reg.Uses[0].Bytes[model.DRAM].Known() {
			t.Errorf("together %v, the first %+v", reg.Together[model.DRAM], reg.Uses[0])
		}
		s.checkJudged()
	})
	t.Run("of a dead process and its successor", func(t *testing.T) {
		s := newScene(t)
		o := metal.Options{Container: true, PID: 7}
		dead := s.start(o, "name dead", "open 1", "alloc 1 dram 100", "cb 1 70")
		s.read()
		s.kill(dead)
		s.read()
		time.Sleep(20 * time.Millisecond) // start times count in ticks of 10 ms
		b := s.start(o, "open 1", "alloc 1 dram 5")
		s.read()
		s.do(b, "cb 1 60")
		s.read()
		if reg := s.holds(1, b); len(reg.StaleSlots) != 1 || show(reg.StaleSlots[0].Bytes[model.CB]) != "0" {
			t.Errorf("ghosts %+v, whose CB was overwritten", reg.StaleSlots)
		}
		s.checkJudged()
	})
}

// A new file under the name of a region is another region.
func TestRegionRecreated(t *testing.T) {
	s := newScene(t)
	a := s.start(metal.Options{}, "open 1", "alloc 1 dram 10")
	s.read()
	s.do(a, "alloc 1 dram 1")
	s.read()
	s.end(a)
	remove(t, "/dev/shm/tt_device_1_memory")
	b := s.start(metal.Options{}, "open 1", "alloc 1 dram 200")
	s.read()
	s.ghosts(s.holds(1, b))
	s.checkJudged()
}

// Bytes that no slot has come to light with the header alone.
func TestOverflowNoticed(t *testing.T) {
	s := newScene(t)
	b := newImage(3, 1)
	for i := range numSlots {
		b.slot(i, 1<<22+int32(i), "dead", time.Unix(1_790_000_000, 0), 1)
	}
	b.put64(offTotals, numSlots)
	write(t, regionOne, string(b))
	s.read()
	s.doubts(s.region(1))
	b.put64(offTotals, numSlots+1)
	write(t, regionOne, string(b))
	s.read()
	s.doubts(s.region(1), model.SlotsOverflowed)
	b.put64(offTotals, numSlots)
	write(t, regionOne, string(b))
	s.read()
	s.doubts(s.region(1))
}

// A release that could not be found out is tried again, as ever, when the region
// changes.
func TestReleaseFoundLater(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root may mount")
	}
	s := newScene(t)
	lib := install(t, "0.71.2")
	site := filepath.Join(filepath.Dir(lib), "../../..")
	a := s.start(metal.Options{}, "lib "+lib, "open 1", "alloc 1 dram 10")
	b := s.start(metal.Options{}, "open 1", "alloc 1 dram 10")
	if err := unix.Mount("tmpfs", filepath.Dir(site), "tmpfs", 0, ""); err != nil {
		t.Fatal(err)
	}
	s.read()
	if err := unix.Unmount(filepath.Dir(site), 0); err != nil {
		t.Fatal(err)
	}
	found := func() bool {
		return slices.ContainsFunc(s.use(s.region(1), a).Doubts, func(d model.Doubt) bool { return d.Release == "0.71.2" })
	}
	if found() {
		t.Fatal("the scenario does not work: the release was found")
	}
	s.do(b, "alloc 1 dram 1")
	s.read()
	if !found() {
		t.Errorf("doubts %+v", s.use(s.region(1), a).Doubts)
	}
}
