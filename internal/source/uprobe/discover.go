package uprobe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
)

const (
	// mmapEvery is how long a record of a mapping may wait until it is looked
	// at: importing ttnn takes a second, from its library to the first allocator.
	mmapEvery = 50 * time.Millisecond
	// scanEvery is how often processes are looked through where there are no
	// such records.
	scanEvery = 5 * time.Second
)

// discover finds libraries and the processes that map them.
func (s *Source) discover(ctx context.Context) error {
	records, err := watchMmap()
	if err != nil {
		s.log.Warn("new processes are noticed late", "err", err)
		records = nil
		s.mu.Lock()
		s.slow = thisMachine(nil).slow(err)
		s.mu.Unlock()
	}
	if records != nil {
		defer records.Close()
	}
	defer s.processes.Close()
	s.prepare()
	s.scan()
	close(s.ready)
	if records == nil {
		return s.scanAgain(ctx)
	}
	for {
		if err := records.wait(ctx, mmapEvery); err != nil {
			return err
		}
		found, incomplete := records.read()
		if len(found) > 0 {
			s.processes.Begin()
		}
		for _, m := range found {
			s.watch(m)
		}
		if incomplete {
			s.scan()
		}
	}
}

// scanAgain looks through all processes now and then.
func (s *Source) scanAgain(ctx context.Context) error {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.scan()
		}
	}
}

func (s *Source) isKnown(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[pid]
	return ok
}

// watch begins to watch a process.
func (s *Source) watch(m mapping) {
	process, err := s.processes.Process(m.pid)
	if err != nil {
		return // it has ended
	}
	defer s.processes.Discard(process)
	parent, start := process.PPID, process.StartTicks
	var f *os.File
	if _, err := s.processes.Guard.Run(process.ProcessID, func() { f, err = open(m) }); err != nil {
		s.log.Warn("a process does not let its library be opened", "pid", m.pid, "err", err)
		s.unwatched(m.pid, start, err)
		return
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.log.Warn("a process cannot be watched", "pid", m.pid, "library", m.path, "err", err)
		}
		s.unwatched(m.pid, start, err)
		return
	}
	id, l, err := s.library(f, m.path)
	if err != nil {
		s.unwatched(m.pid, start, err)
		return
	}
	s.remember(l)
	s.mu.Lock()
	l.pids[m.pid] = true
	s.known[m.pid] = use{id, m.start}
	child := s.copied(parent, m, id)
	alone := len(s.known) == 1
	if len(l.letGo) > 0 {
		s.arm(l) // it gets probes of its own
	}
	armed, failed := l.armed, l.err
	s.mu.Unlock()
	if alone {
		s.wake() // from now on the ring is looked at often
	}
	if failed != nil {
		s.unwatched(m.pid, start, failed)
		return
	}
	s.announce(m.pid, start, s.isLate(m, process, armed), child)
}

// copied says whether a mapping is a copy of the parent's, from a fork: the
// same file at the same address. With mu.
func (s *Source) copied(parent int, m mapping, id fileID) bool {
	of, ok := s.known[parent]
	return ok && of == use{id, m.start}
}

// adopt gives a forked process that has hit a probe the library of its parent.
// With mu.
func (s *Source) adopt(pid, parent uint32) {
	of, ok := s.known[int(parent)]
	l := s.libraries[of.library]
	if _, known := s.known[int(pid)]; known || !ok || l == nil {
		return
	}
	s.known[int(pid)], l.pids[int(pid)] = of, true
	if len(l.letGo) > 0 {
		s.arm(l)
	}
}

// remember writes down that a library is used.
func (s *Source) remember(l *library) {
	if l.err != nil || !l.onHost {
		return
	}
	if err := s.memory.add(l.path); err != nil {
		s.log.Warn("programs that start right after the next ttmond will be noticed late", "err", err)
	}
}

// isLate says whether a process may hold what it took before its library was
// watched. It may not if it mapped the library later, or if it is young and has
// no chip now, when everything that it does is seen. One that has a chip has
// it open, or the file in which tt-metal accounts for it. Being late is no
// matter of all chips: those that it opens from now on are known whole.
func (s *Source) isLate(m mapping, p *proc.Process, armed uint64) bool {
	if m.time != 0 && m.time >= armed {
		return false
	}
	return m.time == 0 || armed-m.time > uint64(s.o.fresh) || s.mayHaveChip(p)
}

