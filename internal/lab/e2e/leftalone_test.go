package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// chipReads is how many reads have reached a chip: at one that has left the bus
// each of them may take the host down.
func chipReads(t *testing.T, h *sim.Host) int {
	t.Helper()
	var state struct {
		Devices []struct{ Reads int }
	}
	if err := json.Unmarshal([]byte(ctl(t, h, "state")), &state); err != nil {
		t.Fatal(err)
	}
	return state.Devices[0].Reads
}

// sweeper reads a host as ttmond does, a sweep at a time.
func sweeper(t *testing.T, h *sim.Host) func() *model.Device {
	r := kmd.New(hostfs.At(h.Root()))
	t.Cleanup(r.Close)
	return func() *model.Device { return &r.Read(time.Now().Add(time.Second)).Found[0].Device }
}

// wantUnread wants sweeps that do not reach the chip, for longer than a chip of
// all ones that is on the bus is left alone at a time.
func wantUnread(t *testing.T, h *sim.Host, sweep func() *model.Device, want model.State, when string) {
	t.Helper()
	before, sweeps := chipReads(t, h), 0
	for begun := time.Now(); time.Since(begun) < 7*time.Second; time.Sleep(100 * time.Millisecond) {
		wantState(t, sweep(), want)
		sweeps++
	}
	if n := chipReads(t, h) - before; n != 0 {
		t.Errorf("%s: %d reads of the chip in %d sweeps", when, n, sweeps)
	}
}

// TestOffTheBusIsNotRead: hosts were seen to reboot from reads at a chip that had
// left the bus. Only its configuration space is read, until that answers.
func TestOffTheBusIsNotRead(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	sweep := sweeper(t, h)
	wantState(t, sweep(), model.StateOK)
	wantState(t, sweep(), model.StateOK)
	before := chipReads(t, h)
	wantState(t, sweep(), model.StateOK)
	if chipReads(t, h) == before {
		t.Fatal("a chip that is well is not read: this test cannot fail")
	}
	ctl(t, h, "dead", "0")
	wantState(t, sweep(), model.StateHung)
	wantState(t, sweep(), model.StateHung)
	wantUnread(t, h, sweep, model.StateHung, "off the bus")
	ctl(t, h, "alive", "0")
	d := sweep()
	for end := time.Now().Add(time.Minute); d.State != model.StateOK || !d.Temperature.Known(); d = sweep() {
		if time.Now().After(end) {
			t.Fatalf("back on the bus: %s, %+v, temperature %s", d.State, d.StateReason, d.Temperature.Reason())
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// TestResetIsNotRead: while a reset runs, what the driver does not refuse by itself
// (the PCIe counters) is not read.
func TestResetIsNotRead(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	sweep := sweeper(t, h)
	wantState(t, sweep(), model.StateOK)
	ctl(t, h, "reset", "0", "block=1ms", "window=forever")
	for sweep().State != model.StateResetting {
		time.Sleep(10 * time.Millisecond)
	}
	wantUnread(t, h, sweep, model.StateResetting, "between the reset and its last step")
	ctl(t, h, "post-reset", "0")
	for d := sweep(); d.State != model.StateOK || !d.Temperature.Known(); d = sweep() {
		time.Sleep(10 * time.Millisecond)
	}
}
