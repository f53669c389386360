package shm

import (
	"bytes"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/proc"
)

// identity is what a process is: pids are reused.
type identity struct {
	pid   int
	start uint64 // clock ticks after boot
}

// process is a process of interest: one that maps a region, or uses a device.
type process struct {
	identity
	ppid  int
	pidNS uint64 // of its innermost pid namespace; 0 if not told
	nsPID int    // its pid in its innermost namespace: what its writer calls itself
	uid   int    // effective; −1 if not told
	comm  string

	dir   hostfs.Dir // /proc/<pid>, pinning the process
	pidfd int        // −1 where the pid is not of our namespace

	maps    mappings
	mapsErr error // EACCES, or hostfs.ErrTimeout; then maps is empty
	mapsAt  time.Time

	shm    inode // of its /dev/shm; zero if it could not be reached
	shmErr error
	shmAt  time.Time

	user bool // it has a device open, the caller says
	gone bool // it ended
}

const ticksPerSecond = 100 // USER_HZ, part of the kernel's ABI

// openProcess reads who a pid is. The caller closes the process.
func openProcess(root hostfs.Root, pid int) (*process, error) {
	base := "/proc/" + strconv.Itoa(pid)
	dir, err := root.OpenDir(base)
	if err != nil {
		return nil, err
	}
	p := &process{identity: identity{pid: pid}, nsPID: pid, uid: -1, dir: dir, pidfd: -1}
	if err := p.readFacts(); err != nil {
		dir.Close()
		return nil, err
	}
	return p, nil
}

func (p *process) close() {
	p.dir.Close()
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
}

func (p *process) readFacts() error {
	var buf [4096]byte
	n, err := p.dir.Read("stat", buf[:])
	if err != nil {
		return err
	}
	stat, err := proc.ParseStat(buf[:n])
	if err != nil {
		return err
	}
	p.comm, p.ppid, p.start = string(stat.Comm), stat.PPID, stat.Start
	if n, err = p.dir.Read("status", buf[:]); err != nil {
		return err
	}
	p.nsPID, p.uid = parseStatus(buf[:n], p.pid)
	if n, err = p.dir.Readlink("ns/pid", buf[:]); err == nil {
		p.pidNS = parseNamespace(string(buf[:n]))
	}
	return nil
}

// refreshName reads the name again: programs rename themselves, exec does. It
// tells whether the name changed.
func (p *process) refreshName() bool {
	var buf [64]byte
	n, err := p.dir.Read("comm", buf[:])
	if name := string(bytes.TrimSuffix(buf[:n], []byte{'\n'})); err == nil && name != p.comm {
		p.comm = name
		return true
	}
	return false
}

// isInit tells whether the process is the host's first, which runs no
// workloads. Slots with its number are common: they are of containers.
func (p *process) isInit() bool { return p.pid == 1 && p.nsPID == 1 }

// pin opens a pidfd, for watching many processes at once. It is opened by
// number: that the pinned directory still answers proves that the number was
// not given to somebody else before.
func (p *process) pin() {
	fd, err := unix.PidfdOpen(p.pid, 0)
	if err != nil {
		return
	}
	if p.alive() {
		p.pidfd = fd
	} else {
		unix.Close(fd)
	}
}

// alive tells whether the process still has an address space. A zombie has
// none: it can account for nothing any more, whether it was reaped or not.
// Where only the first thread has ended, the others have it.
func (p *process) alive() bool {
	var buf [16]byte
	n, err := p.dir.Read("statm", buf[:])
	if err != nil || n == 0 {
		return false
	}
	return buf[0] != '0' || p.livingThread() != ""
}

// livingThread is a thread with memory, as a path below /proc/<pid>.
func (p *process) livingThread() (path string) {
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

// startTime is the wall clock when the process started, to 10 ms.
func (p *process) startTime(boot time.Time) time.Time {
	return boot.Add(time.Duration(p.start) * (time.Second / ticksPerSecond))
}

// parseStatus takes the innermost pid and the effective uid out of
// /proc/<pid>/status. Kernels without NSpid have no nested view of it: the
// pid itself stands in.
func parseStatus(b []byte, pid int) (nsPID, uid int) {
	nsPID, uid = pid, -1
	for line := range bytes.Lines(b) {
		if v, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			if f := bytes.Fields(v); len(f) > 0 {
				if n, err := strconv.Atoi(string(f[len(f)-1])); err == nil {
					nsPID = n
				}
			}
		} else if v, ok := bytes.CutPrefix(line, []byte("Uid:")); ok {
			if f := bytes.Fields(v); len(f) > 1 {
				if n, err := strconv.Atoi(string(f[1])); err == nil {
					uid = n
				}
			}
		}
	}
	return nsPID, uid
}
