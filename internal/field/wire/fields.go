package wire

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// This file is the contract. Fields are only added.

func snapshot(a archive, s *model.Snapshot) {
	a.begin()
	schema := Schema
	field(a, "schema", &schema)
	if d, ok := a.(*decoder); ok && schema != Schema {
		d.fail(fmt.Errorf("schema %q, want %q", schema, Schema))
	}
	instant(a, "time", &s.Time)
	field(a, "source", (*string)(&s.Source))
	field(a, "simulated", &s.Simulated)
	object(a, "host", &s.Host, host)
	assessed := assess.Of(s)
	items(a, "devices", &s.Devices, func(a archive, d *model.Device) { device(a, assessed, d) })
	rare(a, "other_devices", &s.Others)
	items(a, "processes", &s.Processes, process)
	items(a, "unmatched_chips", &s.Unmatched, chip)
	items(a, "ghosts", &s.StaleSlots, staleSlot)
	items(a, "alerts", &s.Alerts, alert)
	kernelLog(a, &s.Log)
	exits(a, &s.Exits)
	conditions(a, s)
	a.close()
}

func alert(a archive, x *model.Alert) {
	a.scope()
	field(a, "name", &x.Name)
	field(a, "severity", &x.Severity)
	field(a, "summary", &x.Summary)
	field(a, "bus_id", &x.BusID)
	instant(a, "since", &x.Since)
	field(a, "silenced", &x.Silenced)
	optional(a, "condition", (*string)(&x.Condition))
	a.endScope()
}

func host(a archive, h *model.Host) {
	a.scope()
	field(a, "name", &h.Name)
	field(a, "kernel", &h.Kernel)
	field(a, "driver_loaded", &h.DriverLoaded)
	reading(a, "driver_version", &h.DriverVersion)
	strings(a, "unbound", &h.Unbound)
	field(a, "hidden_fds", &h.HiddenFDs)
	optional(a, "broker", &h.Broker)
	reading(a, "cpu_percent", &h.CPU)
	reading(a, "load", &h.Load)
	size(a, "memory_used_bytes", &h.MemoryUsed)
	size(a, "memory_total_bytes", &h.MemoryTotal)
	a.endScope()
}

func device(a archive, assessed *assess.Assessment, d *model.Device) {
	a.scope()
	field(a, "index", &d.Index)
	field(a, "path", &d.Path)
	field(a, "bus_id", &d.BusID)
	field(a, "arch", (*string)(&d.Arch))
	reading(a, "board", &d.Board)
	reading(a, "serial", &d.Serial)
	reading(a, "asic_id", &d.ASICID)
	reading(a, "numa_node", &d.NUMANode)
	reading(a, "cpu_affinity", &d.CPUAffinity)
	optional(a, "tray", &d.Tray)
	optional(a, "slot", &d.Slot)
	object(a, "pci", &d.PCIID, pciID)
	field(a, "state", (*string)(&d.State))
	stateReason(a, d)
	deviceCondition(a, assessed, d)
	instant(a, "read_at", &d.ReadAt)
	telemetry(a, d)
	object(a, "pcie", &d.PCIe, pcie)
	object(a, "firmware", &d.Firmware, firmware)
	firmwareTelemetry(a, &d.Telemetry)
	reading(a, "cores", &d.Cores)
	object(a, "lock", &d.Lock, lock)
	items(a, "pods", &d.Pods, podClaim)
	field(a, "hidden_fds", &d.HiddenFDs)
	doubts(a, &d.Doubts)
	items(a, "chips", &d.Chips, chip)
	object(a, "memory", &d.Memory, memory)
	a.endScope()
}

// stateReason has the sentence for people and what it was made from.
func stateReason(a archive, d *model.Device) {
	text := ""
	if !a.reads() {
		text = words.StateReason(d)
	}
	field(a, "state_reason", &text)
	r := &d.StateReason
	optional(a, "state_cause", (*string)(&r.Cause))
	optional(a, "state_file", &r.File)
	instant(a, "state_since", &r.Since)
}

// lock is UMD's lock on the chip; pid is the holder's own number for itself.
func lock(a archive, l *model.ChipLock) {
	reading(a, "held", &l.Held)
	reading(a, "pid", &l.PID)
}

func pciID(a archive, p *model.PCIID) {
	field(a, "vendor_id", (*hex)(&p.Vendor))
	field(a, "device_id", (*hex)(&p.Device))
	field(a, "subsystem_vendor_id", (*hex)(&p.SubVendor))
	field(a, "subsystem_device_id", (*hex)(&p.SubDevice))
	revision := int(p.Revision)
	field(a, "revision", &revision)
	if a.reads() {
		p.Revision = uint8(revision)
	}
}