// announce begins the record of a process, or corrects it: its first event may
// have come before the record of its mapping.
func (s *Source) announce(pid int, start uint64, late, child bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.books.process(uint32(pid))
	if p.Start != 0 && p.Start != start {
		return // the number was given to somebody else
	}
	before := p.Late
	p.Start, p.Late, p.child = start, p.Late && late, p.child && p.parent != 0 || child
	if before && !p.Late && p.changes > 0 {
		s.books.note(p, changes.Change{Kind: changes.Watched, Time: p.toldAt})
	}
}

// unwatched notes a process whose library cannot be watched.
func (s *Source) unwatched(pid int, start uint64, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.books.process(uint32(pid))
	p.Start = start
	s.books.giveUp(p, time.Now().UnixNano(), model.Doubt{Kind: model.LibraryUnwatched, Detail: err.Error()})
}

// libraryPatience is how long a library may take to be read and to get its
// probes; a tenth of a second is usual. One that takes longer is given up.
const libraryPatience = 5 * time.Second

// library finds the record of a file, or begins it and sets its probes. The file
// is the library's from here on, or closed. Only discover calls it. Nothing is
// read from the file with mu, which snapshots wait for: it may be on a disk
// that does not answer. The error says why there is no record; a library that
// has one may still have a reason not to be watched.
func (s *Source) library(f *os.File, path string) (fileID, *library, error) {
	st, err := stat(f)
	if err == nil && st.Mode&unix.S_IFMT != unix.S_IFREG {
		err = fmt.Errorf("%s is not a regular file", path)
	}
	if err != nil {
		f.Close()
		return fileID{}, nil, err
	}
	id := fileID{uint64(st.Dev), st.Ino}
	if l, err := s.begun(id, path); l != nil || err != nil {
		f.Close()
		return id, l, err
	}
	if err := s.openRing(); err != nil {
		f.Close()
		return id, nil, err
	}
	made := make(chan *library, 1)
	go func() {
		l := newLibrary(f, path)
		if l.err == nil {
			s.arm(l)
		}
		made <- l
	}()
	var l *library
	select {
	case l = <-made:
	case <-time.After(libraryPatience):
		s.log.Warn("a library does not let itself be read", "library", path)
		s.stuck[id] = true
		go func() { (<-made).Close() }()
		return id, nil, stuckError(path)
	}
	if l.err != nil {
		s.log.Warn("a library of tt-metal cannot be watched; its processes are known by shared memory only", "library", path, "err", l.err)
	} else {
		s.log.Info("watching the allocators of tt-metal", "library", path)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.libraries[id] = l
	return id, l, nil
}

// begun finds the record of a file that is known, or says why it gets none.
func (s *Source) begun(id fileID, path string) (*library, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.libraries[id]; l != nil {
		return l, nil
	}
	if s.stuck[id] {
		return nil, stuckError(path)
	}
	if len(s.libraries) >= s.o.MaxLibraries && !s.makeRoom() {
		s.log.Warn("too many libraries are in use; this one is not watched", "library", path)
		return nil, fmt.Errorf("%d libraries are watched already", s.o.MaxLibraries)
	}
	return nil, nil
}

func stuckError(path string) error { return fmt.Errorf("%s could not be read in time", path) }

// arm sets a library's probes as they should be now. With mu, unless nobody
// else knows the library yet.
func (s *Source) arm(l *library) {
	if l.err != nil {
		return
	}
	if l.err = l.arm(s.kernel.Hit); l.err == nil && l.armed == 0 {
		l.armed = sinceBoot()
	}
}

// makeRoom lets go of a library that nobody uses. With mu.
func (s *Source) makeRoom() bool {
	for id, l := range s.libraries {
		if len(l.pids) == 0 {
			l.Close()
			delete(s.libraries, id)
			return true
		}
	}
	return false
}

// forget ends the record of a process. With mu.
func (s *Source) forget(pid int) {
	of, ok := s.known[pid]
	if !ok {
		return
	}
	delete(s.known, pid)
	l := s.libraries[of.library]
	if l == nil {
		return
	}
	delete(l.pids, pid)
	if l.letGo[pid] {
		delete(l.letGo, pid)
		s.arm(l)
	}
	if len(l.pids) == 0 && !l.onHost {
		l.Close()
		delete(s.libraries, of.library)
	}
}

// Find returns what is known of a process, as a copy.
func (s *Source) Find(pid int) (*blocks.Process, bool) {
	s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.books.processes[uint32(pid)]
	if p == nil {
		return nil, false
	}
	c := p.Clone()
	for i, a := range c.Allocators {
		a.ID = uint64(i + 1) // ours is an address in the process, which others need not know
	}
	return c, true
}
