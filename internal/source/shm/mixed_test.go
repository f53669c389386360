package shm

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
	"github.com/ttmon/ttmon/internal/model"
)

// install makes a directory look like an installed ttnn and returns the path
// of its library.
func install(t *testing.T, release string) string {
	top := t.TempDir()
	if err := os.Chmod(filepath.Dir(top), 0o755); err != nil { // other users run it too
		t.Fatal(err)
	}
	lib, err := ttnn.Imitate(top, release)
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

// Layout 4 takes a region of layout 3 for new and wipes it, under its owner.
func TestNewReleaseWipesOld(t *testing.T) {
	s := newScene(t)
	lib := install(t, "0.81.1")
	old := s.start(metal.Options{Layout: 3}, "lib "+lib, "open 1", "alloc 1 dram 1000")
	s.read()
	s.holds(1, old)
	young := s.start(metal.Options{Layout: 4}, "open 1", "alloc 1 dram 5")
	check := func() {
		t.Helper()
		reg := s.region(1)
		if u := s.use(reg, old); u.Bytes[model.DRAM].Known() {
			t.Errorf("what was wiped is shown as %+v", u)
		}
		if show(s.use(reg, young).Bytes[model.DRAM]) != "5" || show(usedOf(reg)[model.DRAM]) != "5" {
			t.Errorf("used %v", usedOf(reg)[model.DRAM])
		}
		if s.doubts(reg, model.RecordsErased); reg.Version != 4 {
			t.Errorf("region %+v", reg)
		}
	}
	s.read()
	check()
	s.do(old, "alloc 1 dram 3")
	s.read()
	check()
	// Who comes later knows by the release.
	s.r = s.reader(Options{})
	s.read()
	check()
	// The old one's exit wraps the count, which is not trusted either.
	s.end(old)
	s.read()
	s.doubts(s.holds(1, young))
}

// Layout 3 does not touch a region of layout 4 that is in use, and takes over
// one that is not.
func TestOldReleaseAfterNew(t *testing.T) {
	s := newScene(t)
	lib := install(t, "0.81.1")
	young := s.start(metal.Options{Layout: 4}, "open 1", "alloc 1 dram 5")
	old := s.start(metal.Options{Layout: 3}, "lib "+lib)
	if _, err := old.Do("open 1"); err == nil {
		t.Fatal("the scenario does not work: layout 3 attached to layout 4")
	}
	s.do(old, "alloc 1 dram 1000")
	s.read(old, young)
	s.doubts(s.holds(1, young))
	p := s.process(old)
	if want := (model.Doubt{Kind: model.LayoutMismatch, PID: p.PID, Region: "/dev/shm/tt_device_1_memory", Version: 4, Chip: 1}); p.Accounts || p.Silent.Kind != model.NotAttached || len(p.ShutOut) != 1 || !p.ShutOut[0].Equal(want) {
		t.Errorf("untracked: %+v %+v, want %+v", p.Silent, p.ShutOut, want)
	}
	s.end(old)
	s.end(young)
	again := s.start(metal.Options{Layout: 3}, "open 1", "alloc 1 dram 9")
	s.read()
	if reg := s.holds(1, again); reg.Version != 3 {
		t.Errorf("version %d", reg.Version)
	}
}

// A layout 2 writer does not read the version it finds.
func TestLayout2InLayout3(t *testing.T) {
	s := newScene(t)
	a := s.start(metal.Options{Layout: 3}, "open 1", "alloc 1 dram 5")
	b := s.start(metal.Options{Layout: 2}, "open 1", "alloc 1 dram 7")
	s.read()
	if reg := s.holds(1, a, b); reg.Version != 3 {
		t.Errorf("version %d", reg.Version)
	}
}

// TestType: what a process uses its devices with, by the library that it maps.
func TestType(t *testing.T) {
	wheel := install(t, "0.81.1")
	own := filepath.Join(t.TempDir(), "libtt_metal.so")
	bytes, err := os.ReadFile(wheel)
	if err == nil {
		err = os.WriteFile(own, bytes, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	s := newScene(t)
	for lib, want := range map[string]string{wheel: model.TypeTTNN, own: model.TypeMetal} {
		t.Run(want, func(t *testing.T) {
			p := s.start(metal.Options{Layout: 3}, "lib "+lib, "open 1", "alloc 1 dram 10")
			s.read()
			if v := s.process(p).Type; v.V != want {
				t.Errorf("type %+v", v)
			}
		})
	}
	t.Run(model.TypeOther, func(t *testing.T) {
		p := s.start(metal.Options{Layout: 3}, "open 1", "alloc 1 dram 10")
		s.read()
		if v := s.process(p).Type; v.V != model.TypeOther {
			t.Errorf("type %+v", v)
		}
	})
}

// A library is another release's when it was installed again: what was known of
// its file ends with the last process that maps it.
func TestReleaseReinstalled(t *testing.T) {
	s := newScene(t)
	lib := install(t, "0.71.2")
	old := s.start(metal.Options{Layout: 3}, "lib "+lib, "open 1", "alloc 1 dram 10")
	s.read()
	if v := s.process(old).Release; v.V != "0.71.2" {
		t.Fatalf("release %+v", v)
	}
	s.end(old)
	s.read()
	site := filepath.Join(filepath.Dir(lib), "../../..")
	if err := os.Rename(filepath.Join(site, "ttnn-0.71.2.dist-info"), filepath.Join(site, "ttnn-0.81.1.dist-info")); err != nil {
		t.Fatal(err)
	}
	young := s.start(metal.Options{Layout: 3}, "lib "+lib, "open 1", "alloc 1 dram 10")
	s.read()
	if v := s.process(young).Release; v.V != "0.81.1" {
		t.Errorf("release %+v", v)
	}
}

// Bug 3: from 0.72.0 on, layout 3 sees one thread only. What it says is shown,
// with the note that it is not all.
func TestOtherThreads(t *testing.T) {
	for _, tt := range []struct {
		release string
		layout  int
		one     bool
	}{
		{"0.81.1", 3, true},
		{"0.72.0", 3, true},
		{"0.71.2", 3, false},
		{"0.99.0", 4, false},
		{"", 3, true},
	} {
		t.Run(tt.release, func(t *testing.T) {
			s := newScene(t)
			p := s.start(metal.Options{Layout: tt.layout}, "open 1", "alloc 1 dram 10")
			if tt.release != "" {
				s.do(p, "lib "+install(t, tt.release))
			}
			s.read()
			s.holds(1, p)
			u := s.use(s.region(1), p)
			one := slices.ContainsFunc(u.Doubts, model.Doubt{Kind: model.OtherThreads, Release: tt.release}.Equal)
			if _, bound, _ := u.Bytes[model.DRAM].Best(); one != tt.one || bound != model.Unsure {
				t.Errorf("doubts %+v, bound %v", u.Doubts, bound)
			}
			if v := s.process(p).Release; v.V != tt.release {
				t.Errorf("release %+v", v)
			}
			s.do(p, "alloc 1 dram 32 elsewhere")
			s.read()
			want := map[bool]string{true: "42", false: "10"}[tt.layout == 4]
			if got := show(s.use(s.region(1), p).Bytes[model.DRAM]); got != want {
				t.Errorf("DRAM %s, want the recorded %s", got, want)
			}
			// Freed where it is seen: the region says less than is held, never less than 0.
			s.do(p, "free 1 dram 32")
			s.read()
			want = map[bool]string{true: "10", false: "0"}[tt.layout == 4]
			if got := show(s.use(s.region(1), p).Bytes[model.DRAM]); got != want {
				t.Errorf("DRAM %s, want the recorded %s", got, want)
			}
		})
	}
}
