package proc

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// Reader reads the processes of one host. It is not safe for concurrent use:
// each goroutine that wants one makes its own.
type Reader struct {
	root hostfs.Root

	view       view
	simulation simulation
	boot       time.Time // when the kernel started, by the wall clock
	sweep      uint64
	known      map[int]*Process
	keeping    int // processes that have files kept open
	users      userNames
	pods       podNames
	machine    machine

	descriptors descriptors
	openers     map[openerKey]*opener // of the last Resolve
	probeAt     time.Time             // when to ask again for fdinfo's drm- keys

	buf  []byte   // of small files, reused
	keep [][]byte // parts of the paths of mappings that somebody asks for

	// Guard is for what may block; its patience is that of one sweep.
	Guard *Guard
}

// New returns a Reader of the host at root.
func New(root hostfs.Root) *Reader {
	v := lookAtProc(root)
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
		keep:        [][]byte{[]byte(nodeDir)},
		Guard:       NewGuard(patience),
	}
}

// patience is how long the files of one sweep may block, all together.
const patience = 200 * time.Millisecond

// Begin begins a sweep: what is read from now on is read anew, once. The
// methods that answer for the whole of a sweep (Resolve, Describe) begin one
// themselves; whoever shares the Reader with them afterwards does not.
func (r *Reader) Begin() {
	r.sweep++
	r.Guard.begin()
	// Start times are wall clock times: they move when the clock is set, and
	// not with the few microseconds between two readings of two clocks.
	if boot := bootTime(r.root, true); r.view.live && boot.Sub(r.boot).Abs() > 20*time.Millisecond {
		r.boot = boot
	}
	r.End()
}

// End ends a sweep: the processes that nobody holds are closed. The next Begin
// does so, too; who is not to begin soon ends.
func (r *Reader) End() {
	for _, p := range r.known {
		if p.holds == 0 {
			r.close(p)
		}
	}
}

// Close closes the processes that are open, held or not.
func (r *Reader) Close() {
	for _, p := range r.known {
		r.close(p)
	}
	clear(r.known)
}

// bootTime is when clock tick 0 was. The clocks tell it to the millisecond
// and for free; /proc/stat only to the second, and at the price of summing up
// every interrupt of every core. So the file is read only where the tree is
// not this kernel's: in a recorded or made-up one.
func bootTime(root hostfs.Root, live bool) time.Time {
	if !live {
		if b, err := root.Read("/proc/stat", 1<<20); err == nil {
			if t, ok := parseBootTime(b); ok {
				return t
			}
		}
	}
	return bootByClocks().Round(time.Millisecond)
}

// bootByClocks reads two clocks, and again where something came between: on a
// busy machine that may be long.
func bootByClocks() (boot time.Time) {
	closest := time.Hour
	for range 10 {
		var since unix.Timespec
		now := time.Now()
		if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
			return time.Time{}
		}
		if between := time.Since(now); between < closest {
			closest, boot = between, now.Add(-time.Duration(since.Nano()))
		}
		if closest < time.Millisecond {
			break
		}
	}
	return boot
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
