package uprobe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// watch starts a source for a test.
func watch(t testing.TB, o Options) *Source {
	t.Helper()
	s := opened(t, o)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	<-s.Ready()
	return s
}

// opened is a source that does not run yet.
func opened(t testing.TB, o Options) *Source {
	t.Helper()
	o.fresh, o.libraryTimeout = time.Minute, time.Minute // the machine may be busy
	s, err := Open(o)
	if o, ok := errors.AsType[*ObstacleError](err); ok && o.Obstacle != OtherObstacle {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a program and waits until it is watched: it has loaded its
// library then, and opened nothing. On a busy machine it would be faster.
func start(t testing.TB, s *Source, o ttnn.Options) *ttnn.Job {
	t.Helper()
	o.Dir = t.TempDir()
	ttnn.NeedRelease(t, o.Release)
	j, err := ttnn.Start(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := j.End(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the program is watched", func() bool { _, ok := s.Find(j.PID); return ok })
	for _, silent := range s.Claims().Silent {
		if silent.Process.PID == j.PID {
			t.Fatalf("the program is not watched: %+v", silent.Why)
		}
	}
	return j
}

// learns reports whether the probes that tell on which chips a buffer is are set
// for a process.
func (s *Source) learns(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range s.known[pid] {
		if l := s.libraries[of]; l != nil && !l.learned {
			return true
		}
	}
	return false
}

func do(t testing.TB, j *ttnn.Job, s ttnn.Step) ttnn.Reply {
	t.Helper()
	r, err := j.Do(s)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestEqualsTheAllocator is the oracle: whatever a program does, the blocks
// seen from outside are those of tt-metal's own table.
func TestEqualsTheAllocator(t *testing.T) {
	hermetic.Long(t)
	s := watch(t, Options{})
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		for _, on := range []struct {
			name, descriptor string
			open             ttnn.Step
			chips            int
		}{
			{"p150", "blackhole_P150", ttnn.Step{"device": 0}, 1},
			{"n300", "wormhole_N300_pci_bdf", ttnn.Step{"mesh": []int{1, 2}}, 2},
			{"galaxy", "6u_cluster_desc", ttnn.Step{"mesh": []int{8, 4}}, 32},
		} {
			t.Run(release+"/"+on.name, func(t *testing.T) {
				path, err := ttnn.Descriptor(on.descriptor)
				if err != nil {
					t.Fatal(err)
				}
				j := start(t, s, ttnn.Options{Release: release, Descriptor: path})
				on.open["do"], on.open["l1_small"], on.open["trace"] = "open", 32768, 1<<22
				do(t, j, on.open)
				if on.chips > 1 {
					eventually(t, "its chips are learned", func() bool { return s.learns(j.PID) })
				}
				for seed := range 4 {
					do(t, j, ttnn.Step{"do": "churn", "seed": seed, "steps": 400, "threads": 1 + seed%3})
					compare(t, s, j, on.chips)
				}
				edge(t, s, j)
				do(t, j, ttnn.Step{"do": "drop"})
				compare(t, s, j, on.chips)
			})
		}
	}
}

// compare compares the accounts with the allocator's own table.
func compare(t *testing.T, s *Source, j *ttnn.Job, chips int) {
	t.Helper()
	want := do(t, j, ttnn.Step{"do": "table"}).Table
	p, ok := s.Find(j.PID)
	if !ok {
		t.Fatal("the process was not seen")
	}
	if !p.Exact() {
		t.Errorf("not exact: late %v, lost %d", p.Late, p.Lost)
	}
	a := ttnn.InUse(p)
	for _, l := range a.Lists {
		if n := l.Usage().AskedUnknown; n > 0 {
			t.Errorf("%s: of %d blocks it is not known how much was asked for", l.Pool, n)
		}
	}
	t.Logf("%d blocks, %d lists", p.Blocks(), len(a.Lists))
	ttnn.Compare(t, want, a, chips)
	if t.Failed() {
		t.FailNow()
	}
}

// edge asks for the largest buffer that fits and for one of a page more, and
// lets tt-metal try both.
func edge(t *testing.T, s *Source, j *ttnn.Job) {
	t.Helper()
	p := find(t, s, j.PID)
	for _, l := range ttnn.InUse(p).Lists {
		if l.Pool != model.DRAM && l.Pool != model.L1 {
			continue
		}
		const page = 2048
		space, _ := l.Space()
		most := space.Largest / page * l.Banks
		for pages, want := range map[uint64]bool{most: true, most + 1: false} {
			tensor := blocks.Tensor{Shape: []uint64{1, 1, pages, page / 4}, Type: "uint32", Layout: "row_major"}
			r, err := tensor.Request()
			if err != nil {
				t.Fatal(err)
			}
			fit, known := l.Fits(r)
			if !known || fit.Fits != want {
				t.Errorf("%s: %d pages: %+v, known %v", l.Pool, pages, fit, known)
			}
			if really := do(t, j, ttnn.Step{"do": "try", "pool": l.Pool.String(), "pages": pages, "page": page}).Fits; really != want {
				t.Errorf("%s: %d pages: fits %v says tt-metal, %v say the accounts", l.Pool, pages, really, want)
			}
		}
	}
}
