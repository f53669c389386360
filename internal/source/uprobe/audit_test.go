package uprobe

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
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
// its chips are unknown, with the reason.
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

// TestCircularBuffers: how far up the circular buffers of programs reach is what
// tt-metal itself says when they clash with a buffer, whether the operation
// tells the graph tracker of them (add) or not (softmax, whose are called
// dataflow buffers since 0.78).
func TestCircularBuffers(t *testing.T) {
	s := watch(t, Options{})
	j := p150(t, s, ttnn.Newest)
	do(t, j, ttnn.Step{"do": "open"})
	do(t, j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 2 << 20, "columns": 1024})
	ops := []ttnn.Step{{"do": "add", "name": "sum", "of": []string{"a", "a"}}, {"do": "softmax", "name": "e", "of": []string{"a"}}}
	var ends []uint64
	for i, op := range ops {
		do(t, j, op)
		p := find(t, s, j.PID)
		if len(p.Programs) != i+1 {
			t.Fatalf("%d programs after %d operations", len(p.Programs), i+1)
		}
		ends = append(ends, p.Programs[i].End)
	}
	p := find(t, s, j.PID)
	l1 := ttnn.InUse(p).Pool(model.L1)[0]
	if reach, ok := p.Reach(); !ok || reach.End != max(ends[0], ends[1]) || reach.Base < l1.Base {
		t.Errorf("%+v, %v: programs end at %v, L1 begins at %d", reach, ok, ends, l1.Base)
	}
	do(t, j, ttnn.Step{"do": "forget"})
	if n := len(find(t, s, j.PID).Programs); n != 0 {
		t.Errorf("%d programs, and all are forgotten", n)
	}
	for i, op := range ops {
		t.Run(fmt.Sprint(op["do"]), func(t *testing.T) {
			// A buffer down to below the end of the circular buffers.
			const tile = 2048
			tiles := ((l1.Base+l1.Capacity-ends[i])/tile + 1) * l1.Banks
			do(t, j, ttnn.Step{"do": "alloc", "name": "wall", "pool": "l1", "bytes": tiles * tile})
			_, err := j.Do(op)
			said := regexp.MustCompile(`buffer region ends at (\d+)`).FindStringSubmatch(fmt.Sprint(err))
			if said == nil || said[1] != fmt.Sprint(ends[i]) {
				t.Errorf("circular buffers end at %d, tt-metal says %v: %.500v", ends[i], said, err)
			}
			do(t, j, ttnn.Step{"do": "free", "name": "wall"})
		})
	}
}
