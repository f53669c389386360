package uprobe

import (
	"testing"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
)

// What shared memory cannot tell is exact here.

func p150(t *testing.T, s *Source, release string, env ...string) *ttnn.Job {
	t.Helper()
	path, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	return start(t, s, ttnn.Options{Release: release, Descriptor: path, Env: env})
}

// TestTwoReleasesAtOnce: each library is watched for itself.
func TestTwoReleasesAtOnce(t *testing.T) {
	s := watch(t, Options{})
	var jobs []*ttnn.Job
	for _, release := range []string{ttnn.AllThreads, ttnn.Newest} {
		j := p150(t, s, release)
		do(t, j, ttnn.Step{"do": "open", "l1_small": 32768, "trace": 1 << 20})
		jobs = append(jobs, j)
	}
	for seed := range 2 {
		for _, j := range jobs {
			do(t, j, ttnn.Step{"do": "churn", "seed": seed, "steps": 100, "threads": 2})
		}
		for _, j := range jobs {
			compare(t, s, j, 1)
		}
	}
	if n := len(s.Stats().Libraries); n != 2 {
		t.Errorf("%d libraries", n)
	}
}

// TestTrackingDisabled: a program that keeps no statistics is known by block;
// on which chips nobody says, and that is said.
func TestTrackingDisabled(t *testing.T) {
	s := watch(t, Options{})
	j := p150(t, s, ttnn.Newest, "TT_METAL_SHM_TRACKING_DISABLED=1")
	do(t, j, ttnn.Step{"do": "open", "l1_small": 32768, "trace": 1 << 20})
	do(t, j, ttnn.Step{"do": "churn", "seed": 1, "steps": 200})
	compare(t, s, j, 0)
}

// TestGraphCapture: tensors that a capture only pretends to allocate are not
// there, and those after it are.
func TestGraphCapture(t *testing.T) {
	s := watch(t, Options{})
	j := p150(t, s, ttnn.Newest)
	do(t, j, ttnn.Step{"do": "open", "l1_small": 32768, "trace": 1 << 20})
	do(t, j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 1 << 20})
	do(t, j, ttnn.Step{"do": "capture", "mode": "NO_DISPATCH"})
	do(t, j, ttnn.Step{"do": "alloc", "name": "none", "pool": "dram", "bytes": 64 << 20})
	do(t, j, ttnn.Step{"do": "end_capture"})
	compare(t, s, j, 1)
	do(t, j, ttnn.Step{"do": "alloc", "name": "b", "pool": "dram", "bytes": 1 << 20})
	do(t, j, ttnn.Step{"do": "free", "name": "a"})
	compare(t, s, j, 1)
}
