package uprobe

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

var regionMessage = regexp.MustCompile(`Creating trace buffers of size (\d+)B on MeshDevice (\d+), but only (\d+)B is allocated for trace region`)

// TestTraceRegionsAreTrue: a trace that does not fit trace_region_size is kept as
// tt-metal says it, with the line that captured it; with the trace_region_size that
// is said to do all of them fit.
func TestTraceRegionsAreTrue(t *testing.T) {
	hermetic.Long(t)
	for _, release := range []string{ttnn.AllThreads, middle, ttnn.Newest} {
		for _, on := range []struct {
			descriptor string
			open       ttnn.Step
			regions    []int
		}{
			{"blackhole_P150", ttnn.Step{"do": "open"}, []int{1, 1024, 5000, 8192, 8200, 65536, 100_000, 1 << 20, 1_234_567, 10 << 20, 64 << 20}},
			{"wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}}, []int{1000, 8192, 8200, 300_000, 20 << 20}},
		} {
			t.Run(release+" "+on.descriptor, func(t *testing.T) {
				preload, err := ttnn.SubDevices(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				x := newStage(t, release, on.descriptor, with(on.open, ttnn.Step{"trace": on.regions[0]}), preload)
				for i, region := range on.regions {
					if i > 0 {
						x.reopen(region)
					}
					x.traceRound(region)
				}
				t.Logf("%v", x.tried)
			})
		}
	}
}

// reopen opens the device with another trace region.
func (x *stage) reopen(region int) {
	do(x.T, x.job, ttnn.Step{"do": "close"})
	do(x.T, x.job, with(x.open, ttnn.Step{"trace": region}))
}

// traceRound captures traces until tt-metal refuses one, and does the same with the
// region that would have done.
func (x *stage) traceRound(region int) {
	x.Helper()
	x.source.Sync()
	x.source.Failures()
	steps, held, said := x.trace(region)
	m := regionMessage.FindStringSubmatch(said)
	if m == nil {
		x.Fatalf("tt-metal says something else: %.300s", said)
	}
	needed, _ := strconv.ParseUint(m[1], 10, 64)
	size, _ := strconv.ParseUint(m[3], 10, 64)
	outside, inside := x.outside(), x.inside()
	if outside == nil || inside == nil {
		x.Fatalf("seen by probes: %v, by libttmon: %v: %s", outside != nil, inside != nil, m[0])
	}
	if !slices.Equal(outside.Stack, inside.Stack) {
		x.Errorf("lines from outside %v, from inside %v", outside.Stack, inside.Stack)
	}
	for source, r := range map[string]*failure.Record{"uprobe": outside, "libttmon": inside} {
		r.Process.Release = "ttnn " + x.release
		r.Judge()
		if r.Kind != failure.Trace || r.Pool != "trace" || r.Region.Size != size || r.Region.Needed != needed || r.Verdict.Missing != needed-size || len(r.Stack) == 0 {
			x.Errorf("%s has %s of %s, %+v, %+v and %d lines; tt-metal said %s", source, r.Kind, r.Pool, r.Region, r.Verdict, len(r.Stack), m[0])
		}
		if got := r.State.Usage().Blocks; got != uint64(held) || len(r.Chips) == 0 && len(steps) > 1 {
			x.Errorf("%s has %d blocks on %d chips, %d traces are held", source, got, len(r.Chips), held)
		}
		for _, d := range r.Doubts {
			x.tried[fmt.Sprint(source, " ", d)]++
		}
		x.withRegion(source, r, steps)
	}
}

// trace captures traces of random sizes, and releases some, until one does not fit
// the region. Where its allocator refuses one before (TestTracesAreTrue), it is
// left out.
func (x *stage) trace(region int) (steps []ttnn.Step, held int, said string) {
	x.Helper()
	for range 200 {
		if held > 2 && x.random.IntN(4) == 0 {
			release := ttnn.Step{"do": "untrace", "nth": x.random.IntN(held)}
			do(x.T, x.job, release)
			steps = append(steps, release)
			held--
		}
		capture := ttnn.Step{"do": "trace", "bytes": 1 + x.random.IntN(max(region/3, 3000))}
		reply := do(x.T, x.job, capture)
		switch {
		case reply.Fits:
			held++
		case !message.MatchString(reply.Message):
			return append(steps, capture), held, reply.Message
		default:
			x.tried["refused by the allocator"]++
			x.source.Sync()
			x.source.Failures()
			continue // tt-metal counts it for all that: the region is exceeded at last
		}
		steps = append(steps, capture)
	}
	x.Fatalf("200 traces fit %d bytes", region)
	return nil, 0, ""
}

// withRegion does the same with the region that would have done.
func (x *stage) withRegion(source string, r *failure.Record, steps []ttnn.Step) {
	x.Helper()
	if f := r.Verdict.Fixes; len(f) != 1 || f[0].Kind != failure.TraceRegion {
		x.Fatalf("%s: fixes %+v of %+v", source, f, r.State.Geometry)
	}
	x.reopen(int(r.Verdict.Fixes[0].Bytes))
	for n, step := range steps {
		if reply := do(x.T, x.job, step); step["do"] == "trace" && !reply.Fits {
			x.Errorf("%s: trace %d of %d does not fit with %+v: %.300s", source, n+1, len(steps), r.Verdict.Fixes[0], reply.Message)
			return
		}
	}
	x.tried["with trace_region_size"]++
}

// TestTraceOfUnmodifiedProgram: a trace that does not fit is seen without libttmon,
// too, which calls tt-metal's copy of the function that throws. A program of itself
// calls the one of another library.
func TestTraceOfUnmodifiedProgram(t *testing.T) {
	path, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	preload, err := ttnn.SubDevices(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	x := &stage{T: t, source: watch(t, Options{})}
	x.job = start(t, x.source, ttnn.Options{Release: ttnn.Newest, Descriptor: path, Env: []string{"LD_PRELOAD=" + preload}})
	do(t, x.job, ttnn.Step{"do": "open", "trace": 1024})
	reply := do(t, x.job, ttnn.Step{"do": "trace", "bytes": 100_000})
	m := regionMessage.FindStringSubmatch(reply.Message)
	if m == nil {
		t.Fatalf("tt-metal says something else: %.300s", reply.Message)
	}
	r := x.outside()
	if r == nil || r.Kind != failure.Trace || fmt.Sprint(r.Region.Needed) != m[1] || fmt.Sprint(r.Region.Size) != m[3] {
		t.Fatalf("kept of %s: %+v", m[0], r)
	}
	r.Process.Release = "ttnn " + ttnn.Newest
	r.Judge()
	if r.Verdict.Cause != failure.RegionTooSmall {
		t.Errorf("the cause is %s", r.Verdict.Cause)
	}
	x.tried, x.open = map[string]int{}, ttnn.Step{"do": "open"}
	x.withRegion("uprobe", r, []ttnn.Step{{"do": "trace", "bytes": 100_000}})
}
