package model

import (
	"time"
)

// Work is what ran on a chip: how much of the time a program ran on it. That is
// not how many of its cores worked. It comes from tt-metal's real-time profiler,
// as the host's processes receive it; nothing is read from the chip.
type Work struct {
	Busy  Reading[float64] // 0…1 of the window
	Bound Bound            // of Busy
	// Cause is why Busy is missing, or not exact.
	Cause    WorkCause
	Window   float64          // s, that Busy is about
	Programs Reading[float64] // per second
	// Late is the share of the window that passed between two programs that
	// follow each other closely: the chip had nothing to do, and soon had.
	Late Reading[float64]

	// Totals of the programs that ended since ttmon first saw the chip report. A doubt
	// about the window passes; one about the totals stays.
	BusyTime   Reading[uint64] // ns
	ProgramSum Reading[uint64]
	TotalBound Bound // of both, and of what operations took in all
}

// WorkCause is why it is not known, or not exactly, how busy a chip is. The set
// is closed; each has a sentence.
type WorkCause string

// Causes of a lower bound.
const (
	WorkLossy        WorkCause = "lossy_release"  // tt-metal 0.71 to 0.79: the chip drops records of programs that are too fast
	WorkUnreported   WorkCause = "unreported"     // a program that has not been reported yet may be running
	WorkUnprofiled   WorkCause = "unprofiled"     // programs without an id ran, of which nothing is known
	WorkQueues       WorkCause = "command_queues" // several command queues were used, or an unknown number: tt-metal reports the first one's programs
	WorkSubDevices   WorkCause = "sub_devices"    // the device was divided: a record ends when the next program begins on any part
	WorkRecordsLost  WorkCause = "records_lost"   // ttmond could not read all records
	WorkOtherProcess WorkCause = "other_process"  // another process uses the chip and reports nothing
	WorkOtherChip    WorkCause = "other_chip"     // of a board: another of its chips reports nothing
	WorkTooMuch      WorkCause = "more_than_time" // unsure: processes report more time than has passed
	WorkDispatch     WorkCause = "dispatch"       // unsure: tt-metal's dispatch cores account for another time (Telemetry.Dispatch)
	WorkEngine       WorkCause = "engine"         // unsure: the driver's own figure, which is the kernel's for any accelerator
)

// Causes of a missing figure.
const (
	WorkNotWatched  WorkCause = "not_watched"  // a process that uses the chip has no libttmon in it
	WorkNoReport    WorkCause = "no_report"    // libttmon is in the process, and says nothing of programs
	WorkTooFast     WorkCause = "too_fast"     // its chips report more often than ttmond may look
	WorkNoSymbols   WorkCause = "no_symbols"   // its tt-metal has none of the functions by which ttmond sees programs
	WorkWhichChip   WorkCause = "which_chip"   // it was running before ttmond: its chips cannot be told apart
	WorkNoProfiler  WorkCause = "no_profiler"  // tt-metal before 0.71 does not report programs
	WorkProfilerOff WorkCause = "profiler_off" // tt-metal could report, and does not for this chip
	WorkRemoteChip  WorkCause = "remote_chip"  // a chip without PCIe of its own does not report
	WorkNoIOMMU     WorkCause = "no_iommu"     // a Blackhole chip does not report without an IOMMU
	WorkSilent      WorkCause = "silent"       // nothing completed in the window, and a program may be running
	WorkLayout      WorkCause = "layout"       // records of a tt-metal that this release does not know
	WorkFirstSample WorkCause = "first_sample" // needs a second sample
	WorkDeviceState WorkCause = "device_state" // the device does not answer
	WorkUsersHidden WorkCause = "users_hidden" // who uses the chip is not known
)

// sentence is a cause in words. Causes and sentences are in lists, not in maps, which
// every start of every program would make.
type sentence[C ~string] struct {
	cause C
	text  string
}

// sentenceOf is the sentence of a cause.
func sentenceOf[C ~string](c C, list []sentence[C]) (text string, ok bool) {
	for i := range list {
		if list[i].cause == c {
			return list[i].text, true
		}
	}
	return "", false
}

