package model

import "slices"

// ConditionKind is the kind of a condition. Everything that is said about a kind is
// in its row of ConditionKinds.
type ConditionKind string

// The kinds that are states of a device: the worst of them is the word that
// views show for it.
const (
	ConditionOK        ConditionKind = "ok"
	ConditionSlowLink  ConditionKind = "slow_link" // PCIe is slower or narrower than both ends can do
	ConditionWeakLink  ConditionKind = "weak_link" // some channels of an Ethernet link that should be up are down
	ConditionLinkDown  ConditionKind = "link_down" // an Ethernet link that should be up is down, all its channels
	ConditionHot       ConditionKind = "hot"       // near or above the temperature at which throttling begins
	ConditionThrottled ConditionKind = "throttled" // the clock is below its maximum because something is at its limit
	ConditionResetting ConditionKind = "resetting"
	ConditionUnknown   ConditionKind = "unknown"
	ConditionHung      ConditionKind = "hung"
	ConditionLost      ConditionKind = "lost"
)

// The kinds that are no states.
const (
	ConditionMemoryFailed ConditionKind = "memory_failed"     // a GDDR module is not trained, or failed its self-test
	ConditionMemoryErrors ConditionKind = "memory_errors"     // a GDDR module had an error that was not corrected
	ConditionReadStalled  ConditionKind = "telemetry_stalled" // a read of the chip's own table does not return
	ConditionTripped      ConditionKind = "thermal_trips"     // a device has shut itself down for heat since power-on
	ConditionMemoryFull   ConditionKind = "memory_full"       // hardly any DRAM of a device is free
	ConditionStaleMemory  ConditionKind = "stale"             // dead processes left memory accounted for
	ConditionUnbound      ConditionKind = "unbound"           // the host has boards without a driver
	ConditionStuck        ConditionKind = "stuck"             // a process waits for chips on which nothing completes: a suspicion
)

// Subject is what a kind of condition is about.
type Subject uint8

// The subjects.
const (
	OfDevice Subject = iota
	OfLink           // of a device: PCIe or Ethernet
	OfHost
)

// ConditionRow is all that is said about a kind of condition. The rule that finds it
// is in assess.
type ConditionRow struct {
	Kind    ConditionKind
	Level   Level
	Subject Subject
	State   bool   // it is a state of the device: everything about a device that a user should act on is
	Word    string // in a column; at most nine cells where it is a state
	Mark    string // in one cell, where it is a state

	// Damped: it comes and goes with a value, so it must be seen twice before it is
	// one, and be missing twice before it is over. What the driver states is so at once.
	Damped bool
	// Reads says what must be read of the firmware before the kind can be found.
	Reads FirmwareReads

	// Event is the kind of the events of its beginning and its end; empty: it has none
	// of its own, because events of links or of processes say it.
	Event EventKind
	Begun string // "device 3 …"; empty: "is" and the word with its cause
	// Ended is the event of its end under a chart, and EndedText in a sentence that
	// ", after 12 min" can follow; empty: "is no longer" and the word with its cause.
	Ended, EndedText string

	NodeReason string // of the condition of a Kubernetes node; empty: DeviceProblem

	When, Do string // in the documentation
}

// FirmwareReads is what ttmond must have read of a chip's firmware.
type FirmwareReads uint8

// What must be read.
const (
	ReadsNothing FirmwareReads = iota
	ReadsTried                 // reading is on, whether the chip answers or not
	ReadsTable                 // the chip has answered
)

