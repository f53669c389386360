package proc

import (
	"errors"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
)

// descriptors remembers which processes hold device nodes. The kernel needs
// about 4 µs to resolve each descriptor, and there may be a hundred thousand;
// so a process is scanned again only if the number of its descriptors has
// changed, and every rescanAfter because one descriptor may have replaced
// another.
type descriptors struct {
	nodes nodes
	byPID map[int]*descriptorTable
	sweep uint64
	// sized: st_size of /proc/<pid>/fd is the number of descriptors (Linux 6.2).
	// Before, it is 0 and every process is scanned every time.
	sized bool
	// scanned is how many descriptors of each user's processes the sweep has read,
	// of limit.
	scanned map[uint32]int
	limit   int

	pids, fds []byte // directory entries
	link      []byte
}

// descriptorTable is the result of scanning one process.
type descriptorTable struct {
	stamp  tableStamp
	kernel bool      // a kernel thread: never has descriptors
	denied bool      // we may not read it
	due    time.Time // when to scan again, even if unchanged
	holds  []hold    // of the last whole scan, or what was found so far
	whole  bool      // there was a whole scan
	// appends says by device whether all its descriptors were opened with
	// O_APPEND, where that was checked since the last scan.
	appends map[int]bool
	sweep   uint64

	// A long table is scanned in several sweeps.
	uid   uint32
	next  int64  // where the scan continues; 0: at the beginning
	dir   string // the directory being scanned
	found []hold // so far
}

// tableStamp identifies an unchanged table. The inode belongs to the process: a
// later process with the same pid has another one.
type tableStamp struct {
	ino, size uint64
	mtime     unix.StatxTimestamp
}

// hold is one descriptor of a device node.
type hold struct{ device, fd int }

// rescanAfter bounds how long a descriptor that replaced another can go
// unnoticed. Half of it is spread over the processes, so that only the first
// sweep has to scan all of them.
const rescanAfter = 30 * time.Second

// maxScanned is how many descriptors of a user's processes one sweep reads: 60
// ms. A process that may not be traced belongs to root, regardless of the user
// that runs it, so root's have a limit, too.
const (
	maxScanned     = 16 << 10
	maxScannedRoot = 4 // times that
)

// scansLeft is how many more of a user's descriptors the sweep may read.
func (d *descriptors) scansLeft(uid uint32) int {
	limit := d.limit
	if limit == 0 {
		limit = maxScanned
	}
	if uid == 0 {
		limit *= maxScannedRoot
	}
	return limit - d.scanned[uid]
}

// maxHolds is how many known descriptors of devices are checked one by one; a
// process that has more is scanned again.
const maxHolds = 1024

// countsDescriptors reports whether this kernel gives the number of descriptors
// as the size of /proc/<pid>/fd. This process always has some.
func countsDescriptors(root hostfs.Root) bool {
	st, err := root.Stat("/proc/self/fd")
	if err != nil {
		st, err = hostfs.At("/").Stat("/proc/self/fd")
	}
	return err == nil && st.Size > 0
}

func (d *descriptors) startSweep(root hostfs.Root) {
	d.nodes.root = root
	d.nodes.refresh()
	d.sweep++
	if d.scanned == nil {
		d.scanned = map[uint32]int{}
	}
	clear(d.scanned)
	if d.link == nil {
		d.pids, d.fds, d.link = make([]byte, 32<<10), make([]byte, 32<<10), make([]byte, 4096)
	}
}

// scanMode says when refreshTable scans a table.
type scanMode int

const (
	ifChanged scanMode = iota
	always             // even an unchanged table
	never              // no time left: trust even a changed one
)

var errSkipped = errors.New("no time left to scan")

// refreshTable brings the table of a process up to date. Its error is
// errSkipped, the process's exit (noProcess), or ours (no descriptor left to
// open it with). proc is the open /proc.
func (d *descriptors) refreshTable(proc hostfs.Dir, pid int, now time.Time, m scanMode) (*descriptorTable, error) {
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
		delete(d.byPID, pid) // half a scan must not pass for a whole one
		return nil, err
	}
	return t, err
}

// unchanged reports whether a table of unchanged size can be trusted: it was
// scanned lately, and the devices it held are still held.
func (d *descriptors) unchanged(proc hostfs.Dir, pid int, t *descriptorTable, now time.Time, m scanMode) bool {
	if m != never && (!d.sized || now.After(t.due) || len(t.holds) > maxHolds) {
		return false
	}
	for _, h := range t.holds[:min(len(t.holds), maxHolds)] {
		var path [48]byte
		name := append(strconv.AppendInt(path[:0], int64(pid), 10), "/fd/"...)
		name = strconv.AppendInt(name, int64(h.fd), 10)
		var st unix.Statx_t
		if proc.Stat(string(name), &st) == nil && d.nodes.isNode(h.device, &st) {
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

// scan reads all descriptors of a process, or continues where the previous
// sweep stopped. Its error is errSkipped where this sweep has to stop.
func (d *descriptors) scan(proc hostfs.Dir, pid int, t *descriptorTable) error {
	if t.next != 0 {
		_, err := d.scanDir(proc, t.dir, t)
		return err
	}
	t.denied, t.kernel = false, false
	own := strconv.Itoa(pid)
	if !d.sized || t.stamp.size > 0 {
		n, err := d.scanDir(proc, own+"/fd", t)
		if err == unix.EACCES || err == unix.EPERM {
			t.finish(nil)
			return d.checkDenied(proc, own, t)
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

// finish ends a scan with what it found.
func (t *descriptorTable) finish(found []hold) {
	t.holds = append(t.holds[:0], found...)
	t.found, t.next, t.whole, t.appends = t.found[:0], 0, true, nil
}

// scanDir reads a directory of descriptors, up to the sweep's limit, and counts
// them.
func (d *descriptors) scanDir(proc hostfs.Dir, path string, t *descriptorTable) (count int, err error) {
	left := d.scansLeft(t.uid)
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
	t.dir = path
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
	d.scanned[t.uid] += count
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

// checkDenied records that we may not read a table, unless it is certainly
// empty: the kernel denies those of its own threads and of zombies as well.
func (d *descriptors) checkDenied(proc hostfs.Dir, pid string, t *descriptorTable) error {
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
// threads, zombies, and processes whose first thread has exited while others
// still use its descriptors. It returns one of those threads; "" means nothing
// is held.
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

// dropUnseen drops the processes that the sweep has not seen.
func (d *descriptors) dropUnseen() {
	for pid, t := range d.byPID {
		if t.sweep != d.sweep {
			delete(d.byPID, pid)
		}
	}
}

// dropUnused drops the tables that were not needed for many sweeps: those of
// processes that were checked once, or of a scan long ago.
func (d *descriptors) dropUnused() {
	for pid, t := range d.byPID {
		if d.sweep-t.sweep > 64 {
			delete(d.byPID, pid)
		}
	}
}
