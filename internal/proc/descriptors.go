package proc

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// descriptors remembers which processes hold device nodes. The kernel needs
// about 4 µs for each descriptor that is looked at, and there may be a hundred
// thousand; so a process is looked through again only if the number of its
// descriptors has changed, and every rescanAfter because one descriptor may
// have taken the place of another.
type descriptors struct {
	nodes nodes
	byPID map[int]*descriptorTable
	sweep uint64
	// sized: st_size of /proc/<pid>/fd is the number of descriptors (Linux
	// 6.2). Before, it is 0 and every process is looked through every time.
	sized bool
	// looked is how many descriptors of each user's processes the sweep has
	// looked at, of limit.
	looked map[uint32]int
	limit  int

	pids, fds []byte // directory entries
	link      []byte
}

// descriptorTable is what was found in one process.
type descriptorTable struct {
	stamp  tableStamp
	kernel bool      // a kernel thread: has no descriptors, ever
	denied bool      // we may not look
	due    time.Time // of the next look at an unchanged table
	holds  []hold    // as of the last whole look, or what was found so far
	whole  bool      // there was one
	// appends says of devices whether all of its descriptors were opened with
	// O_APPEND, where that was asked since the last look.
	appends map[int]bool
	sweep   uint64

	// A long table is looked through in several sweeps.
	uid   uint32
	next  int64  // where the look goes on; 0: at the beginning
	in    string // of which directory
	found []hold // so far
}

// tableStamp recognises an unchanged table. The inode is the process's own:
// a later process with the same pid has another one.
type tableStamp struct {
	ino, size uint64
	mtime     unix.StatxTimestamp
}

// hold is one descriptor of a device node.
type hold struct{ device, fd int }

// rescanAfter bounds how long a descriptor that took another one's place can
// go unnoticed. Half of it is spread over the processes, so that no sweep
// has to look through all of them but the first.
const rescanAfter = 30 * time.Second

// maxLooked is how many descriptors of a user's processes one sweep looks at:
// 60 ms. A process that may not be traced belongs to root, whoever runs it, so
// root's have a limit, too.
const (
	maxLooked     = 16 << 10
	maxLookedRoot = 4 // times that
)

// left is how many more of a user's descriptors the sweep may look at.
func (d *descriptors) left(uid uint32) int {
	limit := d.limit
	if limit == 0 {
		limit = maxLooked
	}
	if uid == 0 {
		limit *= maxLookedRoot
	}
	return limit - d.looked[uid]
}

// maxHolds is how many descriptors of devices are looked at to see whether they
// are still there; of a process that has more, all are.
const maxHolds = 1024

// countsDescriptors tells whether this kernel gives the number of descriptors
// as the size of /proc/<pid>/fd. We certainly have some.
func countsDescriptors(root hostfs.Root) bool {
	st, err := root.Stat("/proc/self/fd")
	if err != nil {
		st, err = hostfs.At("/").Stat("/proc/self/fd")
	}
	return err == nil && st.Size > 0
}

func (d *descriptors) begin(root hostfs.Root) {
	d.nodes.root = root
	d.nodes.refresh()
	d.sweep++
	if d.looked == nil {
		d.looked = map[uint32]int{}
	}
	clear(d.looked)
	if d.link == nil {
		d.pids, d.fds, d.link = make([]byte, 32<<10), make([]byte, 32<<10), make([]byte, 4096)
	}
}

// mode says how hard look looks.
type mode int

const (
	ifChanged mode = iota
	always         // even an unchanged table
	never          // no time left: trust even a changed one
)

var errSkipped = errors.New("no time left to look")

// look brings the table of a process up to date. Its error is errSkipped, the
// process's end (noProcess), or ours (no descriptor left to look with). proc
// is the open /proc.
func (d *descriptors) look(proc hostfs.Dir, pid int, now time.Time, m mode) (*descriptorTable, error) {
	var path [32]byte
	name := append(strconv.AppendInt(path[:0], int64(pid), 10), "/fd"...)
	t := d.byPID[pid]
	var st unix.Statx_t
	switch err := proc.Stat(string(name), &st); {
	case err == unix.EACCES || err == unix.EPERM: // hidepid=1
		t = &descriptorTable{denied: true, sweep: d.sweep}
		d.byPID[pid] = t
		return t, nil
	case err != nil:
		delete(d.byPID, pid)
		return nil, err
	}
	if !d.sized {
		st.Size = 0
	}
	stamp := tableStamp{st.Ino, st.Size, st.Mtime}
	known := t != nil && t.stamp == stamp && t.next == 0
	if known && t.kernel || known && m != always && d.unchanged(proc, pid, t, now, m) {
		t.sweep = d.sweep
		return t, nil
	}
	if m == never {
		if t != nil {
			t.sweep = d.sweep
		}
		return t, errSkipped
	}
	if t == nil || t.stamp.ino != stamp.ino {
		t = &descriptorTable{}
		d.byPID[pid] = t
	}
	if t.next == 0 {
		t.stamp, t.uid = stamp, st.Uid
	}
	t.sweep = d.sweep
	t.due = now.Add(rescanAfter/2 + time.Duration(pid%64)*(rescanAfter/2)/64)
	err := d.scan(proc, pid, t)
	if err != nil && !errors.Is(err, errSkipped) {
		delete(d.byPID, pid) // half a look must not pass for a whole one
		return nil, err
	}
	return t, err
}

