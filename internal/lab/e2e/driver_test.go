package e2e

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// releases are drivers that users have, in order: all that added or moved
// something that is read.
var releases = []string{
	"1.34", "2.0.0", "2.1.0", "2.2.0", "2.3.0", "2.4.0", "2.5.0", "2.6.0", "2.7.0", "2.8.0", "2.9.0", "2.10.0", "2.10.1-pre",
}

// offer is a value and the releases that first offer it on each chip.
type offer struct {
	wh, bh string // "" is never
	get    func(*model.Device) (known bool, reason string)
}

func reading[T any](f func(*model.Device) model.Reading[T]) func(*model.Device) (bool, string) {
	return func(d *model.Device) (bool, string) {
		r := f(d)
		return r.Known(), r.Reason()
	}
}

// offers is the driver's own history, value by value.
var offers = map[string]offer{
	"temperature":    {"1.27", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.Temperature })},
	"power":          {"1.27", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.Power })},
	"voltage":        {"1.27", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.Voltage })},
	"current":        {"1.27", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.Current })},
	"fan":            {"", "2.0.0", reading(func(d *model.Device) model.Reading[float64] { return d.Fan })},
	"AI clock":       {"1.28", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.AICLK })},
	"AXI clock":      {"1.28", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.AXICLK })},
	"ARC clock":      {"1.28", "1.32", reading(func(d *model.Device) model.Reading[float64] { return d.ARCCLK })},
	"serial":         {"1.28", "1.32", reading(func(d *model.Device) model.Reading[string] { return d.Serial })},
	"ASIC id":        {"2.3.0", "2.1.0", reading(func(d *model.Device) model.Reading[string] { return d.ASICID })},
	"bundle":         {"1.29", "1.32", reading(func(d *model.Device) model.Reading[string] { return d.Firmware.Bundle })},
	"M3 application": {"1.28", "1.32", reading(func(d *model.Device) model.Reading[string] { return d.Firmware.M3App })},
	"M3 bootloader":  {"1.28", "", reading(func(d *model.Device) model.Reading[string] { return d.Firmware.M3Bootloader })},
	"ARC firmware":   {"1.28", "", reading(func(d *model.Device) model.Reading[string] { return d.Firmware.ARC })},
	"ETH firmware":   {"1.28", "", reading(func(d *model.Device) model.Reading[string] { return d.Firmware.ETH })},
	"tt-flash":       {"1.28", "", reading(func(d *model.Device) model.Reading[string] { return d.Firmware.TTFlash })},
	"heartbeat":      {"2.7.0", "2.7.0", reading(func(d *model.Device) model.Reading[uint32] { return d.Heartbeat })},
	"heartbeat age":  {"2.7.0", "2.7.0", reading(func(d *model.Device) model.Reading[float64] { return d.HeartbeatAge })},
	"thermal trips":  {"", "2.7.0", reading(func(d *model.Device) model.Reading[uint32] { return d.ThermalTrips })},
	"PCIe rate":      {"2.0.0", "2.0.0", reading(func(d *model.Device) model.Reading[float64] { return d.PCIe.ToDeviceRate })},
	"PCIe total":     {"2.0.0", "2.0.0", reading(func(d *model.Device) model.Reading[uint64] { return d.PCIe.FromDeviceTotal })},
}

// TestDriverReleases: with every release, what it offers is shown, and what
// it does not is missing and says which release has it, if any.
func TestDriverReleases(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150,p150a", Driver: release})
			s := smi(t, h, 0, "--sample", "20")
			wantValue(t, "driver", s.Host.DriverVersion, release)
			for i, since := range []func(offer) string{
				func(o offer) string { return o.wh }, func(o offer) string { return o.bh },
			} {
				d := device(t, s, i)
				wantState(t, d, model.StateOK)
				wantValue(t, "board", d.Board, []string{"n150", "p150a"}[i])
				for _, name := range slices.Sorted(maps.Keys(offers)) {
					known, reason := offers[name].get(d)
					checkOffer(t, d, name, release, since(offers[name]), known, reason)
				}
				checkLimits(t, d, i == 0 || !less(t, release, "2.9.0"))
			}
		})
	}
}

