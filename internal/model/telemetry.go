package model

import (
	"time"
)

// Telemetry is what only a chip's firmware knows: the words of its telemetry
// table that the driver has no file for. ttmond reads them where it is told to
// (firmware = table or full); nothing else does.
type Telemetry struct {
	State  TelemetryState
	Cause  TelemetryCause // why there is no sample, or no new one
	Since  time.Time      // since when State is so
	Way    TelemetryWay   // how the last sample was read
	ReadAt time.Time      // of the last sample; zero: there was none

	BoardPower           Reading[float64] // W, input of the board
	BoardTemperature     Reading[float64] // °C
	RegulatorTemperature Reading[float64] // °C
	MemoryTemperature    Reading[float64] // °C, the hottest GDDR module
	MemorySpeed          Reading[float64] // Mbit/s per pin
	MemoryPower          Reading[float64] // W, of the GDDR's I/O
	FanDuty              Reading[float64] // percent
	Fans                 []float64        // rpm, those that the firmware has a speed of
	Modules              []MemoryModule

	// Corrected counts errors on the GDDR's interface since the chip's reset.
	Corrected     Reading[uint64]
	CorrectedRate Reading[float64] // per hour, between two samples
	// CorrectedBound is at_least where a counter has reached its end.
	CorrectedBound Bound
	Uncorrected    Reading[int] // modules that had one, in either direction

	Clock ClockControl

	ThrottleStarts Reading[uint32]  // times that kernels were slowed down since the chip's reset
	ThrottleShare  Reading[float64] // 0…1 of the firmware's last refresh in which they were

	Enabled  EnabledParts
	Location Reading[int]    // of the chip on its board
	MemoryFW Reading[string] // version of the GDDR's firmware
	L2CPU    Reading[string] // clocks of the four L2CPU clusters, MHz

	Ports []EthernetPort // by channel

	Dispatch Dispatch
}

// TelemetryState is how reading a chip's table goes.
type TelemetryState string

// The states. The zero state is that of a snapshot without ttmond.
const (
	TelemetryOff     TelemetryState = ""        // not asked for
	TelemetryPending TelemetryState = "pending" // the first sample is on its way
	TelemetryOK      TelemetryState = "ok"
	TelemetryRefused TelemetryState = "refused" // reading now could do harm: Cause says how
	TelemetryFailed  TelemetryState = "failed"  // tried, and failed: Cause says why
	TelemetryStalled TelemetryState = "stalled" // a read of the chip does not return; none is started until its reset
)

// TelemetryCause is why a table was not read. The set is closed; words has
// a sentence for each.
type TelemetryCause string

// Reasons not to try.
const (
	DriverUnknown     TelemetryCause = "driver_unknown"       // its release is not known
	DriverTooOld      TelemetryCause = "driver_too_old"       // before 1.32: no windows
	CloseSendsMessage TelemetryCause = "close_sends_message"  // 2.6.0 on Blackhole
	PowerDownPending  TelemetryCause = "power_down_pending"   // Wormhole, 2.9.0 and later: an open now would cancel it for good
	DeviceNotOK       TelemetryCause = "device_not_ok"        // resetting, hung, lost: or its heartbeat was not seen to move
	OldWindowUser     TelemetryCause = "old_window_user"      // a holder that may use windows without asking the driver
	HoldersUnknown    TelemetryCause = "holders_unknown"      // who has the chip open is not known
	BackingOff        TelemetryCause = "backing_off"          // two samples were all ones
	ArchUnknown       TelemetryCause = "architecture_unknown" // neither Wormhole nor Blackhole
)

// Failures of an attempt.
const (
	ExclusiveHolder  TelemetryCause = "exclusive_holder"   // EAGAIN at open
	ReadDenied       TelemetryCause = "denied"             // EACCES or EPERM: rights, or the kernel's lockdown
	ChipGone         TelemetryCause = "chip_gone"          // no such file or device
	ResetUnderWay    TelemetryCause = "reset_under_way"    // ENODEV of a request
	ResetWhileRead   TelemetryCause = "reset_while_read"   // SIGBUS
	NoWindowFree     TelemetryCause = "no_window_free"     // ENOMEM
	WindowRefused    TelemetryCause = "window_refused"     // EINVAL, ENOTTY: the driver has no such window
	WindowOutsideBAR TelemetryCause = "window_outside_bar" // ENXIO at mmap
	ReadAllOnes      TelemetryCause = "all_ones"           // off the bus
	NoTable          TelemetryCause = "no_table"           // pointers are 0: firmware too old, or not up
	TableInvalid     TelemetryCause = "table_invalid"      // a pointer or a count that cannot be
	TableUnknown     TelemetryCause = "table_unknown"      // a version we do not know
	ReaderFailed     TelemetryCause = "reader_failed"      // the reading process did not do its work
	ReadStalled      TelemetryCause = "read_stalled"       // it has not returned in time
)