func telemetry(a archive, d *model.Device) {
	reading(a, "temperature_c", &d.Temperature)
	reading(a, "temperature_limit_c", &d.TemperatureLimit)
	reading(a, "temperature_shutdown_c", &d.ShutdownTemperature)
	reading(a, "power_w", &d.Power)
	reading(a, "power_limit_w", &d.PowerLimit)
	reading(a, "board_power_limit_w", &d.BoardPowerLimit)
	reading(a, "voltage_v", &d.Voltage)
	reading(a, "voltage_limit_v", &d.VoltageLimit)
	reading(a, "current_a", &d.Current)
	reading(a, "current_limit_a", &d.CurrentLimit)
	reading(a, "aiclk_mhz", &d.AICLK)
	reading(a, "aiclk_max_mhz", &d.AICLKMax)
	reading(a, "axiclk_mhz", &d.AXICLK)
	reading(a, "arcclk_mhz", &d.ARCCLK)
	reading(a, "fan_rpm", &d.Fan)
	reading(a, "heartbeat", &d.Heartbeat)
	reading(a, "heartbeat_age_s", &d.HeartbeatAge)
	reading(a, "heartbeat_hz", &d.HeartbeatRate)
	reading(a, "thermal_trips", &d.ThermalTrips)
	reading(a, "allocation_failures", &d.AllocationFailures)
	rareBound(a, "allocation_failures_bound", &d.AllocationFailuresBound)
	object(a, "activity", &d.Activity, activity)
	work(a, &d.Work)
}

// activity is an estimate, never a measurement.
func activity(a archive, v *model.Activity) {
	reading(a, "ratio", &v.Ratio)
	field(a, "basis", &v.Basis)
}

func pcie(a archive, p *model.PCIe) {
	reading(a, "gen", &p.Gen)
	reading(a, "gen_max", &p.GenMax)
	reading(a, "width", &p.Width)
	reading(a, "width_max", &p.WidthMax)
	reading(a, "slot_gen_max", &p.SlotGenMax)
	reading(a, "slot_width_max", &p.SlotWidthMax)
	reading(a, "degraded", &p.Degraded)
	reading(a, "to_device_bytes_per_s", &p.ToDeviceRate)
	reading(a, "from_device_bytes_per_s", &p.FromDeviceRate)
	reading(a, "to_device_bytes_total", &p.ToDeviceTotal)
	reading(a, "from_device_bytes_total", &p.FromDeviceTotal)
}

func firmware(a archive, f *model.Firmware) {
	reading(a, "bundle", &f.Bundle)
	reading(a, "arc", &f.ARC)
	reading(a, "eth", &f.ETH)
	reading(a, "m3_app", &f.M3App)
	reading(a, "m3_bootloader", &f.M3Bootloader)
	reading(a, "tt_flash", &f.TTFlash)
}

func chip(a archive, c *model.Chip) {
	a.scope()
	if a.reading("id", statusOf(&c.ID), false) {
		a.value((*decimal)(&c.ID.V))
	}
	optional(a, "name", &c.Name)
	field(a, "remote", &c.Remote)
	optional(a, "region", &c.Region)
	rareNumbers(a, "candidates", &c.Candidates)
	object(a, "memory", &c.Memory, memory)
	work(a, &c.Work)
	rareReading(a, "remote_temperature_c", &c.Temperature)
	rareReading(a, "remote_power_w", &c.Power)
	rare(a, "sensors_from", (*string)(&c.SensorsFrom))
	a.endScope()
}

func memory(a archive, m *model.Memory) {
	tracking(a, &m.Tracking)
	doubts(a, &m.Doubts)
	for i := range m.Pools {
		object(a, model.Pool(i).String(), &m.Pools[i], poolUse)
	}
	optional(a, "cb_means", (*string)(&m.CB))
	a.figure("stale_bytes", "stale_bound", &m.Stale)
	rareFigure(a, "inferred_bytes", "inferred_bound", &m.Inferred)
}

func poolUse(a archive, p *model.PoolUse) {
	a.figure("used_bytes", "used_bound", &p.Used)
	size(a, "total_bytes", &p.Total)
	rareFigure(a, "occupied_bytes", "occupied_bound", &p.Occupied)
	rareSize(a, "free_bytes", &p.Free)
	rareSize(a, "largest_free_bytes", &p.LargestFree)
	rareSize(a, "core_largest_free_least_bytes", &p.CoreLeast)
	rareSize(a, "core_largest_free_most_bytes", &p.CoreMost)
}

func tracking(a archive, t *model.Tracking) {
	absent := model.TrackAbsent
	if *t == "" && !a.reads() {
		t = &absent
	}
	field(a, "tracking", (*string)(t))
}

