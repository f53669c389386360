package prom

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Compatibility sets repeat what is known under the names and labels of
// another exporter, for dashboards that exist. They are frozen: nothing is
// added to them, and they go to the page only, not to the history.
const (
	CompatTTMgmt      = "tt-mgmt"
	CompatTTTelemetry = "tt-telemetry"
	CompatAllSMI      = "all-smi"
)

// CheckCompat says what is wrong with a choice of sets.
func CheckCompat(sets []string) error {
	for _, s := range sets {
		switch s {
		case CompatTTMgmt, CompatTTTelemetry, CompatAllSMI:
		default:
			return fmt.Errorf("unknown compatibility set %q: one of tt-mgmt, tt-telemetry, all-smi", s)
		}
	}
	if slices.Contains(sets, CompatTTMgmt) && slices.Contains(sets, CompatTTTelemetry) {
		return fmt.Errorf("tt-mgmt and tt-telemetry both have a tt_fan_speed_rpm, with different labels: choose one")
	}
	return nil
}

// foreign is one family of a compatibility set.
type foreign struct {
	name, help string
	unit       string // tt-telemetry's label
	get        func(*model.Device) (float64, bool)
}

func reading[T ~int | ~uint32 | ~uint64 | ~float64](get func(*model.Device) model.Reading[T], factor float64) func(*model.Device) (float64, bool) {
	return func(d *model.Device) (float64, bool) {
		v, ok := get(d).Get()
		return float64(v) * factor, ok
	}
}

func used(p model.Pool, factor float64) func(*model.Device) (float64, bool) {
	return func(d *model.Device) (float64, bool) {
		n, _, ok := d.Memory.Pools[p].Used.Best()
		return float64(n) * factor, ok
	}
}

func size(p model.Pool, factor float64) func(*model.Device) (float64, bool) {
	return reading(func(d *model.Device) model.Reading[uint64] { return d.Memory.Pools[p].Total }, factor)
}

// What the sets ask for most.
func temperature(d *model.Device) model.Reading[float64] { return d.Temperature }
func power(d *model.Device) model.Reading[float64]       { return d.Power }
func voltage(d *model.Device) model.Reading[float64]     { return d.Voltage }
func current(d *model.Device) model.Reading[float64]     { return d.Current }
func aiclk(d *model.Device) model.Reading[float64]       { return d.AICLK }
func fan(d *model.Device) model.Reading[float64]         { return d.Fan }

var ttMgmt = []foreign{
	{name: "tt_temperature_celsius", help: "temperature of the chip", get: reading(temperature, 1)},
	{name: "tt_power_watts", help: "power of the core rail", get: reading(power, 1)},
	{name: "tt_voltage_millivolts", help: "core voltage", get: reading(voltage, 1000)},
	{name: "tt_current_milliamps", help: "core current", get: reading(current, 1000)},
	{name: "tt_aiclk_mhz", help: "clock of the Tensix cores", get: reading(aiclk, 1)},
	{name: "tt_fan_speed_rpm", help: "fan speed", get: reading(fan, 1)},
	{name: "tt_dram_total_bytes", help: "DRAM of the device's chips", get: size(model.DRAM, 1)},
	{name: "tt_dram_used_bytes", help: "allocated in DRAM", get: used(model.DRAM, 1)},
	{name: "tt_l1_total_bytes", help: "L1 of the device's chips", get: size(model.L1, 1)},
	{name: "tt_l1_used_bytes", help: "allocated in L1", get: used(model.L1, 1)},
	{name: "tt_l1_small_used_bytes", help: "allocated in small L1", get: used(model.L1Small, 1)},
	{name: "tt_trace_used_bytes", help: "allocated for traces", get: used(model.Trace, 1)},
	{name: "tt_cb_used_bytes", help: "allocated for circular buffers", get: used(model.CB, 1)},
}