// TelemetryCauses lists all causes.
func TelemetryCauses() []TelemetryCause {
	return []TelemetryCause{
		DriverUnknown, DriverTooOld, CloseSendsMessage, PowerDownPending, DeviceNotOK, OldWindowUser, HoldersUnknown, BackingOff, ArchUnknown,
		ExclusiveHolder, ReadDenied, ChipGone, ResetUnderWay, ResetWhileRead, NoWindowFree, WindowRefused, WindowOutsideBAR, ReadAllOnes,
		NoTable, TableInvalid, TableUnknown, ReaderFailed, ReadStalled,
	}
}

// TelemetryWay is how a chip's memory is reached.
type TelemetryWay string

// The ways. Neither sends a firmware message.
const (
	ByResource TelemetryWay = "resource4" // Wormhole, as root: a mapping of the PCI file, nothing is opened
	ByNode     TelemetryWay = "node"      // the device node with O_APPEND, for the length of one sample
	// ByExporter: tt-telemetry, the vendor's exporter, which ttmon-server asks.
	ByExporter TelemetryWay = "tt-telemetry"
)

// MemoryModule is one GDDR module, or channel, of a chip.
type MemoryModule struct {
	Index            int
	Top, Bottom      Reading[float64] // °C
	Trained, Failed  Reading[bool]    // its interface works; its training or self-test failed
	CorrectedReads   Reading[uint32]
	CorrectedWrites  Reading[uint32]
	CorrectedBound   Bound // at_least where one of the two has reached its end
	UncorrectedReads Reading[bool]
	UncorrectedWrite Reading[bool]
}

// ClockControl is who decides on the AI clock.
type ClockControl struct {
	// Reason is why the clock is what it is; Limit goes with ClockAtCeiling,
	// Floor with ClockAtFloor.
	Reason  Reading[ClockReason]
	Limit   ClockLimit
	Floor   ClockFloor
	HostCap Reading[float64] // MHz that software has limited the clock to; 0: no limit
	// The strongest of those that want the clock high, and of those that
	// limit it.
	FloorMHz, CeilingMHz       Reading[float64]
	FloorArbiter               Reading[ClockFloor]
	CeilingArbiter             Reading[ClockLimit]
	EnabledFloors, EnabledCeil Reading[uint32] // masks
}

// Throttled reports whether the firmware holds the clock below what work asks
// for, and what limits it.
func (c *ClockControl) Throttled() (by ClockLimit, throttled bool) {
	r, ok := c.Reason.Get()
	if !ok || r != ClockAtCeiling || c.Limit == LimitFMax || c.Limit == LimitNone {
		return LimitNone, false
	}
	if floor, ok := c.FloorArbiter.Get(); ok && floor != FloorBusy {
		return LimitNone, false // no request for a higher one
	}
	return c.Limit, true
}

// ClockReason is why the AI clock is what it is.
type ClockReason string

// The reasons.
const (
	ClockAtFloor   ClockReason = "floor"   // an arbiter wants it this high
	ClockAtCeiling ClockReason = "ceiling" // an arbiter limits it
	ClockClamped   ClockReason = "clamped" // to what the chip can do at all
	ClockSweep     ClockReason = "sweep"   // a test runs
	ClockForced    ClockReason = "forced"  // set by hand
)

// ClockFloor is an arbiter that wants the clock high.
type ClockFloor string

// The floors, by number.
const (
	FloorFMin ClockFloor = "fmin"
	FloorBusy ClockFloor = "busy" // a program works
)

// ClockLimit is an arbiter that limits the clock.
type ClockLimit string

