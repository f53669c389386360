package proc

import (
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Process is a process that a Reader knows. Its files are read through its
// directory below /proc, which stays open: a read never returns data of a later
// process with the same pid.
type Process struct {
	model.ProcessID
	Name     string // raw: programs choose it, and change it
	PPID     int
	UID      int // effective; −1 if unknown
	InnerPID int // its pid in its innermost pid namespace: what getpid returns to it

	dir        hostfs.Dir
	open       bool
	holds      int  // by Hold
	keepsFiles bool // stat and statm stay open
	files      struct{ stat, statm hostfs.Kept }

	sweep    uint64 // in which stat was read
	stat     Stat   // Comm is in Name
	statAt   time.Time
	statusAt time.Time

	maps      []Mapping
	mapsErr   error
	mapsSweep uint64 // in which maps was read

	// What Describe returns and rarely changes.
	describedAt time.Time
	cmdlineAt   time.Time
	cpu         cpuMeter
	compile     compileMeter
	cmdline     model.Reading[string]
	placement   placement
	environJob  environJob
	workDir     string
	lastUsed    time.Time // last described
}

// slowEvery is how often files that rarely change (status, cgroup) are read
// again, unless an exec is seen: another name, or another stack.
const slowEvery = 5 * time.Second

// titleEvery is how often cmdline is read again where the kernel shows an exec:
// for programs that overwrite their arguments with a title. Reading it may
// block, so it is the most expensive.
const titleEvery = 15 * time.Second

// Process returns the process that has a pid now. It is opened, and its stat
// read, once per sweep. The error is ESRCH or ENOENT for a pid that does not
// exist or is only a thread's.
func (r *Reader) Process(pid int) (*Process, error) {
	p := r.known[pid]
	if p != nil && p.open {
		err := r.Refresh(p)
		if err == nil {
			return p, nil
		}
		if !noProcess(err) {
			return nil, err
		}
		r.remove(p)
		p = nil
	}
	dir, err := r.root.OpenDir("/proc/" + strconv.Itoa(pid))
	if err != nil {
		return nil, err
	}
	next := &Process{ProcessID: model.ProcessID{PID: pid}, UID: -1, InnerPID: pid, dir: dir, open: true}
	if err := r.readStat(next); err != nil {
		dir.Close()
		return nil, err
	}
	if p != nil && p.StartTicks == next.StartTicks {
		if p.Name != next.Name || p.stat.Stack != next.stat.Stack {
			p.invalidate()
		}
		p.dir, p.open, p.sweep, p.stat, p.statAt, p.Name, p.PPID = dir, true, next.sweep, next.stat, next.statAt, next.Name, next.PPID
		next = p
	}
	if err := r.readStatus(next); err != nil {
		r.close(next)
		return nil, err
	}
	r.known[pid] = next
	return next, nil
}

// Size is the size of the address space in bytes, when stat was last read.
func (p *Process) Size() uint64 { return p.stat.Size }

// Refresh brings the name and the parent of a process up to date, once per
// sweep.
func (r *Reader) Refresh(p *Process) error {
	if p.sweep == r.sweep {
		return nil
	}
	name, stack := p.Name, p.stat.Stack
	if err := r.readStat(p); err != nil {
		return err
	}
	if p.Name != name || p.stat.Stack != stack {
		p.invalidate()
	}
	return r.readStatus(p)
}

// invalidate makes the next calls read everything again, because the process
// may have executed another program.
func (p *Process) invalidate() {
	p.statusAt, p.describedAt, p.cmdlineAt = time.Time{}, time.Time{}, time.Time{}
}

func (r *Reader) readStat(p *Process) error {
	n, err := p.readKept(&p.files.stat, "stat", r.buf)
	at := time.Now()
	if err != nil {
		return err
	}
	s, err := ParseStat(r.buf[:n])
	if err != nil {
		return err
	}
	if string(s.Comm) != p.Name {
		p.Name = string(s.Comm)
	}
	s.Comm = nil
	p.StartTicks, p.PPID, p.stat, p.statAt, p.sweep = s.Start, s.PPID, s, at, r.sweep
	return nil
}

func (r *Reader) readStatus(p *Process) error {
	if p.statAt.Sub(p.statusAt) < slowEvery {
		return nil
	}
	n, err := p.dir.Read("status", r.buf)
	if err != nil {
		return err
	}
	s := parseStatus(r.buf[:n])
	if s.TGID != 0 && s.TGID != p.PID {
		return threadError{}
	}
	p.UID, p.InnerPID, p.statusAt = s.UID, s.Inner(p.PID), p.statAt
	return nil
}

// readKept reads a file that every sweep reads, through a descriptor kept open
// if there is one.
func (p *Process) readKept(f *hostfs.Kept, name string, buf []byte) (int, error) {
	if p.keepsFiles {
		return p.dir.ReadKept(f, name, buf)
	}
	return p.dir.Read(name, buf)
}

// maxKeeping bounds how many processes have files kept open: any user can start
// many.
const maxKeeping = 512

// Hold keeps a process, and the files that every sweep reads, open from sweep
// to sweep, until Release is called as often. Others are closed when the next
// sweep starts.
func (r *Reader) Hold(p *Process) {
	p.holds++
	if !p.keepsFiles && p.open && r.keptOpen < maxKeeping && p.dir.IsProc() {
		p.keepsFiles = true
		r.keptOpen++
	}
}

// Release undoes a Hold.
func (r *Reader) Release(p *Process) {
	if p.holds--; p.holds == 0 && r.known[p.PID] != p {
		r.close(p)
	}
}

// Discard closes a process that the caller does not need, unless it is held or
// was described: a scan of thousands must not keep thousands open.
func (r *Reader) Discard(p *Process) {
	if p.holds == 0 && p.lastUsed.IsZero() {
		r.remove(p)
	}
}

// remove drops a process from the known ones, because it has exited or is not
// needed. To a caller that holds it, it has exited.
func (r *Reader) remove(p *Process) {
	if r.known[p.PID] == p {
		delete(r.known, p.PID)
	}
	if p.holds == 0 {
		r.close(p)
	}
}

func (r *Reader) close(p *Process) {
	if p.keepsFiles {
		p.files.stat.Close()
		p.files.statm.Close()
		p.keepsFiles = false
		r.keptOpen--
	}
	if p.open {
		p.dir.Close()
		p.open = false
	}
}

// Alive reports whether the process still has an address space. A zombie has
// none. Where only the first thread has exited, the others still have it.
func (p *Process) Alive() bool {
	var buf [16]byte
	n, err := p.readKept(&p.files.statm, "statm", buf[:])
	if err != nil || n == 0 {
		return false
	}
	return buf[0] != '0' || p.livingThread() != ""
}

// livingThread is a thread with memory, as a path below /proc/<pid>; "" if
// there is none.
func (p *Process) livingThread() (path string) {
	tasks, err := p.dir.OpenDir("task")
	if err != nil {
		return ""
	}
	defer tasks.Close()
	var buf [4096]byte
	_ = tasks.Each(buf[:], func(tid []byte) bool {
		var statm [16]byte
		name := string(tid) + "/statm"
		if n, err := tasks.Read(name, statm[:]); err == nil && n > 0 && statm[0] != '0' {
			path = "task/" + string(tid)
		}
		return path == ""
	})
	return path
}

// PIDFD opens a descriptor that becomes readable when the process exits. It is
// opened by pid: if the process's directory can still be read after that, the
// pid was not reused before. Only where pids are those of our own namespace.
func (p *Process) PIDFD() (fd int, err error) {
	fd, err = unix.PidfdOpen(p.PID, 0)
	if err != nil {
		return -1, err
	}
	if !p.Alive() {
		unix.Close(fd)
		return -1, unix.ESRCH
	}
	return fd, nil
}

// innerPID is the pid of a known process in its innermost namespace.
func (r *Reader) innerPID(pid int) int {
	if p := r.known[pid]; p != nil {
		return p.InnerPID
	}
	return pid
}

// OpenInRoot opens a directory (O_PATH) as a process sees it, given its
// directory below /proc: links are followed inside the process's own root. It
// may block on what is mounted there, so call it under a Guard.
func OpenInRoot(dir hostfs.Dir, path string) (fd int, err error) { return dir.OpenIn("root", path) }

// Pin returns a descriptor (O_PATH) of a file that the process has open, by
// device and inode, and its number in that process. Pinning a file does not
// open it: a caller that does must check first what it is.
func (p *Process) Pin(dev, ino uint64) (fd int, number string, err error) {
	fds, err := p.dir.OpenDir("fd")
	if err != nil {
		return -1, "", err
	}
	defer fds.Close()
	var buf [8 << 10]byte
	err = fds.Each(buf[:], func(entry []byte) bool {
		var st unix.Statx_t
		if fds.Stat(string(entry), &st) != nil || st.Ino != ino || unix.Mkdev(st.Dev_major, st.Dev_minor) != dev {
			return true
		}
		number = string(entry)
		return false
	})
	switch {
	case err != nil:
		return -1, "", err
	case number == "":
		return -1, "", unix.ENOENT
	}
	fd, err = fds.Pin(number)
	return fd, number, err
}