// ConditionKinds has a row for each kind, the worst first. Those of one level stand
// together, so that ordering by kind also orders by level.
var ConditionKinds = []ConditionRow{
	{
		Kind: ConditionLost, Level: Critical, State: true, Word: "lost", Mark: "X", Event: EventState, NodeReason: "DeviceLost",
		When: "the device is gone from the bus, or the driver let it go",
		Do:   "check power and seating, reboot; `dmesg`",
	},
	{
		Kind: ConditionHung, Level: Critical, State: true, Word: "hung", Mark: "H", Event: EventState, NodeReason: "DeviceHung",
		When: "the firmware's heartbeat has stopped for 3 s, reads do not come back, or give nothing but ones",
		Do:   "`tt-smi -r /dev/tenstorrent/N`, once its processes have ended",
	},
	{
		Kind: ConditionUnbound, Level: Critical, Subject: OfHost, Word: "no driver", NodeReason: "DriverMissing",
		When: "the host has boards without a driver",
		Do:   "`modprobe tenstorrent`, `dmesg`",
	},
	{
		Kind: ConditionLinkDown, Level: Critical, Subject: OfLink, State: true, Word: "link down", Mark: "L", Reads: ReadsTable,
		When: "an Ethernet link that UMD has found before is down, with all its channels, and both ends work (`firmware` is not `off`)",
		Do:   "reset both ends, check the cable where there is one; `ttmon topo --links`",
	},
	{
		Kind: ConditionUnknown, Level: Warning, State: true, Word: "unknown", Mark: "?", Event: EventState,
		When: "the driver has bound the device, and not one value can be read",
		Do:   "`tt-smi -r /dev/tenstorrent/N`",
	},
	{
		Kind: ConditionResetting, Level: Warning, State: true, Word: "resetting", Mark: "r", Event: EventState, Begun: "is being reset",
		When: "between a reset and its post-reset step",
		Do:   "wait",
	},
	{
		Kind: ConditionThrottled, Level: Warning, State: true, Word: "throttled", Mark: "T", Damped: true,
		Event: EventThrottle, Ended: "full clock",
		When: "a process uses the device and does not leave it idle, its clock is below 97 % of its maximum, and temperature, power or current is at its limit",
		Do:   "fans, power supply, load",
	},
	{
		Kind: ConditionHot, Level: Warning, State: true, Word: "hot", Mark: "t", Damped: true,
		Event: EventThrottle, Ended: "cool again",
		When: "within 5 °C of the temperature at which throttling begins, or above it",
		Do:   "fans and airflow",
	},
	{
		Kind: ConditionWeakLink, Level: Warning, Subject: OfLink, State: true, Word: "weak link", Mark: "l", Reads: ReadsTable,
		When: "some channels of such a link are down",
		Do:   "as for `link_down`",
	},
	{
		Kind: ConditionSlowLink, Level: Warning, Subject: OfLink, State: true, Word: "slow link", Mark: "s", Damped: true,
		Event: EventLink, Begun: "has a slow PCIe link", Ended: "link ok", EndedText: "has its full PCIe link again",
		When: "PCIe is slower or narrower than both ends can do",
		Do:   "reseat the board, check the slot",
	},
	{
		Kind: ConditionStuck, Level: Warning, State: true, Word: "stuck?", Mark: "w",
		Event: EventState, Begun: "has a process that may be stuck", Ended: "not stuck", EndedText: "no longer has a process that seems stuck",
		When: "a suspicion: a process waits for its chips, and nothing has completed for longer than its own rhythm explains ([work](work.md))",
		Do:   "`ttmon ops -p PID`",
	},
	{
		Kind: ConditionMemoryFailed, Level: Warning, State: true, Word: "mem fault", Mark: "M", Reads: ReadsTable,
		Event: EventState, Begun: "has failed GDDR", Ended: "GDDR ok", EndedText: "has working GDDR again",
		When: "a GDDR module is not trained, or failed its self-test",
		Do:   "`tt-smi -r /dev/tenstorrent/N`; if it lasts, replace the board",
	},
	{
		Kind: ConditionMemoryErrors, Level: Warning, State: true, Word: "mem error", Mark: "m", Reads: ReadsTable,
		Event: EventState, Begun: "has GDDR errors", Ended: "GDDR ok", EndedText: "has no GDDR errors any more",
		When: "a GDDR module had an error that was not corrected, since the chip's reset",
		Do:   "as for `memory_failed`",
	},
	{
		Kind: ConditionReadStalled, Level: Warning, State: true, Word: "stalled", Mark: "R", Reads: ReadsTried,
		Event: EventState, Begun: "does not answer reads of its telemetry table",
		Ended: "answers", EndedText: "answers reads of its telemetry table again",
		When: "a read of the chip's own table does not return",
		Do:   "`tt-smi -r /dev/tenstorrent/N`, once its processes have ended",
	},
	{
		Kind: ConditionTripped, Level: Info, Word: "overheated before",
		When: "the board has shut itself down for heat since power-on",
		Do:   "fans and airflow",
	},
	{
		Kind: ConditionMemoryFull, Level: Info, Word: "memory full",
		When: "95 % of the DRAM of a chip is in use",
		Do:   "`ttmon mem`",
	},
	{
		Kind: ConditionStaleMemory, Level: Info, Word: "stale memory",
		When: "dead processes left memory accounted for",
		Do:   "`ttmon mem --stale`",
	},
	{Kind: ConditionOK, Level: Fine, State: true, Word: "ok", Mark: "■"},
}

// Rank is the place of a kind: the worst has 0. One that this release does not
// know, of a newer ttmond, stands before ok.
func (k ConditionKind) Rank() int {
	if i := slices.IndexFunc(ConditionKinds, func(r ConditionRow) bool { return r.Kind == k }); i >= 0 {
		return i
	}
	return len(ConditionKinds) - 1
}

// Row is what is said about a kind. One that is not known is worth knowing, and has
// its own name for a word.
func (k ConditionKind) Row() *ConditionRow {
	if r := &ConditionKinds[k.Rank()]; r.Kind == k {
		return r
	}
	return &ConditionRow{Kind: k, Level: Info, Word: string(k), Mark: "?"}
}