// The limits.
const (
	LimitNone          ClockLimit = ""
	LimitFMax          ClockLimit = "fmax" // the chip's highest clock: nothing is held back
	LimitPower         ClockLimit = "power"
	LimitFastCurrent   ClockLimit = "fast_current"
	LimitCurrent       ClockLimit = "current"
	LimitThermal       ClockLimit = "thermal"
	LimitBoardPower    ClockLimit = "board_power"
	LimitVoltage       ClockLimit = "voltage"
	LimitMemoryThermal ClockLimit = "memory_thermal"
	LimitBoardAverage  ClockLimit = "board_power_average"
	LimitBoardCritical ClockLimit = "board_power_critical"
	LimitHost          ClockLimit = "host"
	LimitOther         ClockLimit = "other" // one that this release does not know
)

// EnabledParts are the masks of what was not fused off.
type EnabledParts struct {
	Tensix   Reading[uint32] // columns of Blackhole, rows of Wormhole
	Ethernet Reading[uint32]
	Memory   Reading[uint32]
	L2CPU    Reading[uint32]
}

// EthernetPort is one Ethernet channel of a device's own chip.
type EthernetPort struct {
	Channel int // as UMD numbers it
	Alive   Reading[bool]
	Up      Reading[bool]
	// Link is what UMD found at the other end when a program last opened the
	// boards; Peer is where, of a LinkHere.
	Link LinkEnd
	Peer Port
	// Remote is both ends of a LinkOutside in UMD's ids, where UMD named them.
	Remote RemotePort

	// UpBefore is whether the link was up before the chip was last reset; absent
	// where ttmond has seen no reset.
	UpBefore Reading[bool]

	// With firmware = full, or from tt-telemetry.
	Retrains    Reading[uint32]
	Corrected   Reading[uint64] // codewords
	Uncorrected Reading[uint64]
	// CodewordBound is at_least where the counters are those of the last time that a
	// program asked the Ethernet core for them, as on Blackhole.
	CodewordBound Bound

	// From tt-telemetry, in bytes per second: what tt-metal's fabric sends over the
	// link, and receives.
	Sent, Received Reading[float64]
}

// RemotePort is a link to a chip of another host in UMD's unique ids, which
// distinguish chips across hosts: the other host has the same link the other way
// around. The zero RemotePort is not known.
type RemotePort struct {
	Own     uint64 // the chip at this end
	Chip    uint64 // the chip at the other end
	Channel int    // at the other end
}

// Known reports whether UMD named the other end.
func (r RemotePort) Known() bool { return r.Chip != 0 && r.Own != 0 }

// LinkEnd is what is at the other end of a link.
type LinkEnd string

// The ends.
const (
	NoLink      LinkEnd = ""        // nothing, or no program has described the host
	LinkHere    LinkEnd = "here"    // a chip of this host
	LinkOutside LinkEnd = "outside" // a chip of another host, or behind none of these devices
)

// Expected reports whether a program has seen this link up.
func (p *EthernetPort) Expected() bool { return p.Link != NoLink }

// Down reports whether an expected link is down.
func (p *EthernetPort) Down() bool { return p.Expected() && p.Up.Known() && !p.Up.V }

// LostInReset reports whether a link was up before the chip was reset and is down
// since.
func (p *EthernetPort) LostInReset() bool {
	return p.UpBefore.Known() && p.UpBefore.V && p.Up.Known() && !p.Up.V
}

// Dispatch is what tt-metal's dispatch cores account for (firmware = full).
type Dispatch struct {
	Busy     Reading[float64] // 0…1, between two samples: the share of time in which programs ran
	Programs Reading[uint32]  // since the process opened the chip
	Workers  Reading[int]     // cores that programs can run on
}

// DownPorts are the ports of a device whose expected link is down.
func (d *Device) DownPorts() (down []*EthernetPort) {
	for i := range d.Telemetry.Ports {
		if p := &d.Telemetry.Ports[i]; p.Down() {
			down = append(down, p)
		}
	}
	return down
}

// LogLine is a line of the kernel's log about the driver or a chip.
type LogLine struct {
	Sequence uint64
	Time     time.Time
	Level    int // the kernel's: 0 emergency … 7 debug
	From     LogSource
	BusID    string // of the device it is about; empty: the driver itself
	Text     string // raw: escape it before it reaches a terminal
}

// LogSource is who wrote a line.
type LogSource string

// The sources.
const (
	LogDriver LogSource = "driver"
	LogSMC    LogSource = "smc" // the chip's system management controller
	LogDMC    LogSource = "dmc" // the board's
)
