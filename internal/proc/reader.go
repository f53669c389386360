package proc

import (
	"fmt"
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

	view  view
	boot  time.Time // when the kernel started, by the wall clock
	known map[int]*process
	users userNames
	pods  podNames

	descriptors descriptors
	openers     map[openerKey]*opener // of the last Resolve
	probeAt     time.Time             // when to ask again for fdinfo's drm- keys

	buf  []byte // of small files, reused
	maps []byte // of /proc/<pid>/maps, reused

	// patience is how long one call may wait, all in all, for files that
	// the kernel serves under a process's memory lock.
	patience time.Duration
	left     time.Duration      // of patience, in this call
	stuck    map[identity]stuck // reads that were given up
}

// identity is what a process is: pids are reused.
type identity struct {
	pid   int
	start uint64 // clock ticks after boot
}

// New returns a Reader of the host at root.
func New(root hostfs.Root) *Reader {
	return &Reader{
		root:        root,
		view:        lookAtProc(root),
		boot:        bootTime(root),
		known:       map[int]*process{},
		users:       userNames{root: root},
		pods:        podNames{root: root},
		descriptors: descriptors{byPID: map[int]*descriptorTable{}, sized: countsDescriptors(root)},
		buf:         make([]byte, 16<<10),
		patience:    150 * time.Millisecond,
		stuck:       map[identity]stuck{},
	}
}

// bootTime is when clock tick 0 was. The clocks tell it to the millisecond
// and for free; /proc/stat only to the second, and at the price of summing up
// every interrupt of every core. So the file is read only where the tree is
// not this kernel's: in a recorded or made-up one.
func bootTime(root hostfs.Root) time.Time {
	if !isProcfs(root) {
		if b, err := root.Read("/proc/stat", 1<<20); err == nil {
			if t, ok := parseBootTime(b); ok {
				return t
			}
		}
	}
	var since unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &since); err != nil {
		return time.Time{}
	}
	return time.Now().Add(-time.Duration(since.Nano())).Round(time.Millisecond)
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

// startTime is the wall clock at a tick; zero where the boot time is unknown.
func (r *Reader) startTime(ticks uint64) time.Time {
	if r.boot.IsZero() {
		return time.Time{}
	}
	return r.boot.Add(time.Duration(ticks) * (time.Second / ticksPerSecond))
}

// open opens /proc/<pid>, and with it pins the process.
func (r *Reader) open(pid int) (hostfs.Dir, error) {
	return r.root.OpenDir("/proc/" + strconv.Itoa(pid))
}

// Alive tells whether the process with this pid and start (StartTicks) is
// there. A zombie is not. It is for whoever keeps processes by identity; the
// error says that we may not look.
func (r *Reader) Alive(pid int, start uint64) (bool, error) {
	s, err := r.statOf(pid)
	switch {
	case noProcess(err) && r.concealed(pid) != "":
		return false, fmt.Errorf("looking for process %d: %w", pid, unix.EPERM)
	case noProcess(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("looking for process %d: %w", pid, err)
	}
	return s.Start == start && !s.Gone(), nil
}
