package shm

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
)

// Options configure a Reader. The zero Options read this host.
type Options struct {
	Root hostfs.Root
	// Capacity returns the physical capacity of a chip, by its id, so that figures
	// above it are rejected. Nil: none is known. It is called for every region in
	// every sweep and must be fast.
	Capacity func(id uint64) Capacity
	// FullScan is how often all of /proc is scanned for processes that map regions
	// in containers of their own without using a device (mock runs). Zero: never;
	// such regions are then found only through a slot or a device user.
	FullScan time.Duration
	// SearchTime bounds such a scan; 0 stands for 400 ms: enough for tens of
	// thousands of processes, and short enough that a screen does not seem to
	// hang.
	SearchTime time.Duration
	// Processes, if not nil, is a shared reader of processes: a process is opened
	// once per sweep for all its users. The caller starts its sweeps before Read,
	// and closes it after Close.
	Processes *proc.Reader
}

// User is a process that has a device open.
type User struct {
	PID        int
	StartTicks uint64 // 0 if not known
}

// Reader reads the regions of one host, sweep after sweep, and caches what
// keeps the next sweep cheap and the figures correct. It belongs to one
// goroutine.
type Reader struct {
	opts     Options
	root     hostfs.Root
	guard    *proc.Guard
	releases releases
	complete bool // every process of the host is visible
	ownPIDs  bool // pids of the host's /proc are pids of our namespace

	processes *proc.Reader
	shared    bool // processes is the caller's, who starts its sweeps

	host    *shmDir
	hostErr error
	dirs    map[inode]*shmDir // of containers
	regions map[inode]*region
	procs   map[int]*process // processes that map a region or use a device
	users   []User
	// restored are the baselines of a previous Reader; see Restore.
	restored map[slotOwner]*baseline

	seq      uint64    // of the sweep
	now      time.Time // of the sweep
	boot     time.Time // wall clock at tick 0
	lastFull time.Time
	// lastSearch is when the mappings of all processes were last read to find
	// holders.
	lastSearch time.Time
	stale      bool          // the published regions are not up to date
	changed    bool          // the published processes are not up to date
	watch      []unix.PollFd // pidfds of the known processes; nil: to be rebuilt
	watched    []*process
	last       *Sweep
	buffer     []byte // regions are read into it
}

// region is a file and the verdicts on its slots.
type region struct {
	*file
	seen           uint64
	dirty          bool
	figures        bool // its figures changed, and nothing else, since it was last built
	loadErr        error
	capacity       Capacity
	members        members
	searched       bool // for holders without a slot, since members changed
	membersChanged bool // members changed since it was last judged
	changing       bool // it changed while it was judged
	// unsearched: there was no time to search all processes for owners.
	unsearched bool
	deleted    bool // its name is gone, and a process still maps it
	states     [numSlots]*slotState
	dueAt      time.Time                // when the oldest verdict on a dead owner expires
	version    uint32                   // of the layout, when last judged
	wiped      map[model.ProcessID]bool // holders whose records another writer erased
	result     *Region
	update     update
}

// NewReader returns a Reader. Close closes its descriptors.
func NewReader(opts Options) *Reader {
	processes := opts.Processes
	if processes == nil {
		processes = proc.New(opts.Root)
	}
	if opts.SearchTime == 0 {
		opts.SearchTime = 400 * time.Millisecond
	}
	keepMappings(processes)
	g := processes.Guard
	return &Reader{
		opts: opts, root: opts.Root, guard: g, complete: processes.SeesAll(), ownPIDs: processes.OwnPIDs(),
		processes: processes, shared: opts.Processes != nil,
		releases: releases{guard: g, known: map[inode]releaseReading{}},
		dirs:     map[inode]*shmDir{}, regions: map[inode]*region{}, procs: map[int]*process{},
		buffer: newBuffer(),
	}
}

// withTimeout returns a Reader of the same host that waits longer for reads of
// processes that block.
func (r *Reader) withTimeout(timeout time.Duration) *Reader {
	processes := proc.New(r.root)
	processes.Guard = proc.NewGuard(timeout)
	all := NewReader(Options{Root: r.root, Processes: processes})
	all.shared, all.now = false, time.Now()
	return all
}

// Close closes all descriptors. The Reader cannot be used again.
func (r *Reader) Close() {
	for _, d := range r.dirs {
		d.close()
	}
	for _, f := range r.regions {
		f.close()
	}
	for _, p := range r.procs {
		r.processes.Release(p.Process)
		p.closePIDFD()
	}
	if !r.shared {
		r.processes.Close()
	}
	if r.host != nil {
		r.host.close()
	}
	clear(r.dirs)
	clear(r.regions)
	clear(r.procs)
	r.host = nil
}

// Read makes a sweep. users are the processes that have a device open: the
// /dev/shm of their containers is read, and those that have no accounting are
// reported.
func (r *Reader) Read(users []User) *Sweep {
	r.startSweep()
	r.dropExited()
	r.setUsers(users)
	if r.opts.FullScan > 0 && r.now.Sub(r.lastFull) >= r.opts.FullScan {
		r.scanAll()
	}
	r.refreshOldMaps()
	r.findDirs()
	r.findFiles()
	r.dropFiles()
	r.loadAll()
	r.judgeAll()
	r.dropUnneeded()
	return r.publish()
}

func (r *Reader) startSweep() {
	r.seq++
	r.now = time.Now()
	if !r.shared {
		r.processes.StartSweep()
	}
	r.boot = r.processes.BootTime()
}