var workSentences = [...]sentence[WorkCause]{
	{WorkLossy, "tt-metal before 0.80 drops records of very short programs"},
	{WorkUnreported, "a program that has not completed yet is not counted"},
	{WorkUnprofiled, "programs without an id ran: tt-metal does not report them"},
	{WorkQueues, "the process may use several command queues: tt-metal reports the programs of one"},
	{WorkSubDevices, "the process divided the device into sub-devices: programs that run at the same time are reported as too short"},
	{WorkRecordsLost, "ttmond could not read all records in time"},
	{WorkOtherProcess, "another process that has the device open reports no programs"},
	{WorkOtherChip, "another chip of the board reports no programs"},
	{WorkTooMuch, "processes report more busy time than has passed"},
	{WorkDispatch, "the chip's dispatch cores account for another busy time (dispatch.busy)"},
	{WorkEngine, "from the driver's fdinfo (drm-engine): how long its engine worked for the process, which counts no programs"},

	{WorkNotWatched, "the process has no libttmon in it, and ttmond does not watch it: start it with ttmon run"},
	{WorkNoReport, "the libttmon in the process has not said what its chips report"},
	{WorkTooFast, "the chips report too often for ttmond's probes: start the process with ttmon run"},
	{WorkNoSymbols, "this tt-metal has none of the functions by which ttmond sees programs: update ttmon, or start the process with ttmon run"},
	{WorkWhichChip, "ttmond did not see the process open its chips, so which of them reports is unknown"},
	{WorkNoProfiler, "tt-metal before 0.71 does not report programs"},
	{WorkProfilerOff, "tt-metal does not report programs of this chip"},
	{WorkRemoteChip, "tt-metal does not report programs of a chip without PCIe of its own"},
	{WorkNoIOMMU, "tt-metal does not report programs of a Blackhole chip without an IOMMU"},
	{WorkSilent, "no program completed: the chip is idle, or one long program runs"},
	{WorkLayout, "this tt-metal reports programs in a layout that ttmon does not know"},
	{WorkFirstSample, "needs a second sample"},
	{WorkDeviceState, "the device does not respond"},
	{WorkUsersHidden, "the processes that use the device are not visible"},
}

// Why is the cause as a sentence without a full stop: the reason of a figure that
// is missing. It is empty where there is nothing to say.
func (c WorkCause) Why() string {
	if s, ok := sentenceOf(c, workSentences[:]); ok || c == "" {
		return s
	}
	return string(c) // of a newer ttmond
}

// NoWork is a figure that is missing.
func NoWork(cause WorkCause) Work {
	status := Absent
	switch cause {
	case WorkFirstSample, WorkSilent:
		status = Pending
	case WorkLayout:
		status = Unsupported
	case WorkUsersHidden:
		status = Denied
	}
	return NoWorkAs(status, cause)
}

// NoWorkAs is NoWork where the state of the device says in what way it is missing.
func NoWorkAs(status Status, cause WorkCause) Work {
	ratio, sum := Missing[float64](status, cause.Why()), Missing[uint64](status, cause.Why())
	return Work{Busy: ratio, Cause: cause, Programs: ratio, Late: ratio, BusyTime: sum, ProgramSum: sum}
}

// Measured reports whether there is a measured figure: then no estimate belongs
// beside it.
func (w *Work) Measured() bool { return w.Busy.Known() }

// ProcessWork is what a process had its chips do.
type ProcessWork struct {
	Chips []ChipWork
	// Watched reports whether Host is known: libttmon is in the process, or ttmond
	// has probes where it enqueues and waits.
	Watched   bool
	HostCause HostCause // why it is not, where it is not
	Host      HostWork
}

// Busiest is the chip that the process had do most; nil: nothing is known of any.
func (p *ProcessWork) Busiest() (best *ChipWork) {
	for i := range p.Chips {
		c := &p.Chips[i]
		if best == nil || c.Work.Busy.Known() && (!best.Work.Busy.Known() || c.Work.Busy.V > best.Work.Busy.V) {
			best = c
		}
	}
	return best
}

// ChipWork is what one process had one chip do.
type ChipWork struct {
	Device int    // kernel index, or NoDevice
	Chip   string // its name on a board with several
	ChipID uint64
	Source Source
	Work   Work // of this process alone

	Longest     float64   // s, the longest program
	LongestName string    `see:"proc"` // its operation
	LongestGap  float64   // s, the longest pause between two programs
	LastName    string    `see:"proc"` // operation of the last program that was reported
	LastRecord  time.Time // when that was; zero: never
	Since       time.Time // since when programs are counted
	Stalled     uint64    // ns that the profiler itself held the chip up
	// Operations by the time they took in the window, then in all; those that
	// are not among the first are summed up in one without a name, at the end.
	Operations []Operation
	// Gaps are the longest pauses between two programs since then, the longest
	// first. GapsCause is why none is listed, or why a program may have run in one.
	Gaps      []Gap
	GapsCause GapCause
}

// ShareBound is the bound of programs a second, and of the shares of the operations.
// Where a part of what was reported may have run before the window, it is not known of
// which operations: each may be too high, though the sum of their shares is not.
func (w *Work) ShareBound() Bound {
	if w.Bound == AtLeast && w.Cause == WorkUnreported {
		return Unsure
	}
	return w.Bound
}

// LateBound is the bound of Late. What is not reported ran between the programs that
// are: that time may be shorter.
func (w *Work) LateBound() Bound {
	if w.Bound != Exact {
		return Unsure
	}
	return Exact
}

