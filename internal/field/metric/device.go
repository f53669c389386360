package metric

import (
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Devices is the table of what can be asked about a device, in the order of
// --help-query-device.
func Devices() []Device {
	return slices.Concat(
		in(Identity, identity()), in(Health, health()), in(Activity, work()), in(Activity, activity()), sensors(), onChip(),
		in(PCIe, pcie()), in(Memory, memory()), in(Firmware, firmware()), foreign(),
	)
}

// in puts fields that have a title into a section of reports.
func in(section Section, list []Device) []Device {
	for i := range list {
		if list[i].Title != "" {
			list[i].Section = section
		}
	}
	return list
}

func identity() []Device {
	return []Device{
		{
			Name: "timestamp", Help: "when the snapshot was taken, RFC 3339, UTC", JSON: "/time",
			Get: func(s *model.Snapshot, _ *model.Device) Value { return instant(s.Time) },
		},
		{
			Name: "index", Title: "Index", Kind: Gauge, Help: "N of /dev/tenstorrent/N; may change on hot-plug", JSON: "index",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return count(d.Index) },
		},
		{
			Name: "count", Kind: Gauge, Help: "number of devices of the host",
			Get: func(s *model.Snapshot, _ *model.Device) Value { return count(len(s.Devices) + s.Others) },
		},
		{
			Name: "name", Help: "board and architecture", Synonyms: same("gpu_name"),
			Get: func(_ *model.Snapshot, d *model.Device) Value {
				if !d.Board.Known() {
					return str(string(d.Arch))
				}
				return str(d.Board.V + " " + string(d.Arch))
			},
		},
		{
			Name: "arch", Title: "Architecture", Help: "chip generation: wormhole or blackhole", JSON: "arch",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(string(d.Arch)) },
		},
		{
			Name: "board.type", Title: "Board", Help: "card type", JSON: "board",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return text(d.Board) },
		},
		{
			Name: "board.serial", Head: "Serial", Title: "Serial Number", Help: "serial number of the board; its chips share it", JSON: "serial", Synonyms: same("serial", "gpu_serial"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return text(d.Serial) },
		},
		{
			Name: "uuid", Title: "ASIC UUID", Help: "id of the chip itself", JSON: "asic_id", Synonyms: same("gpu_uuid", "asic.id"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return text(d.ASICID) },
		},
		{
			Name: "board.chips", Title: "Chips", Kind: Gauge, Help: "chips behind this device, remote ones included",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return count(len(d.Chips)) },
		},
		{
			Name: "board.tray", Title: "Tray", Sparse: true, Kind: Gauge, Help: "tray of a Galaxy, from 1", JSON: "tray", Synonyms: same("platform.tray_index"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return position(d.Tray) },
		},
		{
			Name: "board.slot", Title: "Slot", Sparse: true, Kind: Gauge, Help: "position in the tray of a Galaxy, from 1", JSON: "slot", Synonyms: same("platform.slot_number"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return position(d.Slot) },
		},
		{
			Name: "board.cores", Title: "Tensix Cores per Chip", Kind: Gauge, Help: "Tensix cores of one chip: measured where ttmond reads the firmware, else from the board catalogue", JSON: "cores",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Cores) },
		},
		{
			Name: "device.path", Title: "Device Node", Help: "device node", JSON: "path",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(d.Path) },
		},
		{
			Name: "pci.bus_id", Title: "PCI Bus Id", Help: "PCI address, domain:bus:device.function", JSON: "bus_id", Synonyms: same("gpu_bus_id"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(d.BusID) },
		},
		{
			Name: "pci.domain", Help: "PCI domain, hexadecimal",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return busPart(d.BusID, 0) },
		},
		{
			Name: "pci.bus", Help: "PCI bus, hexadecimal",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return busPart(d.BusID, 1) },
		},
		{
			Name: "pci.device", Help: "PCI device number, hexadecimal",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return busPart(d.BusID, 2) },
		},
		{
			Name: "pci.device_id", Title: "PCI Device Id", Help: "PCI device and vendor id, hexadecimal, as nvidia-smi writes them",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return pciID(d.PCIID.Device, d.PCIID.Vendor) },
		},
		{
			Name: "pci.sub_device_id", Title: "PCI Subsystem Id", Help: "PCI subsystem device and vendor id, hexadecimal",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return pciID(d.PCIID.SubDevice, d.PCIID.SubVendor) },
		},
		{
			Name: "pci.revision", Title: "PCI Revision", Help: "PCI revision, hexadecimal",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(fmt.Sprintf("0x%02X", d.PCIID.Revision)) },
		},
		{
			Name: "numa.node", Head: "NUMA", Title: "NUMA Node", Kind: Gauge, Help: "NUMA node of the slot", JSON: "numa_node",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.NUMANode) },
		},
		{
			Name: "cpu.affinity", Title: "Local CPUs", Help: "CPUs near the slot", JSON: "cpu_affinity",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return text(d.CPUAffinity) },
		},
		{
			Name: "host.name", Help: "host name", JSON: "/host.name", Synonyms: same("hostname"),
			Get: func(s *model.Snapshot, _ *model.Device) Value { return str(s.Host.Name) },
		},
		{
			Name: "driver_version", Help: "version of the tenstorrent kernel module", JSON: "/host.driver_version",
			Get: func(s *model.Snapshot, _ *model.Device) Value { return text(s.Host.DriverVersion) },
		},
		{
			Name: "simulated", Kind: Bool, Help: "whether the host is ttmon-sim's", JSON: "/simulated",
			Get: func(s *model.Snapshot, _ *model.Device) Value { return yes(model.Value(s.Simulated)) },
		},
	}
}

