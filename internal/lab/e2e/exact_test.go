package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/source/uprobe"
)

// preloadedEnv is what `ttmon run` sets for a program.
func preloadedEnv(t *testing.T) []string {
	t.Helper()
	got := ttmonRun(t, t.TempDir(), nil, "--library")
	if got.code != 0 {
		t.Fatal(got.errors)
	}
	return []string{"LD_PRELOAD=" + strings.TrimSpace(got.out)}
}

// TestInsideAndOutsideAgree: the library in a process and the kernel's probes
// outside, on one process at once, have the same blocks.
func TestInsideAndOutsideAgree(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	var libraries []string // known before they run, however busy the machine is
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		libraries = append(libraries, filepath.Join(filepath.Dir(filepath.Dir(ttnn.Interpreter(t, release))), "lib/python*/site-packages/ttnn/build/lib/libtt_metal.so"))
	}
	s, err := uprobe.Open(uprobe.Options{Libraries: libraries})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	<-s.Ready()
	env := preloadedEnv(t)
	descriptor, err := ttnn.Descriptor("wormhole_N300_pci_bdf")
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		t.Run(release, func(t *testing.T) {
			ttnn.NeedRelease(t, release)
			j, err := ttnn.Start(ttnn.Options{Release: release, Descriptor: descriptor, Dir: t.TempDir(), Env: env})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = j.Kill() }()
			r := track.NewReader(track.Options{})
			defer r.Close()
			for _, step := range []ttnn.Step{
				{"do": "open", "mesh": []int{1, 2}, "l1_small": 32768, "trace": 1 << 20},
				{"do": "churn", "seed": 5, "steps": 300, "threads": 3},
			} {
				if _, err := j.Do(step); err != nil {
					t.Fatal(err)
				}
			}
			outside, ok := s.Find(j.PID)
			if !ok {
				t.Fatal("not seen from outside")
			}
			var inside *blocks.Process
			for _, p := range r.Read(nil).Processes {
				if p.PID == j.PID {
					inside = p.State
				}
			}
			if inside == nil {
				t.Fatal("no ledger")
			}
			a, b := heldBlocks(inside), heldBlocks(outside)
			if diff := cmp.Diff(a, b); diff != "" || len(a) < 4 {
				t.Errorf("inside (-) and outside (+):\n%s", diff)
			}
		})
	}
}

type block struct{ Addr, Size uint64 }

// heldBlocks are the blocks by pool, of all allocators that hold some.
func heldBlocks(p *blocks.Process) map[model.Pool][]block {
	out := map[model.Pool][]block{}
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			for b := range l.All() {
				out[l.Pool] = append(out[l.Pool], block{b.Addr, b.Size})
			}
		}
	}
	return out
}

// TestPythonPackage runs the package's own tests, on every Python there is.
func TestPythonPackage(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	library := strings.TrimPrefix(preloadedEnv(t)[0], "LD_PRELOAD=")
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	pythons := pythonsHere(t)
	for _, python := range pythons {
		t.Run(filepath.Base(filepath.Dir(filepath.Dir(python))), func(t *testing.T) {
			out, err := pythonCommand(python, filepath.Join(root, "lib/python/tests/lines.py"), "TTMON_LIBRARY="+library).CombinedOutput()
			if err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}

// TestPythonPackageOnTTNN: attached before ttnn and after it, tags, sums and
// snapshots are those of the allocator.
func TestPythonPackageOnTTNN(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	library := strings.TrimPrefix(preloadedEnv(t)[0], "LD_PRELOAD=")
	root, err := ttnn.Repository()
	if err != nil {
		t.Fatal(err)
	}
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		for _, when := range []string{"before", "after", "late"} {
			t.Run(release+"/"+when, func(t *testing.T) {
				python := ttnn.Interpreter(t, release)
				dir := t.TempDir()
				env := append(mock(t, "blackhole_P150", dir), "TTMON_LIBRARY="+library)
				if release == ttnn.AllThreads {
					env = append(env, "TT_METAL_SLOW_DISPATCH_MODE=1")
				}
				cmd := pythonCommand(python, filepath.Join(root, "lib/python/tests/on_ttnn.py"), env...)
				cmd.Args = append(cmd.Args, when)
				out, err := cmd.CombinedOutput()
				if err != nil {
					t.Errorf("%v\n%s", err, out[max(0, len(out)-3000):])
				}
			})
		}
	}
}
