package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sim"
	"github.com/ttmon/ttmon/internal/sim/metal"
)

// The known ways in which the writers' numbers lie, one test each. The truth
// is what the processes really hold; ttmon shows it, or says why it cannot.

// TestKilledWriters: the bytes of killed processes stay in the region for
// ever, in slots, totals and counts; clean exits afterwards change nothing.
func TestKilledWriters(t *testing.T) {
	t.Parallel()
	eachWriter(t, func(t *testing.T, o metal.Options) {
		c := newScriptedHost(t, sim.Options{})
		a := c.play(o, "name first", "open @", "alloc @ dram 1G", "alloc @ l1 2M", "cb @ 64K")
		b := c.play(o, "name second", "open @", "alloc @ dram 7")
		c.shows()
		c.kill(a)
		left := fmt.Sprint("first:", 1<<30+2<<20+64<<10)
		c.shows(left)
		c.do(b, "alloc @ dram 1K", "close @")
		if o.Layout == 4 {
			left = "" // a writer of layout 4 gives dead slots back when it leaves
		}
		c.live = nil // the second has the device open and accounts for nothing
		s := snapshot(t, c.host)
		if got := strings.Join(ghostsIn(s), ""); got != left {
			t.Errorf("ghosts %q, want %q", got, left)
		}
		// Run after run the per-chip table drifts upwards. It is not trusted.
		for range 3 {
			p := c.play(o, "open @", "alloc @ dram 1700")
			c.gone(p)
		}
		c.gone(b)
		p := c.play(o, "open @", "alloc @ dram 5")
		if left == "" {
			c.shows()
		} else {
			c.shows(left)
		}
		c.gone(p)
	})
}

// TestCircularBuffers: the header has the last writer's figure, not the sum.
func TestCircularBuffers(t *testing.T) {
	eachWriter(t, func(t *testing.T, o metal.Options) {
		c := newScriptedHost(t, sim.Options{})
		c.play(o, "open @", "alloc @ l1 1", "cb @ 100K")
		c.play(o, "open @", "alloc @ l1 1", "cb @ 30K")
		s := c.shows()
		wantBytes(t, "circular buffers of the chip", s.Devices[0].Memory.Pools[model.CB].Used, 130<<10)
		want := map[int]model.CBMeaning{3: model.CBCached, 4: model.CBResident}[o.Layout]
		if got := s.Devices[0].Memory.CB; got != want {
			t.Errorf("circular buffers mean %q, want %q", got, want)
		}
		if r := runIn(t, c.host, "smi", "-q", "-d", "MEMORY"); !strings.Contains(r.out, "Counts") {
			t.Errorf("the report does not say what CB means:\n%s", r.out)
		}
	})
}

// TestUnfinishedRegion: its maker died between making and initialising it.
func TestUnfinishedRegion(t *testing.T) {
	t.Parallel()
	eachWriter(t, func(t *testing.T, o metal.Options) {
		c := newScriptedHost(t, sim.Options{})
		p := c.play(o, "make @")
		s := snapshot(t, c.host)
		if u := used(s); u.Known() {
			t.Errorf("%d bytes used of a chip whose region is all zeroes", u)
		}
		c.wantTracking(s, model.TrackPartial, model.RegionUnreadable)
		c.kill(p)
		c.live = nil
		c.play(o, "open @", "alloc @ dram 3")
		if o.Layout == 3 { // as the real one: an attacher finds version 0 and starts over
			c.shows()
		}
	})
}