func health() []Device {
	return []Device{
		{
			Name: "condition", Help: "its state: ok, telemetry_stalled, memory_errors, memory_failed, stuck, slow_link, weak_link, hot, throttled, resetting, unknown, link_down, hung or lost; docs/conditions.md", JSON: "condition",
			Get: func(s *model.Snapshot, d *model.Device) Value { return str(string(assess.Of(s).Device(d.Index).Kind)) },
		},
		{
			Name: "condition.since", Help: "when that began, RFC 3339, UTC; empty where it is not known",
			Get: func(s *model.Snapshot, d *model.Device) Value { return instant(assess.Of(s).Device(d.Index).Since) },
		},
		{
			Name: "throttle.reason", Help: "what keeps the clock below its maximum: none, heat, power, current, voltage, software or firmware; concluded from what is at its limit where the firmware is not read",
			Get: throttle,
		},
		{
			Name: "state", Help: "what the driver's files alone say: ok, resetting, unknown, hung or lost", JSON: "state",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(string(d.State)) },
		},
		{
			Name: "state.reason", Help: "why it is not ok", JSON: "state_reason",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(words.StateReason(d)) },
		},
		{
			Name: "heartbeat", Title: "Heartbeat", Kind: Counter, Help: "count of the firmware's heartbeat, 32 bits", JSON: "heartbeat", Prom: counter("heartbeat_total", ""),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Heartbeat) },
		},
		{
			Name: "heartbeat.rate", Title: "Heartbeat Rate", Kind: Gauge, Rate: true, Unit: "1/s", Decimals: 1, Help: "how fast it beats; needs a second sample", JSON: "heartbeat_hz",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.HeartbeatRate) },
		},
		{
			Name: "heartbeat.age", Title: "Heartbeat Age", Kind: Gauge, Unit: "s", Decimals: 1, Help: "time since it last moved", JSON: "heartbeat_age_s", Prom: gauge("heartbeat_age_seconds"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.HeartbeatAge) },
		},
		{
			Name: "thermal.trips", Title: "Thermal Trips", Kind: Counter, Help: "shutdowns by overheating since power-on (not throttling)", JSON: "thermal_trips", Prom: counter("thermal_trips_total", ""),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.ThermalTrips) },
		},
		{
			Name: "memory.failures", Title: "Failed Allocations", Sparse: true, Kind: Counter, Help: "requests for device memory that found no room, as far as ttmond sees allocators", JSON: "allocation_failures", Prom: counter("allocation_failures_total", ""),
			Get: func(_ *model.Snapshot, d *model.Device) Value {
				v := num(d.AllocationFailures)
				v.Bound = d.AllocationFailuresBound
				return v
			},
		},
		{
			Name: "processes.count", Title: "Processes", Kind: Gauge, Help: "processes that use the device, as far as they can be seen", Prom: gauge("device_processes"),
			Get: func(s *model.Snapshot, d *model.Device) Value { return count(users(s, d.Index)) },
		},
		{
			Name: "processes.hidden", Kind: Gauge, Help: "open descriptors of processes that cannot be seen from here", JSON: "hidden_fds", Prom: gauge("device_processes_hidden"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return count(d.HiddenFDs) },
		},
		{
			Name: "lock.held", Title: "Locked by UMD", Sparse: true, Kind: Bool, Help: "whether a program has started the chip: it holds UMD's lock", JSON: "lock.held",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return yes(d.Lock.Held) },
		},
		{
			Name: "lock.pid", Title: "Lock Holder", Sparse: true, Kind: Gauge, Help: "its holder, as that process numbers itself", JSON: "lock.pid",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Lock.PID) },
		},
	}
}

