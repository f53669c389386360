package main

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// simulate makes a host with boards below h.root.
func (h *host) simulate(boards string) {
	h.t.Helper()
	if out, err := exec.Command(released(h.t, "ttmon-sim"), "--root", h.root, "--boards", boards).CombinedOutput(); err != nil {
		h.t.Fatalf("making a host of %s: %v\n%s", boards, err, out)
	}
}

// DEVICE_INFO comes from the driver's files and the board catalogue, for any
// number of devices, and no chip is opened for it.
func TestDeviceInfo(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("2xn300,n150")
	h.start()
	c, py := h.cpp(144), h.python("client112")
	h.await("the devices", func() bool {
		// … available, num_devices: three on PCIe and two behind them.
		return strings.HasSuffix(c.do("info -1"), " | 0 0 0 0 0 0 1 5")
	})
	// total_dram total_l1 arch channels per_channel l1_per_core available devices
	for dev, want := range []string{
		"12884901888 95944704 2 12 1073741824 1499136 1 0", // n300, local chip
		"12884901888 95944704 2 12 1073741824 1499136 1 0",
		"12884901888 107937792 2 12 1073741824 1499136 1 0", // n150
		"12884901888 95944704 2 12 1073741824 1499136 1 0",  // n300, remote chip
		"12884901888 95944704 2 12 1073741824 1499136 1 0",
		"0 0 0 0 0 0 0 0",
	} {
		if got := c.do("info %d", dev); !strings.HasSuffix(got, " | "+want) {
			t.Errorf("device %d: %q, want %q", dev, got, want)
		}
		if got := py.do("info %d", dev); got != want {
			t.Errorf("device %d for Python: %q, want %q", dev, got, want)
		}
	}
}

// Figures of reporters stand on the boards that they are about.
func TestReportsOnBoards(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("n300,n150")
	h.start()
	c := h.cpp(144)
	c.do("alloc 9 4194304 4 0")    // no such chip
	c.do("alloc 1 4194304 200 0")  // n150
	c.do("alloc 2 4194304 30 0")   // n300, the remote chip
	c.do("alloc 0 4194304 1000 0") // n300, its own chip; what is awaited comes last
	// In this tree of files there are no processes: who has a device open cannot be read.
	is := func(b model.Bytes, want uint64) bool { return b == model.BoundBytes(want, model.Unsure) }
	var s *model.Snapshot
	h.await("the figures", func() bool {
		s = h.snapshot()
		d := s.Device(0)
		return d != nil && is(d.Memory.Pools[model.DRAM].Used, 1030)
	})
	n300, n150 := s.Device(0), s.Device(1)
	if !is(n300.Chips[0].Memory.Pools[model.DRAM].Used, 1000) || !is(n300.Chips[1].Memory.Pools[model.DRAM].Used, 30) {
		t.Errorf("n300: %+v", n300.Chips)
	}
	if !is(n150.Memory.Pools[model.DRAM].Used, 200) || n150.Memory.Tracking != model.TrackOK {
		t.Errorf("n150: %+v", n150.Memory)
	}
	for _, p := range s.Processes {
		if p.PID != c.pid() {
			continue
		}
		for _, u := range p.Devices {
			if u.Device == model.NoDevice && (!u.Memory[model.DRAM].Exactly(4) || u.Doubts[0].Kind != model.NumberUnknown || u.Doubts[0].Count != 9) {
				t.Errorf("the chip that is not there: %+v", u)
			}
		}
		if len(p.Devices) != 3 {
			t.Errorf("its devices: %+v", p.Devices)
		}
		return
	}
	t.Error("the process is not in the snapshot")
}
