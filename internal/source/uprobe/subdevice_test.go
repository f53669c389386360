package uprobe

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

const subDeviceL1 = 256 << 10 // of each core

// TestSubDeviceFailuresAreTrue: a request that fails in the allocator of a
// sub-device is kept with that sub-device's number and its own state, as tt-metal
// says it, and one that fails for what is set aside for sub-devices is said to.
func TestSubDeviceFailuresAreTrue(t *testing.T) {
	hermetic.Long(t)
	for _, release := range []string{middle, ttnn.Newest} {
		for _, on := range []struct {
			descriptor string
			open       ttnn.Step
		}{
			{"blackhole_P150", ttnn.Step{"do": "open", "l1_small": 32768}},
			{"wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}}},
		} {
			t.Run(release+" "+on.descriptor, func(t *testing.T) {
				preload, err := ttnn.SubDevices(t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				x := newStage(t, release, on.descriptor, on.open, preload)
				// The number of a sub-device is that in its manager.
				do(t, x.job, ttnn.Step{"do": "divide", "parts": 2, "l1": 4096})
				do(t, x.job, ttnn.Step{"do": "unite"})
				do(t, x.job, ttnn.Step{"do": "divide", "parts": 3, "l1": subDeviceL1})
				x.source.Sync() // from now on first buffers tell the chips of an allocator
				for round := range 9 {
					x.subDeviceRound(round % 3)
				}
				x.setAside()
				t.Logf("%v", x.tried)
			})
		}
	}
}

// subDeviceRound fills the allocator of a sub-device, makes holes in it and asks
// for more until it fails.
func (x *stage) subDeviceRound(part int) {
	x.Helper()
	request := func(tiles int) ttnn.Step {
		cores := 1 + x.random.IntN(4)
		return ttnn.Step{"pool": "l1", "rows": 32 * cores * tiles, "columns": 32, "cores": cores, "sub_device": part}
	}
	for range 3 + x.random.IntN(8) {
		name := fmt.Sprintf("t%d", x.made)
		x.made++
		if step := with(request(1+x.random.IntN(24)), ttnn.Step{"do": "ask", "name": name}); do(x.T, x.job, step).Fits {
			x.held[name] = step
		}
	}
	for _, name := range slices.Sorted(maps.Keys(x.held)) {
		if x.held[name]["sub_device"] == part && x.random.IntN(2) == 0 {
			do(x.T, x.job, ttnn.Step{"do": "free", "name": name})
			delete(x.held, name)
		}
	}
	x.source.Sync()
	x.source.Failures() // of the filling
	for tiles := 20 + x.random.IntN(30); ; tiles += 9 {
		ask := request(tiles)
		if reply := do(x.T, x.job, with(ask, ttnn.Step{"do": "ask"})); !reply.Fits {
			x.checkSubDevice(part, ask, reply.Message)
			return
		}
	}
}

// checkSubDevice holds what both sources kept against tt-metal's message, and does
// what would have made it fit.
func (x *stage) checkSubDevice(part int, ask ttnn.Step, said string) {
	x.Helper()
	m, n := x.parse(said)
	var want uint64 // blocks
	for _, step := range x.held {
		if step["sub_device"] == part {
			want++
		}
	}
	for source, r := range map[string]*failure.Record{"uprobe": x.outside(), "libttmon": x.inside()} {
		if r == nil {
			x.Errorf("%s kept nothing of %.200s", source, m[0])
			continue
		}
		x.equals(source, r, ask, m[0], n)
		if r.SubDevice == nil || *r.SubDevice != part || !r.OfSubDevice() {
			x.Errorf("%s: sub-device %v, want %d", source, r.SubDevice, part)
		}
		if got := r.State.Usage().Blocks; got != want || r.State.Capacity != subDeviceL1 {
			x.Errorf("%s has %d blocks in %d bytes a core, want %d in %d", source, got, r.State.Capacity, want, subDeviceL1)
		}
		r.Judge()
		x.tried[string(r.Verdict.Cause)]++
		if c := r.Verdict.Cause; c == failure.Unknown || c == failure.Reserved {
			x.Errorf("%s says %s of %s", source, c, m[0])
		}
		x.fix("sub-device", source, r, ask)
	}
}

// setAside asks the device's own allocator for what would fit, were it not for the
// part that the sub-devices have: that is the verdict, and without them it fits.
func (x *stage) setAside() {
	x.Helper()
	for name := range x.held {
		do(x.T, x.job, ttnn.Step{"do": "free", "name": name})
	}
	const cores = 4
	list := x.deviceL1()
	// Before its first buffer nothing says which chips the device's allocator is of.
	do(x.T, x.job, ttnn.Step{"do": "ask", "pool": "l1", "rows": 32 * cores, "columns": 32, "cores": cores})
	x.source.Sync()
	x.source.Failures()
	ask := ttnn.Step{"pool": "l1", "rows": 32 * cores * int((list-subDeviceL1/2)/2048), "columns": 32, "cores": cores}
	reply := do(x.T, x.job, with(ask, ttnn.Step{"do": "ask"}))
	if reply.Fits {
		x.Fatal("it fits beside what is set aside")
	}
	m, n := x.parse(reply.Message)
	for source, r := range map[string]*failure.Record{"uprobe": x.outside(), "libttmon": x.inside()} {
		if r == nil {
			x.Errorf("%s kept nothing of %.200s", source, m[0])
			continue
		}
		x.equals(source, r, ask, m[0], n)
		r.Judge()
		if v := r.Verdict; r.OfSubDevice() || r.State.Cut != subDeviceL1 || v.Cause != failure.Reserved || v.By != failure.ByCut {
			x.Errorf("%s: sub-device %v, %d set aside: %s by %s", source, r.SubDevice, r.State.Cut, v.Cause, v.By)
		}
		x.tried["reserved"]++
		x.fix("set aside", source, r, ask)
	}
	do(x.T, x.job, ttnn.Step{"do": "unite"})
	if !do(x.T, x.job, with(ask, ttnn.Step{"do": "ask"})).Fits {
		x.Error("it does not fit without sub-devices, either")
	}
}

// deviceL1 is how much L1 of a core the allocator of the device has.
func (x *stage) deviceL1() (capacity uint64) {
	x.Helper()
	for _, a := range find(x.T, x.source, x.job.PID).Allocators {
		for _, l := range a.Lists {
			if l.Pool.String() == "l1" {
				capacity = max(capacity, l.Capacity)
			}
		}
	}
	return capacity
}

// TestSlowDispatchHasNoSubDevices: 0.71.2 runs without hardware with slow dispatch
// only, and refuses to divide a device then. Should that change, the test above is
// to run on it, too.
func TestSlowDispatchHasNoSubDevices(t *testing.T) {
	path, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	j := ttnn.Play(t, ttnn.Options{Release: ttnn.AllThreads, Descriptor: path, Dir: t.TempDir()})
	do(t, j, ttnn.Step{"do": "open"})
	if _, err := j.Do(ttnn.Step{"do": "divide", "parts": 2, "l1": subDeviceL1}); err == nil || !strings.Contains(err.Error(), "unsupported with slow dispatch") {
		t.Errorf("divided: %v", err)
	}
}

// TestTracesAreTrue: a trace that was captured and that the allocator of its region
// refuses is kept as tt-metal says it. One that exceeds trace_region_size itself is
// refused before an allocator is asked: TestTraceRegionsAreTrue.
func TestTracesAreTrue(t *testing.T) {
	hermetic.Long(t)
	for _, release := range []string{middle, ttnn.Newest} {
		t.Run(release, func(t *testing.T) {
			preload, err := ttnn.SubDevices(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			x := newStage(t, release, "blackhole_P150", ttnn.Step{"do": "open", "trace": 65536}, preload)
			for traces := 0; ; traces++ {
				reply := do(t, x.job, ttnn.Step{"do": "trace"})
				if reply.Fits && traces < 100 {
					continue
				}
				m, n := x.parse(reply.Message)
				for source, r := range map[string]*failure.Record{"uprobe": x.outside(), "libttmon": x.inside()} {
					if r == nil {
						t.Errorf("%s kept nothing of %.200s", source, m[0])
						continue
					}
					x.equals(source, r, ttnn.Step{}, m[0], n)
					if r.Judge(); r.Pool != "trace" || r.Verdict.Cause != failure.Full || r.State.Usage().Blocks != uint64(traces) {
						t.Errorf("%s: %s of %s with %d blocks after %d traces", source, r.Verdict.Cause, r.Pool, r.State.Usage().Blocks, traces)
					}
				}
				break
			}
		})
	}
}
