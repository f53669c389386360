package e2e

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// exitTrouble is the exit code when a device is hung or lost.
const exitTrouble = 15

// TestBlockedRead: one chip blocks its reader, for good. The command comes
// back, the other boards are shown, and that one is marked.
func TestBlockedRead(t *testing.T) {
	t.Parallel()
	impatient(t)
	h := start(t, sim.Options{Boards: "n150,p150a,n300"})
	ctl(t, h, "block", "1", "telemetry")
	s := smi(t, h, exitTrouble)
	wantState(t, device(t, s, 0), model.StateOK)
	wantState(t, device(t, s, 2), model.StateOK)
	d := device(t, s, 1)
	wantState(t, d, model.StateHung)
	wantMissing(t, "temperature of the blocked chip", d.Temperature, model.Hung)
	// What it is can be told without asking the chip.
	wantValue(t, "board of the blocked chip", d.Board, "p150a")
	wantValue(t, "link of the blocked chip", d.PCIe.Width, 16)
	if r := d.StateReason; r.Cause != model.ReadBlocked || r.File == "" {
		t.Errorf("the reason does not say what happened: %+v", r)
	}
	ctl(t, h, "release", "1")
	wantState(t, device(t, smi(t, h, 0), 1), model.StateOK)
}

// TestBlockedOpeners: the list of openers can stall behind a power message.
// That costs neither the telemetry nor, since /proc has all processes of this
// host, the users.
func TestBlockedOpeners(t *testing.T) {
	t.Parallel()
	impatient(t)
	h := start(t, sim.Options{Boards: "n150", Procs: []string{"name=user,devices=0"}})
	ctl(t, h, "block", "0", "pids")
	s := smi(t, h, 0)
	d := device(t, s, 0)
	wantState(t, d, model.StateOK)
	if !d.Temperature.Known() {
		t.Errorf("temperature: %s", d.Temperature.Reason())
	}
	if p := only(t, s, "user"); len(p.Devices) != 1 || p.Devices[0].Device != 0 {
		t.Errorf("the user of device 0: %+v", p.Devices)
	}
	for _, doubt := range d.Doubts {
		if os.Geteuid() == 0 || doubt.Kind != model.ProcessesGuarded { // an ordinary user's host cannot look out of it
			t.Errorf("all users are known, and yet: %+v", doubt)
		}
	}
	ctl(t, h, "release", "0", "pids")
}

// TestReset goes through a whole reset with one process watching: blocked,
// then without data, then back with counters and heartbeat restarted.
func TestReset(t *testing.T) {
	t.Parallel()
	impatient(t)
	h := start(t, sim.Options{Boards: "p150a,n150"})
	w := watch(t, h)
	before := w.until("rates", func(s *model.Snapshot) bool { return s.Device(0).PCIe.ToDeviceRate.Known() })
	ctl(t, h, "block", "0", "telemetry") // as a reset does at first, for as long as the test likes
	w.until("the blocked read is noticed", state(0, model.StateHung))
	ctl(t, h, "reset", "0", "block=1ms", "window=forever")
	ctl(t, h, "release", "0")
	s := w.until("the reset window", state(0, model.StateResetting))
	d := device(t, s, 0)
	wantMissing(t, "temperature in the reset window", d.Temperature, model.Resetting)
	wantMissing(t, "clock in the reset window", d.AICLK, model.Resetting)
	wantState(t, device(t, s, 1), model.StateOK)
	if r := runIn(t, h, "smi"); r.code != 0 {
		t.Errorf("a device in reset is no error: exit code %d", r.code)
	}
	ctl(t, h, "post-reset", "0")
	s = w.until("the device is back, with rates", func(s *model.Snapshot) bool {
		return s.Device(0).State == model.StateOK && s.Device(0).PCIe.ToDeviceRate.Known() && s.Device(0).HeartbeatAge.Known()
	})
	d = device(t, s, 0)
	// A restarted counter treated as a wrap shows as terabytes (nvtop: 1.2 TiB/s).
	if v := d.PCIe.ToDeviceRate.V; v > 1e11 {
		t.Errorf("rate after the reset: %g B/s", v)
	}
	if d.PCIe.ToDeviceTotal.V < before.Device(0).PCIe.ToDeviceTotal.V {
		t.Errorf("the total went back from %d to %d", before.Device(0).PCIe.ToDeviceTotal.V, d.PCIe.ToDeviceTotal.V)
	}
	if !d.Temperature.Known() || !d.Fan.Known() || !d.Power.Known() {
		t.Error("values are stuck after the reset")
	}
}