func activity() []Device {
	return []Device{
		{
			Name: "activity.estimate", Title: "Activity, Estimated", Head: "Act.", As: Estimate, Kind: Gauge, Unit: "%", Per: 0.01, Help: "estimate of how busy the chip is, from its power; not a measurement", JSON: "activity.ratio", Prom: gauge("activity_estimate_ratio"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Activity.Ratio) },
		},
		{
			Name: "activity.basis", Title: "Activity Basis", Help: "how activity.estimate was estimated", JSON: "activity.basis",
			Get: func(_ *model.Snapshot, d *model.Device) Value { return str(d.Activity.Basis) },
		},
	}
}

// throttle is by what a device is throttled. Without a clock nothing is known
// about it.
func throttle(s *model.Snapshot, d *model.Device) Value {
	if !d.AICLK.Known() || !d.AICLKMax.Known() {
		return text(model.As[string](firstMissing(d.AICLK, d.AICLKMax)))
	}
	if c, ok := assess.Of(s).Find(d.Index, model.ConditionThrottled); ok {
		return str(string(c.Cause))
	}
	return str("none")
}

// sensors has what the driver reads from the chip.
func sensors() []Device {
	return slices.Concat(in(Thermal, temperatures()), in(Power, electrical()), in(Clocks, clocks()))
}

func temperatures() []Device {
	celsius := func(name, title, help, json string, prom Prom, get getDevice) Device {
		return Device{Name: name, Title: title, Kind: Gauge, Unit: "C", Help: help, JSON: json, Prom: prom, Get: get}
	}
	asic := celsius("temperature.asic", "ASIC Temperature", "temperature of the chip", "temperature_c", gauge("asic_temperature_celsius"),
		func(_ *model.Snapshot, d *model.Device) Value { return num(d.Temperature) })
	asic.Head, asic.Limit, asic.Fact = "Temp", "temperature.asic.limit.throttle", model.FactTemperature
	asic.Synonyms = []Synonym{{"temperature.gpu", true}}
	return []Device{
		asic,
		celsius("temperature.asic.limit.throttle", "Throttle Limit", "where throttling begins", "temperature_limit_c", gauge("temperature_limit_celsius").with(`limit="throttle"`, 0),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.TemperatureLimit) }),
		celsius("temperature.asic.limit.shutdown", "Shutdown Limit", "where the chip shuts down", "temperature_shutdown_c", gauge("temperature_limit_celsius").with(`limit="shutdown"`, 0),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.ShutdownTemperature) }),
		celsius("temperature.gpu.tlimit", "", "degrees left until throttling begins", "", Prom{},
			func(_ *model.Snapshot, d *model.Device) Value {
				if !d.Temperature.Known() || !d.TemperatureLimit.Known() {
					return num(firstMissing(d.Temperature, d.TemperatureLimit))
				}
				return num(model.Value(d.TemperatureLimit.V - d.Temperature.V))
			}),
	}
}

