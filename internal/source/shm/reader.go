package shm

import (
	"cmp"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/devshm"
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

	dirs    *devshm.Dirs
	hostErr error // why the host's own could not be read
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
	dir            *devshm.Dir // that it was found in last
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
		dirs:     devshm.New(opts.Root, ""), regions: map[inode]*region{}, procs: map[int]*process{},
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
	r.dirs.Close()
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
	clear(r.regions)
	clear(r.procs)
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

// findDirs finds every /dev/shm that may have regions.
func (r *Reader) findDirs() {
	r.dirs.StartSweep(r.now)
	for _, p := range r.procs {
		_ = r.dirs.Reach(p.ProcessID, func(open func(hostfs.Dir)) (<-chan struct{}, error) { return r.guard.RunIn(p.Process, open) })
	}
}

// findFiles opens new regions.
func (r *Reader) findFiles() {
	r.hostErr = r.dirs.Err
	for _, d := range r.dirs.All() {
		files, err := r.filesIn(d)
		if d == r.dirs.Host {
			r.hostErr = err
		}
		for _, f := range files {
			r.openRegion(d, f)
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

// openRegion opens a file of a directory if it is new, and notes that it is there.
func (r *Reader) openRegion(d *devshm.Dir, f found) {
	reg := r.regions[devshm.IDOf(&f.st)]
	switch {
	case reg == nil:
		reg = r.addRegion(openFile(d, f))
	case reg.id != f.id && reg.seen == r.seq:
		return // a second name of one file
	case reg.id != f.id:
		reg.close()
		reg = r.addRegion(openFile(d, f))
	case !reg.deleted && reg.path != d.Path+"/"+f.name:
		reg.path, reg.dirty = d.Path+"/"+f.name, true
	}
	reg.seen, reg.dir = r.seq, d
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