// TestDeadChip: no error comes from a chip off the bus, only ones.
func TestDeadChip(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a,n300"})
	ctl(t, h, "dead", "0")
	s := smi(t, h, exitTrouble)
	d := device(t, s, 0)
	wantState(t, d, model.StateHung)
	for what, r := range map[string]model.Reading[float64]{
		"temperature": d.Temperature, "power": d.Power, "voltage": d.Voltage, "current": d.Current,
		"clock": d.AICLK, "fan": d.Fan, "rate": d.PCIe.ToDeviceRate,
	} {
		t.Run(what, func(t *testing.T) {
			wantMissing(t, what+" of a dead chip", r, model.Hung)
		})
	}
	wantState(t, device(t, s, 1), model.StateOK)
	r := runIn(t, h, "smi")
	for _, number := range []string{"65535", "4294", "255.255"} {
		if strings.Contains(r.out, number) {
			t.Errorf("the table shows a dead chip's %s:\n%s", number, r.out)
		}
	}
	ctl(t, h, "alive", "0")
	wantState(t, device(t, smi(t, h, 0), 0), model.StateOK)
}

// TestDeadWhenBound: of a chip that was off the bus when the driver bound it
// there is no telemetry at all, and of one whose firmware never came up.
func TestDeadWhenBound(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a,n300", Dead: "0"})
	s := smi(t, h, exitTrouble)
	d := device(t, s, 0)
	wantState(t, d, model.StateHung)
	if d.StateReason.Cause != model.AllOnes {
		t.Errorf("reason %+v", d.StateReason)
	}
	for what, r := range map[string]model.Reading[int]{"generation": d.PCIe.Gen, "highest generation": d.PCIe.GenMax, "width": d.PCIe.Width} {
		t.Run(what, func(t *testing.T) {
			if r.Known() {
				t.Errorf("%s of a dead chip: %d", what, r.V)
			}
		})
	}
	wantState(t, device(t, s, 1), model.StateOK)

	h = start(t, sim.Options{Boards: "n150", Firmware: "no-telemetry"})
	d = device(t, smi(t, h, 0), 0)
	wantState(t, d, model.StateUnknown)
	if d.StateReason.Cause != model.NoTelemetry {
		t.Errorf("reason %+v", d.StateReason)
	}
}

// TestUnbound: a board without its driver is named as soon as that is so.
func TestUnbound(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,n300"})
	w := watch(t, h)
	if s := w.next(); len(s.Host.Unbound) != 0 {
		t.Errorf("unbound: %v", s.Host.Unbound)
	}
	bus := w.next().Device(0).BusID
	ctl(t, h, "unbind", "0")
	s := w.until("it is unbound", state(0, model.StateLost))
	if d := s.Device(0); d.StateReason.Cause != model.Unbound || !slices.Equal(s.Host.Unbound, []string{bus}) {
		t.Errorf("reason %+v, unbound %v", d.StateReason, s.Host.Unbound)
	}
	ctl(t, h, "bind", bus)
	s = w.until("it is back", state(0, model.StateOK))
	if len(s.Host.Unbound) != 0 {
		t.Errorf("unbound: %v", s.Host.Unbound)
	}
	ctl(t, h, "driver", "none")
	s = w.until("the driver is gone", func(s *model.Snapshot) bool { return !s.Host.DriverLoaded })
	if want := []string{s.Device(0).BusID, s.Device(1).BusID}; !slices.Equal(s.Host.Unbound, want) {
		t.Errorf("unbound: %v, want %v", s.Host.Unbound, want)
	}
}

// TestHungFirmware: everything reads well, but the heart has stopped.
func TestHungFirmware(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150,p150a"})
	w := watch(t, h)
	w.until("a beating heart", func(s *model.Snapshot) bool { return s.Device(1).HeartbeatAge.Known() })
	ctl(t, h, "hang", "1")
	s := w.until("the stopped heart is noticed", state(1, model.StateHung))
	d := device(t, s, 1)
	if d.StateReason.Cause != model.HeartbeatStopped || d.HeartbeatAge.V < 3 {
		t.Errorf("reason %+v, age %v", d.StateReason, d.HeartbeatAge.V)
	}
	for what, r := range map[string]model.Reading[float64]{"temperature": d.Temperature, "power": d.Power, "clock": d.AICLK} {
		t.Run(what, func(t *testing.T) {
			wantMissing(t, what+" of firmware that stopped", r, model.Stale)
		})
	}
	wantState(t, device(t, s, 0), model.StateOK)
	// One sample cannot see it, and says so.
	if d := device(t, smi(t, h, 0), 1); d.StateReason.Cause != model.HeartbeatUnseen {
		t.Errorf("a single sample: %s, %+v", d.State, d.StateReason)
	}
	ctl(t, h, "unhang", "1")
	w.until("the heart beats again", state(1, model.StateOK))
}