var ttTelemetry = []foreign{
	{name: "tt_asic_temperature_celsius", unit: "Celsius", help: "temperature of the chip", get: reading(temperature, 1)},
	{name: "tt_tdp_w", unit: "W", help: "power of the core rail", get: reading(power, 1)},
	{name: "tt_tdc_a", unit: "A", help: "core current", get: reading(current, 1)},
	{name: "tt_vcore_v", unit: "V", help: "core voltage", get: reading(voltage, 1)},
	{name: "tt_ai_clock_mhz", unit: "MHz", help: "clock of the Tensix cores", get: reading(aiclk, 1)},
	{name: "tt_fan_speed_rpm", unit: "RPM", help: "fan speed", get: reading(fan, 1)},
	{name: "tt_arc_heartbeat", help: "count of the firmware's heartbeat", get: reading(func(d *model.Device) model.Reading[uint32] { return d.Heartbeat }, 1)},
	{name: "tt_device_dram_used_megabytes", unit: "MiB", help: "allocated in DRAM", get: used(model.DRAM, 1.0/(1<<20))},
}

var allSMI = []foreign{
	{name: "all_smi_gpu_temperature_celsius", help: "temperature of the chip", get: reading(temperature, 1)},
	{name: "all_smi_gpu_power_consumption_watts", help: "power of the core rail", get: reading(power, 1)},
	{name: "all_smi_gpu_frequency_mhz", help: "clock of the Tensix cores", get: reading(aiclk, 1)},
	{name: "all_smi_gpu_memory_used_bytes", help: "allocated in DRAM", get: used(model.DRAM, 1)},
	{name: "all_smi_gpu_memory_total_bytes", help: "DRAM of the device's chips", get: size(model.DRAM, 1)},
	{name: "all_smi_tenstorrent_asic_temperature_celsius", help: "temperature of the chip", get: reading(temperature, 1)},
	{name: "all_smi_tenstorrent_aiclk_mhz", help: "clock of the Tensix cores", get: reading(aiclk, 1)},
	{name: "all_smi_tenstorrent_voltage_volts", help: "core voltage", get: reading(voltage, 1)},
	{name: "all_smi_tenstorrent_current_amperes", help: "core current", get: reading(current, 1)},
}

// WalkCompat emits the sets.
func WalkCompat(s *model.Snapshot, sets []string, emit Emit) {
	for _, set := range sets {
		table, labels := ttMgmt, mgmtLabels
		switch set {
		case CompatTTTelemetry:
			table, labels = ttTelemetry, telemetryLabels
		case CompatAllSMI:
			table, labels = allSMI, allSMILabels
		}
		for i := range table {
			x := &table[i]
			f := &Family{Name: x.name, Type: "gauge", Help: x.help}
			for j := range s.Devices {
				d := &s.Devices[j]
				if v, ok := x.get(d); ok {
					emit(f, labels(s, d, x.unit), v)
				}
			}
		}
	}
}

func mgmtLabels(_ *model.Snapshot, d *model.Device, _ string) Labels {
	b := label(nil, "device", strconv.Itoa(d.Index))
	b = label(b, "pci_bdf", d.BusID)
	return label(b, "arch", string(d.Arch))
}

func telemetryLabels(s *model.Snapshot, d *model.Device, unit string) Labels {
	b := label(nil, "hostname", s.Host.Name)
	tray, chip := d.Tray, d.Index
	if d.Slot > 0 {
		chip = d.Slot
	}
	b = label(b, "tray", strconv.Itoa(tray))
	b = label(b, "chip", strconv.Itoa(chip))
	return label(b, "unit", unit)
}

func allSMILabels(s *model.Snapshot, d *model.Device, _ string) Labels {
	b := label(nil, "gpu", strings.TrimSpace("Tenstorrent "+d.Board.V))
	b = label(b, "instance", s.Host.Name)
	b = label(b, "gpu_uuid", d.ASICID.V)
	return label(b, "gpu_index", strconv.Itoa(d.Index))
}
