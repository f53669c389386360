package wire

import (
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// firmwareTelemetry is what only the chip's firmware knows: it is there where
// ttmond reads it.
func firmwareTelemetry(a archive, t *model.Telemetry) {
	if !a.maybe("telemetry", t.State != model.TelemetryOff) {
		return
	}
	a.begin()
	field(a, "state", (*string)(&t.State))
	optional(a, "cause", (*string)(&t.Cause))
	text := ""
	if !a.reads() {
		text = words.Telemetry(t)
	}
	field(a, "text", &text)
	instant(a, "since", &t.Since)
	optional(a, "way", (*string)(&t.Way))
	instant(a, "read_at", &t.ReadAt)
	reading(a, "board_power_w", &t.BoardPower)
	reading(a, "board_temperature_c", &t.BoardTemperature)
	reading(a, "regulator_temperature_c", &t.RegulatorTemperature)
	reading(a, "memory_temperature_c", &t.MemoryTemperature)
	reading(a, "memory_speed_mbps", &t.MemorySpeed)
	reading(a, "memory_power_w", &t.MemoryPower)
	reading(a, "memory_corrected_errors", &t.Corrected)
	field(a, "memory_corrected_bound", &t.CorrectedBound)
	reading(a, "memory_corrected_errors_per_h", &t.CorrectedRate)
	reading(a, "memory_uncorrected_modules", &t.Uncorrected)
	reading(a, "memory_firmware", &t.MemoryFW)
	items(a, "memory_modules", &t.Modules, memoryModule)
	reading(a, "fan_duty_percent", &t.FanDuty)
	if a.key("fans_rpm") {
		elements(a, &t.Fans, value[float64])
	}
	object(a, "clock", &t.Clock, clockControl)
	reading(a, "throttle_starts", &t.ThrottleStarts)
	reading(a, "throttle_ratio", &t.ThrottleShare)
	object(a, "enabled", &t.Enabled, enabledParts)
	reading(a, "asic_location", &t.Location)
	reading(a, "l2cpu_clocks_mhz", &t.L2CPU)
	items(a, "ports", &t.Ports, ethernetPort)
	object(a, "dispatch", &t.Dispatch, dispatch)
	a.close()
}

// wordReading is a reading of a word out of a closed list.
func wordReading[T ~string](a archive, key string, r *model.Reading[T]) {
	if a.reading(key, statusOf(r), false) {
		word := string(r.V)
		a.value(&word)
		if a.reads() {
			r.V = T(word)
		}
	}
}

// rareBound is the bound of a number that is exact as a rule: no member then.
func rareBound(a archive, key string, b *model.Bound) {
	rare(a, key, b)
}

func memoryModule(a archive, m *model.MemoryModule) {
	a.scope()
	field(a, "index", &m.Index)
	reading(a, "top_c", &m.Top)
	reading(a, "bottom_c", &m.Bottom)
	reading(a, "trained", &m.Trained)
	reading(a, "failed", &m.Failed)
	reading(a, "corrected_reads", &m.CorrectedReads)
	reading(a, "corrected_writes", &m.CorrectedWrites)
	field(a, "corrected_bound", &m.CorrectedBound)
	reading(a, "uncorrected_reads", &m.UncorrectedReads)
	reading(a, "uncorrected_writes", &m.UncorrectedWrite)
	a.endScope()
}

func clockControl(a archive, c *model.ClockControl) {
	wordReading(a, "reason", &c.Reason)
	optional(a, "limit", (*string)(&c.Limit))
	optional(a, "floor", (*string)(&c.Floor))
	reading(a, "host_cap_mhz", &c.HostCap)
	reading(a, "floor_mhz", &c.FloorMHz)
	reading(a, "ceiling_mhz", &c.CeilingMHz)
	wordReading(a, "floor_arbiter", &c.FloorArbiter)
	wordReading(a, "ceiling_arbiter", &c.CeilingArbiter)
	reading(a, "enabled_floors", &c.EnabledFloors)
	reading(a, "enabled_ceilings", &c.EnabledCeil)
}

func enabledParts(a archive, e *model.EnabledParts) {
	reading(a, "tensix", &e.Tensix)
	reading(a, "ethernet", &e.Ethernet)
	reading(a, "memory", &e.Memory)
	reading(a, "l2cpu", &e.L2CPU)
}

func ethernetPort(a archive, p *model.EthernetPort) {
	a.scope()
	field(a, "channel", &p.Channel)
	reading(a, "alive", &p.Alive)
	reading(a, "up", &p.Up)
	optional(a, "link", (*string)(&p.Link))
	if !a.null("peer", p.Link != model.LinkHere && p.Peer == (model.Port{})) {
		a.begin()
		port(a, &p.Peer)
		a.close()
	}
	if a.maybe("remote", p.Remote != (model.RemotePort{})) {
		a.begin()
		remotePort(a, &p.Remote)
		a.close()
	}
	reading(a, "retrains", &p.Retrains)
	reading(a, "corrected_codewords", &p.Corrected)
	reading(a, "uncorrected_codewords", &p.Uncorrected)
	rareBound(a, "codewords_bound", &p.CodewordBound)
	rareReading(a, "up_before_reset", &p.UpBefore)
	rareReading(a, "sent_bytes_per_s", &p.Sent)
	rareReading(a, "received_bytes_per_s", &p.Received)
	a.endScope()
}

// remotePort is the other end of a link to another host.
func remotePort(a archive, r *model.RemotePort) {
	field(a, "own_chip_id", (*decimal)(&r.Own))
	field(a, "chip_id", (*decimal)(&r.Chip))
	field(a, "channel", &r.Channel)
}

func dispatch(a archive, d *model.Dispatch) {
	reading(a, "busy_ratio", &d.Busy)
	reading(a, "programs", &d.Programs)
	reading(a, "worker_cores", &d.Workers)
}

// kernelLog is there where there are lines.
func kernelLog(a archive, lines *[]model.LogLine) {
	if a.maybe("log", len(*lines) > 0) {
		elements(a, lines, func(a archive, l *model.LogLine) {
			a.begin()
			logLine(a, l)
			a.close()
		})
	}
}

func logLine(a archive, l *model.LogLine) {
	field(a, "sequence", &l.Sequence)
	instant(a, "time", &l.Time)
	field(a, "level", &l.Level)
	field(a, "from", (*string)(&l.From))
	field(a, "bus_id", &l.BusID)
	field(a, "text", &l.Text)
}

// exits are the processes that have left their devices lately.
func exits(a archive, list *[]model.Exit) {
	if a.maybe("exits", len(*list) > 0) {
		elements(a, list, func(a archive, x *model.Exit) {
			a.begin()
			a.scope()
			field(a, "pid", &x.ID.PID)
			field(a, "start_ticks", &x.ID.StartTicks)
			instant(a, "time", &x.Time)
			field(a, "alive", &x.Alive)
			reading(a, "wait_status", &x.Status)
			optional(a, "oom_killed", &x.OutOfMemory)
			failures(a, &x.Failures)
			account(a, &x.Account)
			a.endScope()
			a.close()
		})
	}
}

// account is what the ledger of a process that has exited says of its memory.
func account(a archive, to **model.Account) {
	if !a.maybe("ledger", *to != nil) {
		return
	}
	if a.reads() || *to == nil {
		*to = &model.Account{}
	}
	x := *to
	a.begin()
	field(a, "uid", &x.UID)
	field(a, "name", &x.Name)
	instant(a, "start", &x.Start)
	instant(a, "last", &x.Last)
	items(a, "peaks", &x.Peaks, func(a archive, p *model.Peak) {
		a.scope()
		field(a, "device", &p.Device)
		field(a, "chip_id", (*decimal)(&p.ChipID))
		field(a, "pool", &p.Pool)
		a.figure("peak_bytes", "peak_bound", &p.Bytes)
		instant(a, "at", &p.At)
		a.endScope()
	})
	a.close()
}

// failures are the requests of a process for device memory that failed.
func failures(a archive, f **model.Failures) {
	if !a.maybe("allocation_failures", *f != nil) {
		return
	}
	if a.reads() || *f == nil {
		*f = &model.Failures{}
	}
	x := *f
	a.begin()
	field(a, "count", &x.Count)
	instant(a, "last", &x.Last)
	optional(a, "failure", &x.ID)
	optional(a, "pool", &x.Pool)
	optional(a, "clash", &x.Clash)
	a.close()
}
