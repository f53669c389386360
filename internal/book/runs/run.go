// Package runs keeps an account of every program that used a device: who started
// it, from when to when it ran, how it ended, and what it took of each device
// meanwhile.
//
// A run is a process that has a device open, together with those of its
// descendants that do. Package keep finds runs in the snapshots of a host and keeps
// them on disk; this one has what both ends of the API need.
//
// What is known of a run comes from snapshots, which are a second apart, and from the
// ledgers that libttmon keeps in programs; field by field the better one counts. A peak
// between two snapshots is not seen, so theirs are lower bounds; a ledger has them
// exactly, and who held them (Blocks, ProcessLedger). Means are weighted by
// time, over the time in which the value was known: they are right up to what changed
// within a Run's Step, and unsure where a part in the middle was not seen.
package runs

import (
	"iter"
	"maps"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// Schema names the JSON of a list of runs.
const Schema = "ttmon.runs/1"

// Answer is that of /v1/runs.
type Answer struct {
	Schema string    `json:"schema"`
	Time   time.Time `json:"time"`
	Runs   []Run     `json:"runs" see:"proc"` // the oldest first
	More   bool      `json:"more"`            // older ones match, too, and were left out
}

// Run is one of them.
type Run struct {
	ID   uint64 `json:"id"`
	Host string `json:"host,omitempty"`
	Who

	Start time.Time `json:"start"`      // of the first process
	Seen  time.Time `json:"first_seen"` // the first snapshot in which it had a device
	Last  time.Time `json:"last_seen"`  // and the last
	End   Ending    `json:"end"`

	// Observed is how many seconds of the run snapshots cover; Unseen is how many
	// lie between two that are too far apart.
	Observed float64 `json:"observed_s"`
	Unseen   float64 `json:"unseen_s,omitempty"`
	// Step is the longest time between two snapshots that were counted: what changed
	// in it is in means and energy as if it had changed half-way.
	Step float64 `json:"longest_step_s,omitempty"`

	Processes []Process       `json:"processes"` // the first is the one that the run is named after
	Dropped   int             `json:"processes_dropped,omitempty"`
	Pools     map[string]Pool `json:"memory"`  // over all its devices together, by pool
	Devices   []Device        `json:"devices"` // by index
	// Neighbours are the other runs that had one of its devices open meanwhile.
	Neighbours     []Neighbour `json:"neighbours"`
	MoreNeighbours bool        `json:"more_neighbours,omitempty"` // than are kept
	Failed         bool        `json:"failed,omitempty"`          // it is known to have ended badly; only answers have it
	// IdleSince is since when it has held memory without its chips doing anything, as
	// of its last snapshot.
	IdleSince time.Time `json:"idle_since,omitzero"`
	// Failures is nil where its requests for memory were not watched.
	Failures *Failures `json:"allocation_failures,omitempty"`
	Left     []Left    `json:"left"` // what its dead processes left in tt-metal's accounting
	// Lines are the lines of code that held the most at the peak. Only answers for one
	// run have them; NoLines is why there are none.
	Lines   *PeakLines `json:"lines_at_peak,omitempty"`
	NoLines NoLines    `json:"lines_unknown,omitempty"`
}

// Who is who ran it, and what. The tag see is as in model.Process.
type Who struct {
	UID       int    `json:"uid"` // -1: not known
	User      string `json:"user,omitempty"`
	Name      string `json:"name,omitempty"`
	Command   string `json:"command,omitempty" see:"past"` // arguments joined by blanks
	Container string `json:"container,omitempty"`
	Unit      string `json:"systemd_unit,omitempty"`
	Job       *Job   `json:"job,omitempty"`
	Release   string `json:"release,omitempty"` // of tt-metal or ttnn
	FullName  string `json:"full_name,omitempty"`
	TTY       string `json:"tty,omitempty"`
	SSH       string `json:"ssh_from,omitempty" see:"owner"`
	Dir       string `json:"directory,omitempty" see:"owner"`
}

// Job is the job of a scheduler that a run belongs to.
type Job struct {
	Kind      string          `json:"kind"` // JobSlurm or JobPod
	ID        string          `json:"id"`   // of a pod: its uid
	Step      string          `json:"step,omitempty"`
	Name      string          `json:"name,omitempty" see:"owner"`
	Namespace string          `json:"namespace,omitempty"`
	From      model.JobSource `json:"from,omitempty"` // how that is known
}

// The kinds of jobs.
const (
	JobSlurm = "slurm"
	JobPod   = "pod"
)

// Process is one that the run had at a device.
type Process struct {
	PID        int       `json:"pid"`
	StartTicks uint64    `json:"start_ticks"`
	Parent     int       `json:"ppid,omitempty"`
	Start      time.Time `json:"start,omitzero"`
	Name       string    `json:"name"`
	Failures   uint64    `json:"allocation_failures,omitempty"`
	// Ledger is what its own ledger says; nil: it kept none, or the account is of
	// snapshots. Only the account of ttmon run has it.
	Ledger *ProcessLedger `json:"ledger,omitempty"`
}

// ProcessLedger is what the ledger of a process says of it.
type ProcessLedger struct {
	Release string `json:"release,omitempty"`
	Running bool   `json:"running,omitempty"` // when the program itself had ended
	Killed  bool   `json:"killed,omitempty"`  // it did not come to its end in good order
	Stacks  bool   `json:"stacks,omitempty"`  // call sites were recorded
	Lost    uint64 `json:"lost,omitempty"`    // events that found no room: figures are too low
	Unsure  bool   `json:"unsure,omitempty"`  // events contradicted each other, or lists were found late
	// PerCoreL1 says that an allocator of it kept L1 per core (HYBRID): there is no
	// figure of it, nor of requests that it refused.
	PerCoreL1 bool     `json:"per_core_l1,omitempty"`
	Devices   []Device `json:"devices"` // what it held by itself
}

// Failures are the requests of a run for device memory that failed, as far as
// ttmond saw them: Count is a lower bound.
type Failures struct {
	Count uint64    `json:"count"`
	Last  time.Time `json:"last,omitzero"`     // when the last one failed
	ID    string    `json:"failure,omitempty"` // of its record: ttmon why
	Pool  string    `json:"pool,omitempty"`    // that it asked for
	Clash bool      `json:"clash,omitempty"`   // circular buffers reached into a buffer of L1
}

// EndKind is how a run ended. The set is closed; words has the words.
type EndKind string

// The ways to end.
const (
	Running EndKind = "running" // it has not
	Exited  EndKind = "exited"  // with Code, where that is known
	Killed  EndKind = "killed"  // by Signal
	Closed  EndKind = "closed"  // the process lives on without a device
	Gone    EndKind = "gone"    // it has no device any more; whether it exited is not known
	Unseen  EndKind = "unseen"  // while nothing watched: between Last and At
)

// UnknownExit is why the exit status of a run is not known. The set is closed.
type UnknownExit string

// The reasons.
const (
	OldKernel  UnknownExit = "old_kernel"  // before 6.15 Linux gives it to the parent only
	OnlyParent UnknownExit = "only_parent" // it was not watched in time to ask the kernel
)

// Ending is how a run ended.
type Ending struct {
	Kind   EndKind   `json:"kind"`
	At     time.Time `json:"at,omitzero"` // at most so late; zero while it runs
	Code   *int      `json:"exit_code,omitempty"`
	Signal int       `json:"signal,omitempty"`
	// Unknown is why neither is known of a run that exited.
	Unknown UnknownExit `json:"exit_unknown,omitempty"`
	// OutOfMemory: the kernel killed it because the host or its control group had
	// no memory left.
	OutOfMemory bool `json:"oom_killed,omitempty"`
	// Reset: a device of it was being reset when it ended, and it did not exit in good
	// order nor was it stopped by a person or a scheduler.
	Reset bool `json:"device_reset,omitempty"`
	// NoRoom: it failed right after a request for device memory had; Run.Failures
	// has which.
	NoRoom bool `json:"no_room,omitempty"`
	// Text says it in words, with what the run left. Only answers have it.
	Text string `json:"text,omitempty"`
}

// ExitCode is that of a shell for such an end: its own, or 128 and the signal.
func (e *Ending) ExitCode() int {
	switch {
	case e.Signal != 0:
		return 128 + e.Signal
	case e.Code != nil:
		return *e.Code
	}
	return 0
}

// Failed reports whether the run is known to have ended badly.
func (e *Ending) Failed() bool {
	return e.Kind == Killed || e.OutOfMemory || e.Code != nil && *e.Code != 0
}

const (
	// BlameWithin is how long after a failed allocation the end of a run that failed
	// is put down to it: devices are closed first, and the end may be noticed late.
	BlameWithin = 5 * time.Second
	// MentionWithin is how long after it both are said as what they are: one after
	// the other.
	MentionWithin = 30 * time.Second
)

// Blame finds out whether the run ended because a request for device memory
// failed, and reports whether that is new.
func (r *Run) Blame() bool {
	if r.End.NoRoom {
		return false
	}
	after, ok := r.failedAfter()
	r.End.NoRoom = ok && after <= BlameWithin
	return r.End.NoRoom
}

// FailedAfter is how long after a failed allocation the run failed, where that is
// not long but too long to be the cause.
func (r *Run) FailedAfter() (after time.Duration, ok bool) {
	after, ok = r.failedAfter()
	return after, ok && !r.End.NoRoom && after > BlameWithin && after <= MentionWithin
}

// failedAfter is how long after its last failed allocation the run failed. A signal
// by which people and schedulers end programs says nothing about the program.
func (r *Run) failedAfter() (after time.Duration, ok bool) {
	f, e := r.Failures, &r.End
	if f == nil || f.Count == 0 || !e.Failed() || e.OutOfMemory || e.Stopped() {
		return 0, false
	}
	return e.At.Sub(f.Last), true
}

// Stopped reports whether the run was ended by a signal that people and schedulers
// send.
func (e *Ending) Stopped() bool {
	switch unix.Signal(e.Signal) {
	case unix.SIGINT, unix.SIGTERM, unix.SIGKILL, unix.SIGHUP:
		return true
	}
	return false
}

// Stat is a value over the time in which it was known.
type Stat struct {
	Mean    float64   `json:"mean"`
	Max     float64   `json:"max"`
	MaxAt   time.Time `json:"max_at"`
	Seconds float64   `json:"known_s"`
}

// Device is what the run took of a device. Power, heat and traffic are the whole
// device's, while the run had it open: Shared says for how long it was not alone.
type Device struct {
	Index  int     `json:"index"` // -1: its chips are behind no device of this host
	BusID  string  `json:"bus_id,omitempty"`
	Board  string  `json:"board,omitempty"`
	ASICID string  `json:"asic_id,omitempty"`
	ChipID string  `json:"chip_id,omitempty"` // of its only chip, as Chip.ID
	Open   float64 `json:"open_s"`            // so long the run was seen to have it open
	Shared float64 `json:"shared_s,omitempty"`

	Pools map[string]Pool `json:"memory"` // by pool; without those that no source accounts for
	Chips []Chip          `json:"chips,omitempty"`
	// Together is the most that this and other runs of its job held of the device at the
	// same time, by pool; nil: no other run of its job had it open meanwhile.
	Together map[string]Peak `json:"job_memory,omitempty"`

	Power       *Stat   `json:"power_w,omitempty"`
	Energy      float64 `json:"energy_j,omitempty"` // over the seconds in which power was known
	Temperature *Stat   `json:"temperature_c,omitempty"`
	Clock       *Stat   `json:"aiclk_mhz,omitempty"`
	Activity    *Stat   `json:"activity_ratio,omitempty"` // an estimate
	PCIe        *PCIe   `json:"pcie,omitempty"`
	// Trouble is how many seconds the device was in a condition that is none of
	// ok, by its kind: throttled, hot, hung, ….
	Trouble map[model.ConditionKind]float64 `json:"trouble_s,omitempty"`
	Resets  int                             `json:"resets,omitempty"` // under the run
	Work    []Work                          `json:"work,omitempty"`   // by process and chip
	// Partial is why programs of the run on the device were not reported, where
	// some were not.
	Partial model.WorkCause `json:"work_partial,omitempty"`
}

// Chip is what the run held on one chip of a device with several, or of no device of
// this host.
type Chip struct {
	ID string `json:"id"` // UMD's unique id, in decimal; empty: it could not be told
	// Logical is the number that the program gives it, as its ledger has it.
	Logical *int            `json:"logical,omitempty"`
	Name    string          `json:"name,omitempty"` // of the chip on its board: L, R
	Pools   map[string]Pool `json:"memory"`
}

// AllChips are the chips of the device that the run used: its only one has the
// device's memory.
func (d *Device) AllChips() []Chip {
	if len(d.Chips) > 0 {
		return d.Chips
	}
	return []Chip{{ID: d.ChipID, Pools: d.Pools}}
}

// Chips are those of the run's devices.
func (r *Run) Chips() iter.Seq2[*Device, *Chip] {
	return func(yield func(*Device, *Chip) bool) {
		for i := range r.Devices {
			list := r.Devices[i].AllChips()
			for k := range list {
				if !yield(&r.Devices[i], &list[k]) {
					return
				}
			}
		}
	}
}

// NewDevice begins the account of a device, as a snapshot has it.
func NewDevice(s *model.Snapshot, index int) Device {
	x := Device{Index: index, Pools: map[string]Pool{}}
	d := s.Device(index)
	if d == nil {
		return x
	}
	x.BusID, x.Board, x.ASICID = d.BusID, d.Board.V, d.ASICID.V
	if len(d.Chips) == 1 {
		if id, known := d.Chips[0].ID.Get(); known {
			x.ChipID = strconv.FormatUint(id, 10)
		}
	}
	return x
}

// PCIe is the traffic of a device while the run had it open.
type PCIe struct {
	ToDevice   uint64 `json:"to_device_bytes"`
	FromDevice uint64 `json:"from_device_bytes"`
	Bound      string `json:"bound"` // at_least: the counters began again, or were not read for a while
}

// Neighbour is another run that had a device of this one open at the same time.
type Neighbour struct {
	ID      uint64  `json:"id"`
	UID     int     `json:"uid"`
	User    string  `json:"user,omitempty"`
	Name    string  `json:"name,omitempty"`
	Devices []int   `json:"devices"`
	Seconds float64 `json:"seconds"`
}

// Left is what a dead process of the run left in tt-metal's accounting.
type Left struct {
	PID    int               `json:"pid"`
	Region string            `json:"region"`
	Device int               `json:"device"` // -1: behind none of this host's devices
	Bytes  map[string]uint64 `json:"bytes"`  // by pool
	Bound  string            `json:"bound"`  // the worst of them
	Text   string            `json:"text,omitempty"`
}

// Pool is what the run held of a pool over all its devices.
func (r *Run) Pool(p model.Pool) Pool { return r.Pools[p.String()] }

// Took is how long the run has taken.
func (r *Run) Took() time.Duration {
	end := r.Last
	if r.End.Kind != Running && r.End.Kind != Unseen && r.End.At.After(end) {
		end = r.End.At
	}
	return max(end.Sub(r.Start), 0)
}

// Energy is what its devices took while it had them open, in joules; known is false
// where no power was. It is made of means, and as unsure as they are: samples of a
// part of the time, in which others may have used the devices, too.
func (r *Run) Energy() (joules float64, known bool) {
	for i := range r.Devices {
		if d := &r.Devices[i]; d.Power != nil && d.Power.Seconds > 0 {
			joules, known = joules+d.Energy, true
		}
	}
	return joules, known
}

// Shared is for how many seconds a device of the run was open to another run,
// too: the longest of its devices.
func (r *Run) Shared() (seconds float64) {
	for i := range r.Devices {
		seconds = max(seconds, r.Devices[i].Shared)
	}
	return seconds
}

// Trouble is for how many seconds a device of the run was in a condition: the
// longest of its devices.
func (r *Run) Trouble(k model.ConditionKind) (seconds float64) {
	for i := range r.Devices {
		seconds = max(seconds, r.Devices[i].Trouble[k])
	}
	return seconds
}

// LeftBytes is what the run left, over all pools.
func (r *Run) LeftBytes() (n uint64, bound model.Bound) {
	for i := range r.Left {
		for _, b := range r.Left[i].Bytes {
			n += b
		}
		bound = max(bound, model.ParseBound(r.Left[i].Bound))
	}
	return n, bound
}

// Indexes are those of the run's devices on this host.
func (r *Run) Indexes() (list []int) {
	for i := range r.Devices {
		if x := r.Devices[i].Index; x >= 0 {
			list = append(list, x)
		}
	}
	return list
}

// Clone is a copy that shares nothing that changes.
func (r *Run) Clone() Run {
	c := *r
	c.Processes, c.Left = slices.Clone(r.Processes), slices.Clone(r.Left)
	c.Pools, c.Failures = maps.Clone(r.Pools), copied(r.Failures)
	c.Neighbours = slices.Clone(r.Neighbours)
	for i := range c.Neighbours {
		c.Neighbours[i].Devices = slices.Clone(c.Neighbours[i].Devices)
	}
	c.Devices = slices.Clone(r.Devices)
	for i := range c.Devices {
		d := &c.Devices[i]
		d.Pools, d.Together, d.Trouble = maps.Clone(d.Pools), maps.Clone(d.Together), maps.Clone(d.Trouble)
		d.Power, d.Temperature, d.Clock, d.Activity, d.PCIe = copied(d.Power), copied(d.Temperature), copied(d.Clock), copied(d.Activity), copied(d.PCIe)
		d.Work = slices.Clone(d.Work)
		d.Chips = slices.Clone(d.Chips)
		for k := range d.Chips {
			d.Chips[k].Pools = maps.Clone(d.Chips[k].Pools)
		}
	}
	return c
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}
