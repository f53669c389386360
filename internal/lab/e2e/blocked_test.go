package e2e

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// TestBlockedMany: any number of chips hold their readers up, and the shell
// that waits for the output continues while they still do. How long it took is
// not asked: it is over while the reads are not, and that is the point.
func TestBlockedMany(t *testing.T) {
	t.Parallel()
	impatient(t)
	for _, blocked := range []int{1, 5, 32} {
		t.Run(strconv.Itoa(blocked), func(t *testing.T) {
			t.Parallel()
			h := start(t, sim.Options{Boards: "galaxy-blackhole"})
			for i := range blocked {
				ctl(t, h, "block", strconv.Itoa(i), "telemetry")
			}
			// As scripts do: a substitution ends with the last holder of the pipe.
			r := runProgram(t, h, "sh", "-c", `out=$("$1" smi --json); code=$?; printf '%s\n' "$out"; exit $code`,
				"sh", filepath.Join(bin, "ttmon"))
			if waiting := stillWaiting(t, h); waiting == 0 {
				t.Error("no read is blocked any more: this test shows nothing")
			}
			if r.code != exitTrouble {
				t.Errorf("exit code %d, want %d: %s", r.code, exitTrouble, r.err)
			}
			s, err := wire.Decode([]byte(r.out))
			if err != nil {
				t.Fatal(err)
			}
			if len(s.Devices) != 32 {
				t.Fatalf("%d devices", len(s.Devices))
			}
			for i := range s.Devices {
				want := model.StateOK
				if i < blocked {
					want = model.StateHung
				}
				wantState(t, &s.Devices[i], want)
				if known := s.Devices[i].Temperature.Known(); known != (i >= blocked) {
					t.Errorf("device %d: temperature %v %s", i, s.Devices[i].Temperature.V, s.Devices[i].Temperature.Reason())
				}
			}
			// The table says it in words, once for all of them.
			table := runIn(t, h, "smi")
			if n := strings.Count(table.out, "has not returned"); n != 1 {
				t.Errorf("the blocked reads are mentioned %d times:\n%s", n, table.out)
			}
		})
	}
}

// stillWaiting counts reads that the simulated driver holds up.
func stillWaiting(t *testing.T, h *sim.Host) int {
	t.Helper()
	var state struct {
		Devices []struct{ Waiting int }
	}
	if err := json.Unmarshal([]byte(ctl(t, h, "state")), &state); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, d := range state.Devices {
		n += d.Waiting
	}
	return n
}

// TestBlockedFor: in the watching process a chip that comes back is well
// again, without a restart, and the others are read all the time.
func TestBlockedFor(t *testing.T) {
	t.Parallel()
	impatient(t)
	h := start(t, sim.Options{Boards: "p150a,n150"})
	w := watch(t, h)
	w.until("both are well", func(s *model.Snapshot) bool { return state(0, model.StateOK)(s) && state(1, model.StateOK)(s) })
	ctl(t, h, "block", "0", "telemetry")
	first := w.until("the block is noticed", state(0, model.StateHung))
	later := w.until("the other is read meanwhile", func(s *model.Snapshot) bool {
		return s.Device(1).ReadAt.After(first.Device(1).ReadAt) && state(0, model.StateHung)(s)
	})
	wantState(t, later.Device(1), model.StateOK)
	ctl(t, h, "release", "0")
	s := w.until("it is back", state(0, model.StateOK))
	if d := s.Device(0); !d.Temperature.Known() || !d.AICLK.Known() {
		t.Errorf("values stuck after the block: %s, %s", d.Temperature.Reason(), d.AICLK.Reason())
	}
}

// TestBlockedFromTheStart: what could not be read at first is read later, and
// meanwhile the reason is that of the moment.
func TestBlockedFromTheStart(t *testing.T) {
	t.Parallel()
	impatient(t)
	h := start(t, sim.Options{Boards: "p150a"})
	ctl(t, h, "block", "0", "telemetry")
	w := watch(t, h)
	s := w.until("the block is noticed", state(0, model.StateHung))
	wantMissing(t, "serial number", s.Device(0).Serial, model.Hung)
	ctl(t, h, "reset", "0", "block=1ms", "window=forever")
	ctl(t, h, "release", "0")
	w.until("the reset window", state(0, model.StateResetting))
	w.until("its reason for the serial number", func(s *model.Snapshot) bool { return s.Device(0).Serial.Status == model.Resetting })
	ctl(t, h, "post-reset", "0")
	w.until("the serial number", func(s *model.Snapshot) bool { return s.Device(0).Serial.Known() && s.Device(0).Firmware.Bundle.Known() })
}
