package shm

import (
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// process is a known process: one that maps a region, or uses a device.
type process struct {
	*proc.Process        // its InnerPID is the pid in its slots
	shownName     string // as last published
	shownUID      int

	pidfd int // −1 where the pid is not of our namespace

	maps    mappings
	mapsErr error // EACCES, or hostfs.ErrTimeout; then maps is empty
	mapsAt  time.Time
	mapsFor time.Duration // how long it took to read
	// mapsSize is the size of the address space before they were read.
	mapsSize uint64

	user bool // it has a device open, according to the caller
	gone bool // it has exited
}

// keepMappings makes a reader of processes return the mappings that a Reader
// needs. It returns those of devices anyway.
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
	return &process{Process: known, shownName: known.Name, shownUID: known.UID, pidfd: -1}, nil
}

// changed reports, once, that the name or the user differs from the published
// one: programs rename themselves, and exec does.
func (p *process) changed() bool {
	changed := p.shownName != p.Name || p.shownUID != p.UID
	p.shownName, p.shownUID = p.Name, p.UID
	return changed
}

// isInit reports whether the process is the host's pid 1, which runs no
// workloads. Slots with that pid are common: they belong to containers.
func (p *process) isInit() bool { return p.PID == 1 && p.InnerPID == 1 }

// startTime is the wall clock when the process started, to 10 ms.
func (p *process) startTime(boot time.Time) time.Time { return proc.StartTime(boot, p.StartTicks) }

// closePIDFD stops watching for its exit.
func (p *process) closePIDFD() {
	if p.pidfd >= 0 {
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
}

// readMaps reads which regions a process maps, and its tt-metal library.
func (r *Reader) readMaps(p *process) {
	began := time.Now()
	p.mapsSize = p.Size()
	list, err := r.processes.ReadMaps(p.Process)
	p.maps, p.mapsErr, p.mapsAt, p.mapsFor = mappingsOf(list), err, r.now, time.Since(began)
}
