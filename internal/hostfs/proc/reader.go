package proc

import (
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Reader reads the processes of one host. It is not safe for concurrent use:
// each goroutine needs its own.
type Reader struct {
	root hostfs.Root

	view       view
	simulation simulation
	boot       time.Time // when the kernel started, by the wall clock
	sweep      uint64
	known      map[int]*Process
	keptOpen   int // processes that have files kept open
	users      userNames
	pods       podNames
	machine    machine

	descriptors descriptors
	openers     map[openerKey]*opener // of the last Resolve
	probeAt     time.Time             // when to probe again for fdinfo's drm- keys

	buf      []byte   // of small files, reused
	mapParts [][]byte // parts of the paths of mappings that Maps returns

	// Guard runs reads that may block; its timeout is shared by one sweep.
	Guard *Guard
}

// New returns a Reader of the host at root.
func New(root hostfs.Root) *Reader {
	v := inspectProc(root)
	return &Reader{
		root:        root,
		view:        v,
		simulation:  findSimulation(root),
		boot:        bootTime(root, v.live),
		sweep:       1,
		known:       map[int]*Process{},
		users:       userNames{root: root},
		pods:        podNames{root: root},
		descriptors: descriptors{byPID: map[int]*descriptorTable{}, sized: countsDescriptors(root)},
		buf:         make([]byte, 16<<10),
		mapParts:    [][]byte{[]byte(nodeDir)},
		Guard:       NewGuard(sweepTimeout),
	}
}

// sweepTimeout bounds how long the files of one sweep may block, in total.
const sweepTimeout = 200 * time.Millisecond

// StartSweep starts a sweep: each file is read again, once. Methods that cover
// a whole sweep (Resolve, Describe) start one themselves; callers that use the
// same Reader after them do not.
func (r *Reader) StartSweep() {
	r.sweep++
	r.Guard.resetTimeout()
	// Start times are wall clock times: they change when the clock is set, but not
	// by the few microseconds between reading two clocks.
	if boot := bootTime(r.root, true); r.view.live && boot.Sub(r.boot).Abs() > 20*time.Millisecond {
		r.boot = boot
	}
	r.EndSweep()
}

// EndSweep closes the processes without a Hold. The next StartSweep does so,
// too; call EndSweep when none follows soon.
func (r *Reader) EndSweep() {
	for _, p := range r.known {
		if p.holds == 0 {
			r.close(p)
		}
	}
}

// Close closes all open processes, with a Hold or without.
func (r *Reader) Close() {
	for _, p := range r.known {
		r.close(p)
	}
	clear(r.known)
}

// bootTime is the time of clock tick 0. The clocks give it to the millisecond
// at no cost; /proc/stat only to the second, after the kernel has summed up
// every interrupt of every core. So the file is read only for a recorded or
// synthetic tree.
func bootTime(root hostfs.Root, live bool) time.Time {
	if !live {
		if b, err := root.Read("/proc/stat", 1<<20); err == nil {
			if t, ok := parseBootTime(b); ok {
				return t
			}
		}
	}
	return time.Unix(0, BootTime()).Round(time.Millisecond)
}

func parseBootTime(b []byte) (time.Time, bool) {
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "btime "); ok {
			sec, err := strconv.ParseInt(strings.TrimSpace(rest), 10, 64)
			return time.Unix(sec, 0), err == nil
		}
	}
	return time.Time{}, false
}

// ticksPerSecond is the kernel's USER_HZ: the unit of times in /proc. It is
// part of the ABI and 100 on every architecture Go runs on, whatever CONFIG_HZ.
const ticksPerSecond = 100

// BootTime is when the kernel started, by the wall clock; zero if unknown.
func (r *Reader) BootTime() time.Time { return r.boot }

// StartTime is the wall clock at a tick, given when the kernel started; zero
// where that is unknown.
func StartTime(boot time.Time, ticks uint64) time.Time {
	if boot.IsZero() {
		return time.Time{}
	}
	return boot.Add(time.Duration(ticks) * (time.Second / ticksPerSecond))
}