// MaxGaps is how many gaps are kept of a process and chip.
const MaxGaps = 8

// Gap is a pause between two programs of a process on a chip.
type Gap struct {
	Length uint64    // ns, by the chip's clock
	End    time.Time // when the next program began, within the time that its record took to arrive
	After  string    `see:"proc"` // operation of the program before; raw: escape it before it reaches a terminal; empty: not known
}

// GapCause is why the longest gaps of a process and chip are not listed, or not
// certain. The set is closed; each has a sentence.
type GapCause string

// The causes. Those that busy has, too, have its words.
const (
	GapsNotKept      GapCause = "not_kept" // an older libttmon or ttmond counted them, and kept no list
	GapsLossy                 = GapCause(WorkLossy)
	GapsQueues                = GapCause(WorkQueues)
	GapsSubDevices            = GapCause(WorkSubDevices)
	GapsUnprofiled            = GapCause(WorkUnprofiled)
	GapsRecordsLost           = GapCause(WorkRecordsLost)
	GapsOtherProcess          = GapCause(WorkOtherProcess)
	GapsProcesses    GapCause = "processes" // several processes used the chip: one may have worked in another's gap
)

// GapCauses lists all causes.
func GapCauses() []GapCause {
	return []GapCause{GapsNotKept, GapsLossy, GapsQueues, GapsSubDevices, GapsUnprofiled, GapsRecordsLost, GapsOtherProcess, GapsProcesses}
}

// Why is the cause as a sentence without a full stop.
func (c GapCause) Why() string {
	switch c {
	case GapsNotKept:
		return "an older libttmon or ttmond measured them and kept no list"
	case GapsProcesses:
		return "several processes used the chip: one may have worked in a gap of another"
	}
	return WorkCause(c).Why()
}

// Operation is what the programs of one operation took of a chip.
type Operation struct {
	Name    string `see:"proc"` // raw: escape it before it reaches a terminal; empty: no name is known, or several
	Others  int    // operations that this one sums up; 0: it is one
	Calls   uint64
	Time    uint64           // ns
	Longest uint64           // ns, program
	Share   Reading[float64] // 0…1 of the window
	Rate    Reading[float64] // calls per second
}

// HostCause is why it is not known what a process enqueues and waits for. The set
// is closed; each has a sentence.
type HostCause string

// The causes.
const (
	HostNotWatched HostCause = ""           // neither libttmon nor ttmond sees the process
	HostNotAsked   HostCause = "not_asked"  // ttmond sees its programs; its probes of calls that enqueue and wait are off
	HostNoSymbols  HostCause = "no_symbols" // its tt-metal has not the functions, or they end in a way that is not known
	HostTooFast    HostCause = "too_fast"   // it enqueues more often than ttmond may count
)

var hostSentences = [...]sentence[HostCause]{
	{HostNotWatched, "neither libttmon nor ttmond sees what it enqueues and waits for: start it with ttmon run"},
	{HostNotAsked, "ttmond does not look at what it enqueues and waits for: set uprobe.waits, or start it with ttmon run"},
	{HostNoSymbols, "its tt-metal does not have the functions by which ttmond sees what it enqueues and waits for: start it with ttmon run"},
	{HostTooFast, "it enqueues too often for ttmond's probes: start it with ttmon run"},
}

// Why is the cause as a sentence without a full stop.
func (c HostCause) Why() string {
	if s, ok := sentenceOf(c, hostSentences[:]); ok {
		return s
	}
	return string(c) // of a newer ttmond
}

// HostWork is what a process asked of its chips, and what it waits for.
type HostWork struct {
	Enqueued, Replayed uint64
	// All that was enqueued before LastFinish has completed. Zero: never.
	LastEnqueue, LastFinish time.Time
	LastName                string `see:"proc"` // of what was enqueued last, where it is known
	Queues                  int    // command queues of a device that were used; 2 stands for more, too
	SubDevices              int    // the most that a device was divided into; 0: it never was
	// WaitingSince is since when a thread waits for the chips; zero: none does.
	WaitingSince time.Time
	WaitingFor   WaitKind
}

// Settled reports whether all that was enqueued is known to have completed.
func (h *HostWork) Settled() bool {
	return h.WaitingSince.IsZero() && !h.LastFinish.Before(h.LastEnqueue)
}

// WaitKind is what a thread waits for.
type WaitKind string

// The kinds.
const (
	WaitsForNothing WaitKind = ""
	WaitsForFinish  WaitKind = "finish" // all that was enqueued
	WaitsForEvent   WaitKind = "event"
)

// WithTotals is w with its totals.
func (w Work) WithTotals(busyNS, programs uint64, bound Bound) Work {
	w.BusyTime, w.ProgramSum, w.TotalBound = Value(busyNS), Value(programs), bound
	return w
}