// kernelIndex is the device something is about; null where it is none of this host.
func kernelIndex(a archive, key string, v *int) {
	switch none := a.null(key, *v == model.NoDevice); {
	case !none:
		a.value(v)
	case a.reads():
		*v = model.NoDevice
	}
}

func process(a archive, p *model.Process) {
	a.scope()
	field(a, "pid", &p.PID)
	instant(a, "start_time", &p.StartTime)
	field(a, "start_ticks", &p.StartTicks)
	field(a, "ppid", &p.PPID)
	field(a, "state", (*string)(&p.State))
	optional(a, "condition", (*string)(&p.Condition))
	reading(a, "uid", &p.UID)
	reading(a, "user", &p.User)
	reading(a, "name", &p.Name)
	reading(a, "cmdline", &p.Cmdline)
	reading(a, "cpu_percent", &p.CPU)
	reading(a, "rss_bytes", &p.RSS)
	reading(a, "threads", &p.Threads)
	if !a.null("container", p.Container == model.Container{}) {
		a.begin()
		container(a, &p.Container)
		a.close()
	}
	optional(a, "slurm_job", &p.SlurmJob)
	optional(a, "slurm_step", &p.SlurmStep)
	optional(a, "slurm_from", (*string)(&p.SlurmFrom))
	optional(a, "systemd_unit", &p.SystemdUnit)
	reach(a, &p.Reach)
	reading(a, "release", &p.Release)
	reading(a, "type", &p.Type)
	doubts(a, &p.Doubts)
	items(a, "devices", &p.Devices, use)
	processWork(a, &p.Work)
	failures(a, &p.Failures)
	a.endScope()
}

// reach is how to reach the user of a process.
func reach(a archive, r *model.Reach) {
	if a.maybe("reach", *r != model.Reach{}) {
		a.begin()
		field(a, "full_name", &r.FullName)
		field(a, "job_name", &r.JobName)
		field(a, "tty", &r.TTY)
		field(a, "ssh_from", &r.SSH)
		field(a, "directory", &r.Dir)
		a.close()
	}
}

func podClaim(a archive, c *model.PodClaim) {
	field(a, "namespace", &c.Namespace)
	field(a, "pod", &c.Pod)
	field(a, "container", &c.Container)
	field(a, "resource", &c.Resource)
	strings(a, "names", &c.Names)
}

func container(a archive, c *model.Container) {
	field(a, "runtime", &c.Runtime)
	field(a, "id", &c.ID)
	optional(a, "pod", &c.Pod)
	optional(a, "pod_name", &c.PodName)
	optional(a, "namespace", &c.Namespace)
}

func use(a archive, u *model.DeviceUse) {
	a.scope()
	kernelIndex(a, "index", &u.Device)
	reading(a, "open_fds", &u.OpenFDs)
	field(a, "inherited", &u.Inherited)
	tracking(a, &u.Tracking)
	pools(a, &u.Memory)
	field(a, "source", (*string)(&u.Source))
	worst(a, &u.Memory)
	doubts(a, &u.Doubts)
	items(a, "chips", &u.Chips, func(a archive, c *model.ChipUse) {
		a.scope()
		field(a, "id", (*decimal)(&c.ChipID))
		pools(a, &c.Memory)
		a.endScope()
	})
	a.endScope()
}

// poolKeys are the members of a pool: the best number, and its bound.
var poolKeys = [model.NumPools][2]string{
	{"dram_bytes", "dram_bound"},
	{"l1_bytes", "l1_bound"},
	{"l1_small_bytes", "l1_small_bound"},
	{"trace_bytes", "trace_bound"},
	{"cb_bytes", "cb_bound"},
	{"kernel_bytes", "kernel_bound"},
}

func pools(a archive, b *model.PoolBytes) {
	for i := range b {
		a.figure(poolKeys[i][0], poolKeys[i][1], &b[i])
	}
}

// worst is the bound of all the allocator's pools together, null where nothing
// is known of them. It follows from the others: a reader skips it.
func worst(a archive, b *model.PoolBytes) {
	var sum model.Sum
	for _, p := range []model.Pool{model.DRAM, model.L1, model.L1Small, model.Trace} {
		if b[p].Status() != model.Absent {
			sum.Add(b[p])
		}
	}
	_, bound, known := sum.Bytes().Best()
	if !a.null("bound", !known) {
		a.value(&bound)
	}
}

func staleSlot(a archive, g *model.StaleSlot) {
	a.scope()
	field(a, "region", &g.Region)
	field(a, "chip_id", (*decimal)(&g.ChipID))
	kernelIndex(a, "index", &g.Device)
	field(a, "pid", &g.PID)
	field(a, "name", &g.Name)
	pools(a, &g.Bytes)
	instant(a, "updated", &g.Updated)
	field(a, "mapped", &g.Mapped)
	a.endScope()
}