func checkOffer(t *testing.T, d *model.Device, name, release, since string, known bool, reason string) {
	t.Helper()
	offered := since != "" && !less(t, release, since)
	switch {
	case offered && !known:
		t.Errorf("%s on %s is missing: %s", name, d.Arch, reason)
	case !offered && known:
		t.Errorf("%s on %s is shown, but driver %s has none", name, d.Arch, release)
	case !offered && (!strings.HasPrefix(reason, "absent: ") || !strings.Contains(reason, since)):
		t.Errorf("%s on %s: the reason %q does not say that it takes driver %q", name, d.Arch, reason, since)
	}
}

// checkLimits: where the driver gives no limits the catalogue's are shown,
// and called nominal.
func checkLimits(t *testing.T, d *model.Device, fromDriver bool) {
	t.Helper()
	for name, r := range map[string]model.Reading[float64]{
		"temperature": d.TemperatureLimit, "power": d.PowerLimit, "voltage": d.VoltageLimit, "current": d.CurrentLimit,
	} {
		if !r.Known() || r.Nominal == fromDriver {
			t.Errorf("%s limit on %s: %v, nominal %v, %q", name, d.Arch, r.V, r.Nominal, r.Reason())
		}
	}
}

func less(t *testing.T, a, b string) bool {
	t.Helper()
	va, okA := kmd.ParseVersion(a)
	vb, okB := kmd.ParseVersion(b)
	if !okA || !okB {
		t.Fatalf("no release: %q or %q", a, b)
	}
	return va.Less(vb)
}

// TestDeadChipOfAnyRelease: older drivers compute with fewer bits, and a dead
// chip's ones come out as other numbers. None of them is shown.
func TestDeadChipOfAnyRelease(t *testing.T) {
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150,p150a", Driver: release})
			ctl(t, h, "dead", "all")
			s := smi(t, h, exitTrouble)
			for i := range s.Devices {
				d := &s.Devices[i]
				wantState(t, d, model.StateHung)
				for what, r := range map[string]model.Reading[float64]{
					"temperature": d.Temperature, "power": d.Power, "voltage": d.Voltage, "current": d.Current, "clock": d.AICLK,
				} {
					wantMissing(t, what+" of a dead "+string(d.Arch), r, model.Hung)
				}
			}
		})
	}
}

// TestOldFirmware: Wormhole's firmware before 18.4 has no table of tags, and
// from release to release the driver shows less of it.
func TestOldFirmware(t *testing.T) {
	for release, want := range map[string]struct {
		clock, temperature bool
		state              model.State
	}{
		"2.1.0": {true, true, model.StateOK}, "2.2.0": {false, true, model.StateOK}, "2.8.0": {false, true, model.StateOK},
		"2.10.0": {false, false, model.StateUnknown}, // no vital sign is left
	} {
		t.Run(release, func(t *testing.T) {
			h := start(t, sim.Options{Boards: "n150", Driver: release, Firmware: "18.3"})
			d := device(t, smi(t, h, 0), 0)
			wantState(t, d, want.state)
			if d.AICLK.Known() != want.clock || d.Temperature.Known() != want.temperature {
				t.Errorf("clock %v %q, temperature %v %q", d.AICLK.V, d.AICLK.Reason(), d.Temperature.V, d.Temperature.Reason())
			}
			wantValue(t, "board", d.Board, "n150") // its PCI ids tell, if nothing else does
			for name, reason := range map[string]string{"clock": d.AICLK.Reason(), "temperature": d.Temperature.Reason()} {
				if strings.HasSuffix(reason, ":") || reason == "absent" {
					t.Errorf("no reason for the missing %s: %q", name, reason)
				}
			}
		})
	}
}

// TestNoFan: firmware that manages no fan prints ones for its speed.
func TestNoFan(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a"})
	ctl(t, h, "set", "0", "fan1_input", "4294967295")
	d := device(t, smi(t, h, 0), 0)
	wantState(t, d, model.StateOK)
	wantMissing(t, "fan", d.Fan, model.Absent)
}
