package shm

import (
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
	*proc.Process
	identity
	ppid  int
	nsPID int // its pid in its innermost namespace: what its writer calls itself
	uid   int // effective; −1 if not told
	comm  string

	pidfd int // −1 where the pid is not of our namespace

	maps    mappings
	mapsErr error // EACCES, or hostfs.ErrTimeout; then maps is empty
	mapsAt  time.Time

	shm    inode // of its /dev/shm; zero if it could not be reached
	shmErr error
	shmAt  time.Time

	user bool // it has a device open, the caller says
	gone bool // it ended
}

// keepMappings makes a reader of processes tell what a Reader asks for.
func keepMappings(r *proc.Reader) {
	r.KeepMappings("/" + namePrefix)
	r.KeepMappings("/" + libPrefix)
}

// open opens the process that has a pid now. The caller keeps or discards it.
func (r *Reader) open(pid int) (*process, error) {
	known, err := r.processes.Process(pid)
	if err != nil {
		return nil, err
	}
	p := &process{Process: known, identity: identity{known.PID, known.Start}, pidfd: -1}
	p.takeOver()
	return p, nil
}

// takeOver takes over what may have changed since, and tells whether the name
// or the user has: programs rename themselves, exec does.
func (p *process) takeOver() (changed bool) {
	changed = p.comm != p.Name || p.uid != p.UID
	p.comm, p.ppid, p.uid, p.nsPID = p.Name, p.PPID, p.UID, p.InnerPID
	return changed
}

// isInit tells whether the process is the host's first, which runs no
// workloads. Slots with its number are common: they are of containers.
func (p *process) isInit() bool { return p.pid == 1 && p.nsPID == 1 }

// startTime is the wall clock when the process started, to 10 ms.
func (p *process) startTime(boot time.Time) time.Time { return proc.StartTime(boot, p.start) }

// closePIDFD ends the watch for its end.
func (p *process) closePIDFD() {
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
}

// readMaps looks up which regions a process maps, and its tt-metal library.
func (r *Reader) readMaps(p *process) {
	list, err := r.processes.ReadMaps(p.Process)
	p.maps, p.mapsErr, p.mapsAt = mappingsOf(list), err, r.now
}

// guard is the one of the shared reader of processes.
type guard struct{ *proc.Guard }

// look runs f on the directory /proc/<pid> of a process, under guard.
func (g guard) look(p *process, f func(dir hostfs.Dir)) error {
	_, err := g.Look(p.Process, f)
	return err
}