// findDirs opens every /dev/shm that may have regions.
func (r *Reader) findDirs() {
	if r.host == nil {
		r.host, r.hostErr = openHostDir(r.root)
	}
	for _, p := range r.procs {
		r.reachDir(p)
	}
	for key, d := range r.dirs {
		if d.seen != r.seq {
			d.close()
			delete(r.dirs, key)
		}
	}
}

// dirAge is how long the /dev/shm of a process is assumed not to change. It
// does when the process mounts another one.
const dirAge = 15 * time.Second

// reachDir marks the /dev/shm of a process as still reachable, and opens it the
// first time. One that could not be opened is retried sooner.
func (r *Reader) reachDir(p *process) {
	if age := r.now.Sub(p.shmAt); age >= dirAge || p.shmErr != nil && age >= mapsAge {
		p.shmAt = r.now
		p.shm = inode{}
		var d *shmDir
		var openErr error
		pid := p.PID
		returned, err := r.guard.RunIn(p.Process, func(dir hostfs.Dir) { d, openErr = openDirOf(dir, pid) })
		switch {
		case err != nil:
			p.shmErr = err
			if returned != nil {
				go closeLate(&d, returned)
			}
			return
		case openErr != nil:
			p.shmErr = openErr
			return
		}
		p.shmErr, p.shm = nil, d.inode
		if r.host != nil && d.inode == r.host.inode || r.dirs[d.inode] != nil {
			d.close()
		} else {
			d.via = p.ProcessID
			r.dirs[d.inode] = d
		}
	}
	d := r.dirs[p.shm]
	if d == nil {
		return
	}
	d.seen = r.seq
	if via := r.procs[d.via.PID]; via == nil || via.ProcessID != d.via {
		d.via, d.path = p.ProcessID, proc.SharedMemoryPath(p.PID) // the process it was found through has exited
	}
}

// closeLate closes a directory that was opened after the timeout.
func closeLate(d **shmDir, done <-chan struct{}) {
	if <-done; *d != nil {
		(*d).close()
	}
}

// findFiles opens new regions.
func (r *Reader) findFiles() {
	if r.host != nil {
		if r.hostErr = r.host.refresh(r.now); r.hostErr == nil {
			r.openFiles(r.host)
		}
	}
	for _, d := range r.dirs {
		if d.refresh(r.now) == nil {
			r.openFiles(d)
		}
	}
	r.openDeleted()
}

// dropFiles closes regions that are gone: no directory has them, and no process
// maps them.
func (r *Reader) dropFiles() {
	for key, reg := range r.regions {
		switch gone := reg.seen != r.seq; {
		case gone && !r.mapped(key):
			reg.close()
			delete(r.regions, key)
			r.stale, r.changed = true, true
		case gone != reg.deleted:
			reg.deleted, reg.dirty = gone, true
		}
	}
}

// mapped reports whether a known process maps a region.
func (r *Reader) mapped(key inode) bool {
	for _, p := range r.procs {
		if _, ok := p.maps.find(key); ok {
			return true
		}
	}
	return false
}

func (r *Reader) openFiles(d *shmDir) {
	for _, f := range d.files {
		key := inodeOf(&f.st)
		reg := r.regions[key]
		switch {
		case reg == nil:
			reg = r.addRegion(openFile(d, f))
		case reg.id != f.id && reg.seen == r.seq:
			continue // a second name of one file
		case reg.id != f.id:
			reg.close()
			reg = r.addRegion(openFile(d, f))
		case !reg.deleted && reg.path != d.path+"/"+f.name:
			reg.path, reg.dirty = d.path+"/"+f.name, true
		}
		reg.seen = r.seq
	}
}

func (r *Reader) addRegion(f *file) *region {
	reg := &region{file: f, dirty: true, seen: r.seq, wiped: map[model.ProcessID]bool{}}
	r.regions[f.inode] = reg
	r.stale, r.changed = true, true
	return reg
}

func (r *Reader) loadAll() {
	for _, reg := range r.regions {
		changed, err := reg.load(r.buffer)
		switch {
		case changed == newMembers, (err == nil) != (reg.loadErr == nil):
			reg.dirty = true
		case changed == newFigures:
			reg.figures = true
		}
		reg.loadErr = err
		if r.opts.Capacity != nil {
			if c := r.opts.Capacity(reg.id); c != reg.capacity {
				reg.capacity, reg.dirty = c, true
			}
		}
	}
}

// publish returns the sweep. It shares what did not change with the last one.
func (r *Reader) publish() *Sweep {
	s := &Sweep{Time: r.now, Err: r.hostErr}
	if r.last != nil {
		s.Regions, s.Processes = r.last.Regions, r.last.Processes
	}
	if r.stale {
		s.Regions = make([]*Region, 0, len(r.regions))
		for _, reg := range r.regions {
			s.Regions = append(s.Regions, reg.result)
		}
		slices.SortFunc(s.Regions, func(a, b *Region) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Path, b.Path))
		})
	}
	if r.changed {
		s.Processes = make([]*Process, 0, len(r.procs))
		for _, p := range r.procs {
			s.Processes = append(s.Processes, r.publishProcess(p))
		}
		slices.SortFunc(s.Processes, func(a, b *Process) int { return cmp.Compare(a.PID, b.PID) })
	}
	r.last, r.stale, r.changed = s, false, false
	return s
}