func electrical() []Device {
	watts := func(name, title, help, json string, prom Prom, get getDevice, synonyms ...Synonym) Device {
		return Device{Name: name, Title: title, Kind: Gauge, Unit: "W", Decimals: 2, Help: help, JSON: json, Prom: prom, Synonyms: synonyms, Get: get}
	}
	draw := watts("power.draw", "Core Power", "power of the core rail (not of the whole board)", "power_w", gauge("core_power_watts"),
		func(_ *model.Snapshot, d *model.Device) Value { return num(d.Power) }, same("power.draw.instant")...)
	draw.Head, draw.Limit, draw.Fact = "Power", "power.limit", model.FactPower
	return []Device{
		draw,
		watts("power.limit", "Core Power Limit", "limit of the core rail", "power_limit_w", gauge("core_power_limit_watts"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.PowerLimit) }, same("enforced.power.limit", "power.max_limit", "power.default_limit")...),
		watts("power.limit.board", "Board Power Limit", "limit of the whole board: measured where ttmond reads the firmware, else from the board catalogue", "board_power_limit_w", gauge("board_power_limit_watts"),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.BoardPowerLimit) }),
		{
			Name: "voltage.core", Title: "Core Voltage", Head: "Volt", Limit: "voltage.core.max", Kind: Gauge, Unit: "V", Decimals: 3, Help: "core voltage", JSON: "voltage_v", Prom: gauge("core_voltage_volts"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Voltage) },
		},
		{
			Name: "voltage.core.max", Title: "Core Voltage Limit", Kind: Gauge, Unit: "V", Decimals: 3, Help: "limit of the core voltage", JSON: "voltage_limit_v", Prom: gauge("core_voltage_limit_volts"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.VoltageLimit) },
		},
		{
			Name: "current.core", Title: "Core Current", Head: "Amps", Limit: "current.core.max", Fact: model.FactCurrent, Kind: Gauge, Unit: "A", Help: "core current", JSON: "current_a", Prom: gauge("core_current_amperes"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Current) },
		},
		{
			Name: "current.core.max", Title: "Core Current Limit", Kind: Gauge, Unit: "A", Help: "limit of the core current", JSON: "current_limit_a", Prom: gauge("core_current_limit_amperes"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.CurrentLimit) },
		},
		{
			Name: "fan.speed", Title: "Fan", Head: "Fan", Kind: Gauge, Unit: "rpm", Help: "fan speed in revolutions per minute (nvidia-smi: percent)", JSON: "fan_rpm", Prom: gauge("fan_speed_rpm"),
			Get: func(_ *model.Snapshot, d *model.Device) Value { return num(d.Fan) },
		},
	}
}

func clocks() []Device {
	clock := func(name, title, help, json string, prom Prom, get getDevice, synonyms ...Synonym) Device {
		return Device{Name: name, Title: title, Kind: Gauge, Unit: "MHz", Help: help, JSON: json, Prom: prom, Synonyms: synonyms, Get: get}
	}
	ai := clock("clocks.ai", "AI Clock", "clock of the Tensix cores", "aiclk_mhz", gauge("clock_hertz").with(`clock="ai"`, 1e6),
		func(_ *model.Snapshot, d *model.Device) Value { return num(d.AICLK) },
		same("clocks.sm", "clocks.current.sm", "clocks.gr", "clocks.current.graphics")...)
	ai.Head, ai.Limit, ai.Fact = "AICLK", "clocks.max.ai", model.FactClock
	return []Device{
		ai,
		clock("clocks.max.ai", "AI Clock Max", "the fastest it can be", "aiclk_max_mhz", gauge("clock_limit_hertz").with(`clock="ai"`, 1e6),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.AICLKMax) },
			same("clocks.max.sm", "clocks.max.gr", "clocks.max.graphics")...),
		clock("clocks.axi", "AXI Clock", "clock of the AXI bus", "axiclk_mhz", gauge("clock_hertz").with(`clock="axi"`, 1e6),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.AXICLK) }),
		clock("clocks.arc", "ARC Clock", "clock of the management core", "arcclk_mhz", gauge("clock_hertz").with(`clock="arc"`, 1e6),
			func(_ *model.Snapshot, d *model.Device) Value { return num(d.ARCCLK) }),
	}
}

func firstMissing(list ...model.Reading[float64]) model.Reading[float64] {
	for _, r := range list {
		if !r.Known() {
			return r
		}
	}
	return model.Reading[float64]{}
}

// users counts the processes that hold a device.
func users(s *model.Snapshot, device int) (n int) {
	for i := range s.Processes {
		p := &s.Processes[i]
		holds := func(u model.DeviceUse) bool { return u.Device == device }
		if p.State == model.Running && slices.ContainsFunc(p.Devices, holds) {
			n++
		}
	}
	return n
}