// TestWrappedCounters: totals and slots that went below zero.
func TestWrappedCounters(t *testing.T) {
	const atTotalDRAM, atSlot0L1 = 48, 856 + 16
	c := newScriptedHost(t, sim.Options{})
	p := c.play(metal.Options{}, "open @", "alloc @ dram 1M", "alloc @ l1 1K")
	c.do(p, fmt.Sprintf("store @ %d %d", atTotalDRAM, uint64(1<<64-4096)))
	c.shows()
	c.do(p, fmt.Sprintf("store @ %d %d", atSlot0L1, uint64(1<<64-4096)))
	s := snapshot(t, c.host)
	wantBytes(t, "DRAM", used(s), 1<<20)
	l1 := s.Devices[0].Memory.Pools[model.L1].Used
	wantNoBytes(t, "wrapped L1", l1, model.Implausible)
	if u := processOf(t, s, p.PID).Devices[0]; !doubted(u.Doubts, model.FigureImpossible) {
		t.Errorf("doubts %+v", u.Doubts)
	}
	if r := runIn(t, c.host, "smi"); strings.Contains(r.out, "EiB") || strings.Contains(r.out, "16.0 E") {
		t.Errorf("the table shows a wrapped counter:\n%s", r.out)
	}
	// More than the chip has is no wrap, and as impossible.
	c.do(p, fmt.Sprintf("store @ %d %d", 856+8, 100<<30))
	wantNoBytes(t, "more DRAM than there is", used(snapshot(t, c.host)), model.Implausible)
}

// TestSlotTableFull: 64 slots, 65 processes.
func TestSlotTableFull(t *testing.T) {
	t.Parallel()
	eachWriter(t, func(t *testing.T, o metal.Options) {
		c := newScriptedHost(t, sim.Options{})
		var sum uint64
		for i := range 64 {
			c.play(o, "open @", fmt.Sprintf("alloc @ dram %d", 1000+i))
			sum += uint64(1000 + i)
		}
		c.shows()
		last := c.play(o, "name last", "open @", "alloc @ dram 1000000")
		s := snapshot(t, c.host)
		if u := processOf(t, s, last.PID).Devices[0]; u.Memory[model.DRAM].Known() || !doubted(u.Doubts, model.SlotsFull) {
			t.Errorf("the process without a slot: %+v", u)
		}
		wantBytes(t, "used by the others", used(s), sum)
		c.wantTracking(s, model.TrackPartial)
	})
}

// TestForkedWriter: the child's exit takes the parent out of the count, which
// resets all totals and then wraps.
func TestForkedWriter(t *testing.T) {
	c := newScriptedHost(t, sim.Options{})
	p := c.play(metal.Options{}, "name parent", "open @", "alloc @ dram 100M")
	c.do(p, "fork quit", "fork quit")
	s := snapshot(t, c.host)
	wantBytes(t, "the parent's DRAM", c.dram(s, p), 100<<20)
	wantBytes(t, "used", used(s), 100<<20)
	wantGhosts(t, s)
}

// TestExecutedWriter: a process that becomes another program holds nothing
// any more, with the same pid and start time.
func TestExecutedWriter(t *testing.T) {
	c := newScriptedHost(t, sim.Options{})
	p := c.play(metal.Options{}, "name before", "open @", "alloc @ dram 9M")
	c.shows()
	if err := p.Send("exec"); err != nil {
		t.Fatal(err)
	}
	waitName(t, p.PID, "cat")
	s := snapshot(t, c.host)
	wantGhosts(t, s, fmt.Sprint("before:", 9<<20))
	if r := used(s); r.Positive() {
		t.Errorf("%+v used after the program was replaced", r)
	}
}

// TestSecondThread: what releases since 0.72 do not see is said, per process,
// wherever its figures are shown.
func TestSecondThread(t *testing.T) {
	for release, counted := range map[string]bool{"0.81.1": false, "0.71.2": true} {
		t.Run(release, func(t *testing.T) {
			c := newScriptedHost(t, sim.Options{})
			p := c.play(metal.Options{}, "lib "+install(t, release), "open @", "alloc @ dram 1M", "alloc @ dram 32M elsewhere")
			s := snapshot(t, c.host)
			wantValue(t, "release", processOf(t, s, p.PID).Release, release)
			wantBytes(t, "recorded", c.dram(s, p), 1<<20) // a scripted one records as 0.72 and later do
			for _, args := range [][]string{
				{"smi", "--json"}, {"smi", "--query-apps=pid,memory.doubts", "--format=csv"},
			} {
				if r := runIn(t, c.host, args...); strings.Contains(r.out, threadNote) == counted {
					t.Errorf("%v of %s: note that is missing or too much:\n%s", args, release, r.out)
				}
			}
		})
	}
}

