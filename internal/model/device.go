package model

import (
	"time"
)

// Arch is a chip generation.
type Arch string

// The generations the driver binds. Grayskull has been refused since driver 2.2.
const (
	Wormhole    Arch = "wormhole"
	Blackhole   Arch = "blackhole"
	UnknownArch Arch = "unknown"
)

// State is how a device is doing.
type State string

// Device states. Hung and Lost make a command exit with 15.
const (
	StateOK        State = "ok"
	StateResetting State = "resetting" // between a reset and its post-reset step
	StateHung      State = "hung"      // heartbeat frozen, reads blocked, or all ones
	StateLost      State = "lost"      // gone from the bus
	StateUnknown   State = "unknown"   // bound, but not one vital sign can be read
)

// States lists all states in the order in which views count them.
func States() []State {
	return []State{StateOK, StateResetting, StateUnknown, StateHung, StateLost}
}

// StateReason is why a device is in its state. The zero StateReason says
// nothing: the device is ok.
type StateReason struct {
	Cause Cause
	File  string    // ReadBlocked: the file whose read has not returned
	Since time.Time // since when it is so; zero where that is not known
}

// Cause is the kind of a StateReason. The set is closed; words has a
// sentence for each.
type Cause string

// The causes, by the state they go with.
const (
	HeartbeatUnseen Cause = "heartbeat_unseen" // ok, but the heartbeat has not been seen to move: that takes a second sample
	NoHeartbeat     Cause = "no_heartbeat"     // ok, as far as can be told without a heartbeat
	ReadSlow        Cause = "read_slow"        // ok until now; a read has not returned, which may only be slow

	NoTelemetry  Cause = "no_telemetry" // unknown: the driver made no telemetry files for the chip
	NoVitalSigns Cause = "no_vitals"    // unknown: there are files, and none of them holds a believable value

	HeartbeatStopped Cause = "heartbeat_stopped" // hung; the data is Device.HeartbeatAge
	AllOnes          Cause = "all_ones"          // hung: off the bus, or without power
	ReadBlocked      Cause = "read_blocked"      // hung, or a reset is being executed

	ResetWindow Cause = "reset_window" // resetting: the post-reset step has not come

	DriverUnloaded Cause = "driver_unloaded" // lost
	Unbound        Cause = "unbound"         // lost: still on the bus, without the driver
	OffBus         Cause = "off_bus"         // lost
	ReportedGone   Cause = "said_gone"       // lost: the driver's files say so
)

// Device is one PCIe endpoint as the kernel driver presents it. A board may
// have several chips behind one endpoint (n300) or several endpoints (p300,
// Galaxy).
type Device struct {
	Index       int    // N of /dev/tenstorrent/N; changes on hot-plug
	Path        string // /dev/tenstorrent/N
	BusID       string // 0000:01:00.0: the identity
	Arch        Arch
	Board       Reading[string] // card type as in the catalogue: "n300"
	Serial      Reading[string] // 16 upper-case hex digits; one per board
	ASICID      Reading[string] // 16 upper-case hex digits; one per chip
	NUMANode    Reading[int]
	CPUAffinity Reading[string] // local_cpulist
	PCIID       PCIID
	Tray, Slot  int // position in a Galaxy, from 1; 0 where there is none

	State       State
	StateReason StateReason
	ReadAt      time.Time // when the values below were read

	Temperature, TemperatureLimit Reading[float64] // °C; limit: throttling begins
	ShutdownTemperature           Reading[float64] // °C
	Power, PowerLimit             Reading[float64] // W, of the core rail only
	BoardPowerLimit               Reading[float64] // W, of the whole board
	Voltage, VoltageLimit         Reading[float64] // V
	Current, CurrentLimit         Reading[float64] // A
	AICLK, AICLKMax               Reading[float64] // MHz
	AXICLK, ARCCLK                Reading[float64] // MHz
	Fan                           Reading[float64] // rpm
	Heartbeat                     Reading[uint32]
	HeartbeatAge                  Reading[float64] // s since it last moved
	HeartbeatRate                 Reading[float64] // 1/s
	ThermalTrips                  Reading[uint32]
	Activity                      Activity
	Work                          Work // of the busiest of its chips
	// AllocationFailures counts requests for memory of the device that failed,
	// since ttmond counts them.
	AllocationFailures Reading[uint64]
	// AllocationFailuresBound is at_least where some were not counted.
	AllocationFailuresBound Bound

	PCIe      PCIe
	Firmware  Firmware
	Telemetry Telemetry    // what only the firmware knows
	Cores     Reading[int] // usable Tensix cores per chip
	Chips     []Chip
	Memory    Memory // summed over Chips
	Lock      ChipLock

	// HiddenFDs counts open descriptors of the device whose processes are not
	// visible from here: in another pid namespace, or another user's.
	HiddenFDs int
	Doubts    []Doubt // about its users

	Pods []PodClaim `see:"proc"` // to whom Kubernetes has given it
}

// PCIID is what the PCI configuration space says.
type PCIID struct {
	Vendor, Device, SubVendor, SubDevice uint16
	Revision                             uint8
}

// PCIe is the link and the traffic over it.
type PCIe struct {
	Gen, GenMax     Reading[int]
	Width, WidthMax Reading[int]
	// What the port above the device can do, where the kernel tells.
	SlotGenMax, SlotWidthMax Reading[int]
	Degraded                 Reading[bool] // slower or narrower than both ends can do
	// Rates are between two samples; totals count since this process (or the
	// daemon) first saw the device: the hardware counters wrap at 128 GiB.
	ToDeviceRate, FromDeviceRate   Reading[float64] // bytes/s
	ToDeviceTotal, FromDeviceTotal Reading[uint64]  // bytes
}

// Firmware lists versions as the driver prints them.
type Firmware struct {
	Bundle, ARC, ETH, M3App, M3Bootloader, TTFlash Reading[string]
}

// ChipLock is UMD's lock on a device and the chips behind it: held from the
// moment a process starts the chip until it closes it.
type ChipLock struct {
	Held Reading[bool]
	PID  Reading[int] // of the holder, in its own pid namespace
}

// Activity is an estimate of how busy a chip is. No counter measures it.
type Activity struct {
	Ratio Reading[float64] // 0..1, from power above idle
	Basis string           // how it was estimated, for the user
}

// Trouble reports whether the device needs attention (exit code 15).
func (d *Device) Trouble() bool { return d.State == StateHung || d.State == StateLost }