// unchanged tells whether a table of unchanged size can be trusted: it was
// looked through lately, and what it held is still held.
func (d *descriptors) unchanged(proc hostfs.Dir, pid int, t *descriptorTable, now time.Time, m mode) bool {
	if m != never && (!d.sized || now.After(t.due) || len(t.holds) > maxHolds) {
		return false
	}
	for _, h := range t.holds[:min(len(t.holds), maxHolds)] {
		var path [48]byte
		name := append(strconv.AppendInt(path[:0], int64(pid), 10), "/fd/"...)
		name = strconv.AppendInt(name, int64(h.fd), 10)
		var st unix.Statx_t
		if proc.Stat(string(name), &st) == nil && d.nodes.stands(h.device, &st) {
			continue
		}
		n, err := proc.Readlink(string(name), d.link)
		if err != nil {
			return false
		}
		if device, ok := d.nodes.match(proc, string(name), d.link[:n]); !ok || device != h.device {
			return false
		}
	}
	return true
}

// scan looks through all descriptors of a process, or goes on where the sweep
// before had to stop. Its error is errSkipped where this one has to.
func (d *descriptors) scan(proc hostfs.Dir, pid int, t *descriptorTable) error {
	if t.next != 0 {
		_, err := d.scanDir(proc, t.in, t)
		return err
	}
	t.denied, t.kernel = false, false
	own := strconv.Itoa(pid)
	if !d.sized || t.stamp.size > 0 {
		n, err := d.scanDir(proc, own+"/fd", t)
		if err == unix.EACCES || err == unix.EPERM {
			t.finish(nil)
			return d.deny(proc, own, t)
		}
		if n > 0 || err != nil {
			return err
		}
	}
	thread, err := d.livingThread(proc, own, t)
	if thread == "" || err != nil {
		t.finish(nil)
		return err
	}
	_, err = d.scanDir(proc, own+"/task/"+thread+"/fd", t)
	if err == unix.EACCES || err == unix.EPERM {
		t.finish(nil)
		t.denied, err = true, nil
	}
	return err
}

// finish ends a look with what it found.
func (t *descriptorTable) finish(found []hold) {
	t.holds = append(t.holds[:0], found...)
	t.found, t.next, t.whole, t.appends = t.found[:0], 0, true, nil
}

// scanDir looks through a directory of descriptors, as far as the sweep may, and
// counts them.
func (d *descriptors) scanDir(proc hostfs.Dir, path string, t *descriptorTable) (count int, err error) {
	left := d.left(t.uid)
	if left <= 0 {
		return 0, errSkipped
	}
	fds, err := proc.OpenDir(path)
	if err != nil {
		t.next = 0
		return 0, err
	}
	defer fds.Close()
	if t.next == 0 {
		t.found = t.found[:0]
	}
	t.in = path
	t.next, err = fds.EachFrom(t.next, d.fds, func(name []byte) bool {
		count++
		n, err := fds.Readlink(string(name), d.link)
		if err != nil {
			t.denied = t.denied || err == unix.EACCES
			return count < left // closed meanwhile
		}
		if device, ok := d.nodes.match(fds, string(name), d.link[:n]); ok {
			fd, _ := parseUint(name)
			t.found = append(t.found, hold{device, int(fd)})
		}
		return count < left
	})
	d.looked[t.uid] += count
	switch {
	case err != nil:
	case t.next == 0:
		t.finish(t.found)
	default:
		if err = errSkipped; !t.whole {
			t.holds = append(t.holds[:0], t.found...)
		}
	}
	return count, err
}

// deny remembers that we may not look, unless there is nothing to see: the
// kernel guards the empty tables of its own threads and of zombies as well.
func (d *descriptors) deny(proc hostfs.Dir, pid string, t *descriptorTable) error {
	var buf [1024]byte
	n, err := proc.Read(pid+"/stat", buf[:])
	if err != nil {
		return err
	}
	s, err := ParseStat(buf[:n])
	t.kernel = s.KernelThread()
	t.denied = err != nil || !t.kernel && !s.Gone()
	return nil
}

// livingThread is for processes without descriptors of their own: kernel
// threads, zombies, and processes whose first thread has ended while others
// go on with its descriptors. Of those it names one; "" means nothing is held.
func (d *descriptors) livingThread(proc hostfs.Dir, pid string, t *descriptorTable) (string, error) {
	var buf [1024]byte
	n, err := proc.Read(pid+"/stat", buf[:])
	if err != nil {
		return "", err
	}
	s, err := ParseStat(buf[:n])
	t.kernel = err == nil && s.KernelThread()
	if err != nil || s.State != 'Z' || s.Threads <= 1 {
		return "", nil
	}
	tasks, err := proc.OpenDir(pid + "/task")
	if err != nil {
		return "", err
	}
	defer tasks.Close()
	thread := ""
	err = tasks.Each(d.fds, func(name []byte) bool {
		if string(name) != pid {
			thread = string(name)
		}
		return thread == ""
	})
	return thread, err
}

// endSweep forgets the processes that the sweep has not met.
func (d *descriptors) endSweep() {
	for pid, t := range d.byPID {
		if t.sweep != d.sweep {
			delete(d.byPID, pid)
		}
	}
}

// forget drops the tables that many calls have had no use for: those of
// processes which were checked once, or of a scan that was needed long ago.
func (d *descriptors) forget() {
	for pid, t := range d.byPID {
		if d.sweep-t.sweep > 64 {
			delete(d.byPID, pid)
		}
	}
}