// TestHotPlug: a board is pulled and comes back with another index and hwmon
// number. The watching process follows without a restart.
func TestHotPlug(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,n150"})
	w := watch(t, h)
	bus := w.next().Device(0).BusID
	ctl(t, h, "unplug", "0")
	s := w.until("the loss is noticed", state(0, model.StateLost))
	wantMissing(t, "temperature of a lost device", s.Device(0).Temperature, model.Lost)
	if !s.Device(0).Serial.Known() {
		t.Error("it is not said which board was lost")
	}
	ctl(t, h, "plug", bus, "index=7", "hwmon=42")
	s = w.until("it is back as number 7", state(7, model.StateOK))
	d := device(t, s, 7)
	if d.BusID != bus || !d.Temperature.Known() || !d.Fan.Known() {
		t.Errorf("bus id %s, temperature %q, fan %q", d.BusID, d.Temperature.Reason(), d.Fan.Reason())
	}
	if s.Device(0) != nil {
		t.Error("the old number is still listed")
	}
	if s := smi(t, h, 0, "-i", bus); len(s.Devices) != 1 || s.Devices[0].Index != 7 {
		t.Errorf("-i %s: %d devices", bus, len(s.Devices))
	}
}

// TestPCIeCounters: twelve counters, six each way, of 32-byte words, modulo
// 2^32. The simulated traffic stands still and the counters are put forward by
// hand, so that the total is known to the byte. (nvtop glues two of them
// together as halves of one, takes a word for 4 bytes, leaves posted writes
// out, and shows a wrap as 1.2 TiB/s.)
func TestPCIeCounters(t *testing.T) {
	t.Parallel()
	for name, from := range map[string]uint32{"plain": 1000, "across the wrap": math.MaxUint32 - 300} {
		t.Run(name, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150"})
			ctl(t, h, "traffic", "0", "to=0", "from=0")
			ctl(t, h, "counters", "0", fmt.Sprint(from))
			w := watch(t, h)
			before := w.until("a rate", func(s *model.Snapshot) bool { return s.Device(0).PCIe.ToDeviceRate.Known() }).Device(0).PCIe
			const words = 700
			ctl(t, h, "counters", "0", fmt.Sprint(from+words))
			const each = 6 * words * 32 // bytes: three kinds of traffic on two networks
			w.until("a total that has grown by what passed", func(s *model.Snapshot) bool {
				p := &s.Device(0).PCIe
				to, from := p.ToDeviceTotal.V-before.ToDeviceTotal.V, p.FromDeviceTotal.V-before.FromDeviceTotal.V
				if to > each || from > each {
					t.Fatalf("%d and %d bytes passed, want %d each", to, from, each)
				}
				return to == each && from == each
			})
		})
	}
}

// TestCounterRestart: a cleared counter is no wrap.
func TestCounterRestart(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "traffic", "0", "to=0", "from=0")
	ctl(t, h, "counters", "0", "1000000")
	w := watch(t, h)
	before := w.until("a rate", func(s *model.Snapshot) bool { return s.Device(0).PCIe.ToDeviceRate.Known() })
	ctl(t, h, "counters", "0", "0")
	for range 6 {
		d := w.next().Device(0)
		if r := d.PCIe.ToDeviceRate; r.Known() && r.V > 0 {
			t.Errorf("rate %g B/s out of nothing", r.V)
		}
		if d.PCIe.ToDeviceTotal != before.Device(0).PCIe.ToDeviceTotal {
			t.Errorf("the total went from %d to %d", before.Device(0).PCIe.ToDeviceTotal.V, d.PCIe.ToDeviceTotal.V)
		}
	}
}

func TestNegativeTemperature(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150"})
	ctl(t, h, "set", "0", "temp1_input", "65531500")
	wantValue(t, "temperature", device(t, smi(t, h, 0), 0).Temperature, -4.5)
	r := runIn(t, h, "smi", "--query-device=temperature.asic", "--format=csv,noheader,nounits")
	if got := strings.TrimSpace(r.out); got != "-4.5" && got != "-4" && got != "-5" {
		t.Errorf("the query shows %q", got)
	}
}