// TestUntracked: who has the device open and accounts for nothing is told,
// with the reason, and makes the figures incomplete.
func TestUntracked(t *testing.T) {
	for name, w := range map[string]struct {
		o        metal.Options
		commands []string
		why      model.DoubtKind
	}{
		"disabled":    {metal.Options{Env: []string{"TT_METAL_SHM_TRACKING_DISABLED=1"}}, []string{"lib 0.81.1", "open @", "alloc @ dram 5G"}, model.TrackingDisabled},
		"too old":     {metal.Options{}, []string{"lib 0.69.0"}, model.OldRelease},
		"not started": {metal.Options{}, []string{"lib 0.81.1"}, model.NotAttached},
		"foreign":     {metal.Options{}, nil, model.NotTTMetal},
		"static":      {metal.Options{}, []string{"map /dev/tenstorrent/0"}, model.LibraryUnseen},
	} {
		t.Run(name, func(t *testing.T) {
			c := newScriptedHost(t, sim.Options{})
			for i, line := range w.commands {
				if release, ok := strings.CutPrefix(line, "lib "); ok {
					w.commands[i] = "lib " + install(t, release)
				}
			}
			p := c.play(w.o, w.commands...)
			s := snapshot(t, c.host)
			u := processOf(t, s, p.PID).Devices[0]
			if u.Tracking != model.TrackAbsent || !doubted(u.Doubts, w.why) {
				t.Errorf("tracking %s: %+v, want %q", u.Tracking, u.Doubts, w.why)
			}
			wantNoBytes(t, "DRAM of an untracked process", u.Memory[model.DRAM], model.Absent)
			if r := used(s); r.Known() && name != "foreign" {
				t.Errorf("%+v used, with a process on the device that does not account", r)
			}
		})
	}
}

// TestMixedReleases: the next release takes the region of a running process
// for new, and erases it.
func TestMixedReleases(t *testing.T) {
	c := newScriptedHost(t, sim.Options{})
	old := c.play(metal.Options{Layout: 3}, "lib "+install(t, "0.81.1"), "open @", "alloc @ dram 1000")
	c.shows()
	young := c.play(metal.Options{Layout: 4}, "open @", "alloc @ dram 5")
	s := snapshot(t, c.host)
	if r := c.dram(s, old); r.Known() || !doubted(processOf(t, s, old.PID).Devices[0].Doubts, model.RecordsErased) {
		t.Errorf("what was erased is shown as %+v", r)
	}
	wantBytes(t, "the new one's", c.dram(s, young), 5)
	c.wantTracking(s, model.TrackPartial)
	// An older one does not attach where a newer one is.
	late := c.play(metal.Options{Layout: 3}, "lib "+install(t, "0.81.1"))
	if _, err := late.Do(fmt.Sprintf("open %d", c.chip)); err == nil {
		t.Fatal("the scenario does not work: layout 3 attached to layout 4")
	}
	s = snapshot(t, c.host)
	if u := processOf(t, s, late.PID).Devices[0]; u.Tracking != model.TrackAbsent || !doubted(u.Doubts, model.LayoutMismatch) {
		t.Errorf("tracking %s: %+v", u.Tracking, u.Doubts)
	}
	wantBytes(t, "the new one's", used(s), 5)
	c.gone(late)
	c.gone(old) // and its exit wraps the count
	c.shows()
}

// TestUnknownLayout: a future layout is refused, not guessed at.
func TestUnknownLayout(t *testing.T) {
	c := newScriptedHost(t, sim.Options{})
	p := c.play(metal.Options{}, "open @", "alloc @ dram 5M")
	c.do(p, "store @ 0 5")
	s := snapshot(t, c.host)
	c.wantTracking(s, model.TrackUnknown, model.LayoutUnknown)
	wantNoBytes(t, "used", used(s), model.Unsupported)
	if r := runIn(t, c.host, "smi"); !strings.Contains(r.out, "layout") {
		t.Errorf("the table does not say that the layout is unknown:\n%s", r.out)
	}
}