// TestMissingTags: what the firmware does not publish is missing with the
// reason, whether the file is not there or answers ENODATA.
func TestMissingTags(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a"})
	ctl(t, h, "drop", "0", "fan1_input", "tt_asic_id")
	ctl(t, h, "fail", "0", "tt_therm_trip_count", "ENODATA")
	d := device(t, smi(t, h, 0), 0)
	wantState(t, d, model.StateOK)
	wantMissing(t, "fan", d.Fan, model.Absent)
	wantMissing(t, "ASIC id", d.ASICID, model.Absent)
	wantMissing(t, "thermal trips", d.ThermalTrips, model.Absent)
	if d.Fan.Why == "" || d.ThermalTrips.Why == "" {
		t.Error("a missing value has no reason")
	}
}

// TestFirmwareWithoutTelemetry: a bound chip with nothing to say is no error,
// and not ok either.
func TestFirmwareWithoutTelemetry(t *testing.T) {
	h := start(t, sim.Options{Boards: "n150,p150a", Firmware: "no-telemetry"})
	s := smi(t, h, 0)
	for i := range s.Devices {
		d := &s.Devices[i]
		wantState(t, d, model.StateUnknown)
		wantMissing(t, "temperature", d.Temperature, model.Absent)
		// The PCI subsystem id still tells the board.
		if d.Board.V != []string{"n150", "p150a"}[i] {
			t.Errorf("board %d: %q", i, d.Board.V)
		}
	}
}

func TestDegradedLink(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a,p150a"})
	ctl(t, h, "link", "1", "gen=5", "width=8")
	s := smi(t, h, 0)
	wantValue(t, "full link degraded", device(t, s, 0).PCIe.Degraded, false)
	wantValue(t, "narrow link degraded", device(t, s, 1).PCIe.Degraded, true)
	if r := runIn(t, h, "smi"); !strings.Contains(r.out, "x8") {
		t.Errorf("no sentence about the narrow link:\n%s", r.out)
	}
}

// TestSlowLoop: the counters of a fast link wrap between two snapshots that
// are far apart. The rate is right all the same.
func TestSlowLoop(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	ctl(t, h, "traffic", "0", "to=40000000000", "from=0") // 40 GB/s: a wrap every 3.4 s
	w := watchEvery(t, h, "6000")
	w.next()
	to := w.next().Device(0).PCIe.ToDeviceRate
	if math.Abs(to.V-4e10) > 1e10 {
		t.Errorf("rate %g B/s (%s), want 4e10", to.V, to.Reason())
	}
}

// TestDriverReload: the module goes while a client watches, and comes back in
// another version.
func TestDriverReload(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,n150"})
	w := watch(t, h)
	w.until("both are well", func(s *model.Snapshot) bool { return state(0, model.StateOK)(s) && state(1, model.StateOK)(s) })
	ctl(t, h, "driver", "none")
	// A sample in between sees the device gone and the module still there.
	s := w.until("the loss and its reason", func(s *model.Snapshot) bool {
		return state(0, model.StateLost)(s) && s.Device(0).StateReason.Cause == model.DriverUnloaded
	})
	// A user who comes now learns which boards wait for it.
	if r := runIn(t, h, "smi"); r.code != 9 || !strings.Contains(r.err, s.Device(0).BusID) || !strings.Contains(r.err, "modprobe") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
	ctl(t, h, "driver", "2.8.0")
	w.until("it is back", func(s *model.Snapshot) bool { return state(0, model.StateOK)(s) && s.Host.DriverVersion.V == "2.8.0" })
	w.until("with its values", func(s *model.Snapshot) bool {
		return s.Device(0).Temperature.Known() && s.Device(1).Temperature.Known()
	})
}

// TestHwmonMoves: the driver binds again and gets another hwmon number, under
// the same index. (nvtop shows no temperature any more until it is restarted.)
func TestHwmonMoves(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a"})
	w := watch(t, h)
	bus := w.until("a temperature", func(s *model.Snapshot) bool { return s.Device(0).Temperature.Known() }).Device(0).BusID
	ctl(t, h, "unplug", "0")
	ctl(t, h, "plug", bus, "index=0", "hwmon=42")
	ctl(t, h, "set", "0", "temp1_input", "77000")
	w.until("the temperature from its new place", func(s *model.Snapshot) bool {
		d := s.Device(0)
		return d.State == model.StateOK && d.Temperature.V == 77 && d.Fan.Known() && d.Power.Known()
	})
}
