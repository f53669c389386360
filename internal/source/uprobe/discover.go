package uprobe

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
)

const (
	// mmapEvery is how long a record of a mapping may wait before it is read:
	// importing ttnn takes a second, from its library to the first allocator.
	mmapEvery = 100 * time.Millisecond
	// scanEvery is how often all processes are scanned where there are no such
	// records, and how often it is checked that there are of all CPUs.
	scanEvery = 5 * time.Second
)

// discover finds libraries and the processes that map them.
func (s *Source) discover(ctx context.Context) error {
	records, err := watchMmap()
	if err != nil {
		s.log.Warn("cannot watch for new processes; polling instead", "err", err)
		records = nil
		s.mu.Lock()
		s.slow = thisMachine(nil).slow(err)
		s.mu.Unlock()
	}
	if records != nil {
		s.setRecords(records)
		defer records.Close()
		defer s.setRecords(nil)
	}
	defer s.processes.Close()
	s.prepare()
	s.scan()
	s.watchAll(0)
	close(s.ready)
	if records == nil {
		return s.scanAgain(ctx)
	}
	for {
		if len(s.queue) == 0 {
			if err := records.wait(ctx, mmapEvery); err != nil {
				return err
			}
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		found, incomplete := records.read()
		for _, m := range unique(found) {
			s.enqueue(m)
		}
		if incomplete || s.dropped {
			s.dropped = false
			s.scan()
		}
		s.scanUnplaced()
		s.watchAll(mmapEvery)
	}
}

// setRecords says what discover waits for.
func (s *Source) setRecords(records *mmapWatch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.records = records
}

// wakeDiscover has processes inspected that hit a probe before they were. With mu.
func (s *Source) wakeDiscover() {
	if s.records != nil {
		s.records.wake()
	}
}

// maxQueue is how many mappings may wait to be inspected. Those that do not fit
// are found by a scan.
const maxQueue = 4096

// enqueue appends a mapping to the queue.
func (s *Source) enqueue(m mapping) {
	if len(s.queue) >= maxQueue {
		s.dropped = true
		return
	}
	m.uid, _ = proc.Owner(hostfs.Root{}, m.pid) // -1: it has ended
	s.queue = append(s.queue, m)
}

// watchAll attaches to the processes in the queue, for at most so long (0: no
// limit): first root's, then those of users whose libraries have taken the least
// time. The rest stays in the queue.
func (s *Source) watchAll(most time.Duration) {
	if len(s.queue) == 0 {
		return
	}
	s.processes.StartSweep()
	for began := time.Now(); len(s.queue) > 0 && (most == 0 || time.Since(began) < most); {
		now := time.Now()
		cost := func(m mapping) time.Duration {
			if budget.Privileged(m.uid) {
				return -1
			}
			return s.reads.spent[m.uid].Spent(now)
		}
		next := 0
		for i := range s.queue {
			if cost(s.queue[i]) < cost(s.queue[next]) {
				next = i
			}
		}
		m := s.queue[next]
		s.queue = slices.Delete(s.queue, next, next+1)
		s.watch(m)
	}
}

// unique drops the records of what was mapped again at the same place: a process
// can do that all day.
func unique(found []mapping) []mapping {
	last := map[mapping]int{}
	for i, m := range found {
		m.time = 0
		last[m] = i
	}
	out := found[:0]
	for i, m := range found {
		key := m
		key.time = 0
		if last[key] == i {
			out = append(out, m)
		}
	}
	return out
}

// scanAgain scans all processes every scanEvery.
func (s *Source) scanAgain(ctx context.Context) error {
	tick := time.NewTicker(scanEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
			s.scan()
			s.watchAll(0)
		}
	}
}

func (s *Source) isKnown(pid int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.known[pid]
	return ok
}

// watch attaches to a process, unless it belongs to another host.
func (s *Source) watch(m mapping) {
	if s.processes.OfAnotherHost(m.pid) {
		return
	}
	process, err := s.processes.Process(m.pid)
	if err != nil {
		return // it has ended
	}
	defer s.processes.Discard(process)
	child := s.isForkCopy(process.PPID, m)
	f, err := s.openMapped(process, m)
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			s.logLimited(slog.LevelWarn, process.UID, "cannot attach to process", "pid", m.pid, "library", m.path, "err", err)
		}
		s.markUnwatched(process, err)
		return
	}
	id, l, err := s.library(f, m.path, process.UID, m.pid)
	if err != nil {
		s.markUnwatched(process, err)
		return
	}
	s.findPython(process)
	s.mu.Lock()
	if s.libraries[id] != l { // the process has ended, and the library with it
		s.mu.Unlock()
		return
	}
	alone, separates := len(s.known) == 1, l.separates()
	s.mu.Unlock()
	if separates {
		s.arm(l) // it gets probes of its own
	}
	s.mu.Lock()
	armed, failed := l.armed, l.err
	s.mu.Unlock()
	if alone {
		s.wake() // from now on the ring is read often
	}
	if failed != nil {
		s.markUnwatched(process, failed)
		return
	}
	if l.onHost {
		s.remember(l.path)
	}
	s.announce(process, arrival{late: s.isLate(m, process, armed), child: child, perCore: s.keepsL1PerCore(process)})
}

// keepsL1PerCore reports whether a process was started with tt-metal's HYBRID
// allocator; false where its environment may not be read, and for a program that
// chooses it itself.
func (s *Source) keepsL1PerCore(p *proc.Process) bool {
	const variable = "TT_METAL_ALLOCATOR_MODE_HYBRID"
	env, err := s.processes.Environ(p, func(key string) bool { return key == variable })
	return err == nil && strings.HasPrefix(env[variable], "1")
}

// openMapped opens the library that a process has mapped, unless its user can
// keep the kernel waiting for it. That, too, is found out with a limit on its
// time.
func (s *Source) openMapped(p *proc.Process, m mapping) (*os.File, error) {
	// None of these is a result: after a timeout they may still be written.
	var served bool
	var opened *os.File
	var err error
	returned, timeout := s.processes.Guard.Run(p.ProcessID, func() {
		if opened, err = open(m); err == nil {
			served, err = onFUSE(opened)
		}
	})
	if timeout != nil {
		go func() { // it may still be opened, after we have given up on it
			<-returned
			opened.Close()
		}()
		return nil, timeout
	}
	if err == nil && served && !s.isNamed(m.path) {
		err = errServed
	}
	if err != nil {
		opened.Close()
		return nil, err
	}
	return opened, nil
}

// isNamed reports whether the configuration names a library.
func (s *Source) isNamed(path string) bool {
	return slices.ContainsFunc(s.o.Libraries, func(glob string) bool {
		ok, _ := filepath.Match(glob, path)
		return ok
	})
}

// use notes that a process has mapped a library. With mu.
func (s *Source) use(pid int, id fileID) {
	s.libraries[id].pids[pid] = true
	if !slices.Contains(s.known[pid], id) {
		s.known[pid] = append(s.known[pid], id)
	}
}

// isForkCopy reports whether a mapping is a copy of the parent's, from a fork: the
// same file at the same address. A fork leaves no record of its mappings.
func (s *Source) isForkCopy(parent int, m mapping) bool {
	if m.time != 0 {
		return false
	}
	of, ok := s.mapped(parent)
	return ok && of.start == m.start && of.inode == m.inode && of.path == m.path
}

// adopt gives a forked process that has hit a probe the libraries of its
// parent. With mu.
func (s *Source) adopt(pid, parent uint32) {
	if _, known := s.known[int(pid)]; known {
		return
	}
	for _, of := range s.known[int(parent)] {
		l := s.libraries[of]
		if l == nil {
			continue
		}
		s.use(int(pid), of)
		if l.separates() {
			s.rearm(l)
		}
	}
}

// remember saves that a library is in use.
func (s *Source) remember(path string) {
	if err := s.memory.add(path); err != nil {
		s.log.Warn("cannot save the list of watched libraries", "err", err)
	}
}

// isLate reports whether a process may hold what it allocated before its library was
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

// arrival is what is known of a process when its library is first watched.
type arrival struct {
	late    bool // it may hold what it allocated before
	child   bool // it is a fork of a process that has the library
	perCore bool // its allocators keep L1 per core
}

// announce starts the record of a process, or corrects it: its first event may
// have come before the record of its mapping.
func (s *Source) announce(of *proc.Process, as arrival) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, start := s.accounts.process(uint32(of.PID)), of.StartTicks
	if p.Start != 0 && p.Start != start {
		return // the number is another process's now
	}
	s.accounts.setOwner(p, of.UID)
	if p.changes == 0 {
		p.nameless = s.nameless.Load()
	}
	before := p.Late
	if p.unplaced && as.child {
		s.accounts.disown(p)
	}
	if as.perCore && !p.perCore {
		s.accounts.keepPerCore(p)
	}
	p.unplaced = false
	p.Start, p.Late, p.child = start, p.Late && as.late, p.child && p.parent != 0 || as.child
	if before && !p.Late && p.changes > 0 {
		s.accounts.note(p, changes.Change{Kind: changes.Watched, Time: p.toldAt})
	}
}

// markUnwatched records that the library of a process cannot be watched, and why.
func (s *Source) markUnwatched(of *proc.Process, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.accounts.process(uint32(of.PID))
	p.Start = of.StartTicks
	s.accounts.giveUp(p, time.Now().UnixNano(), model.Doubt{Kind: model.LibraryUnwatched, Detail: err.Error()})
}

// rearm has a library's probes set again soon, as they should be then. With mu.
func (s *Source) rearm(l *library) {
	if !l.stale {
		l.stale = true
		go s.arm(l)
	}
}

// arm sets a library's probes as they should be now. Without mu.
func (s *Source) arm(l *library) {
	l.arming.Lock()
	defer l.arming.Unlock()
	s.mu.Lock()
	l.stale = false
	want, failed := l.wanted(s.maySeparate(l), s.o.Waits), l.err
	s.mu.Unlock()
	if failed != nil || l.closed {
		return
	}
	unwatched := len(l.links[groupHost]) == 0
	err := l.arm(s.kernel, want)

	s.mu.Lock()
	defer s.mu.Unlock()
	first := l.armed == 0
	if l.err = err; err == nil && first {
		l.armed = sinceBoot()
	}
	l.set = 0
	for _, links := range l.links {
		l.set += len(links)
	}
	switch {
	case len(l.links[groupHost]) == 0:
		l.hostArmed = 0
	case first:
		l.hostArmed = l.armed
	case unwatched:
		s.forgetHosts(l)
	}
}

// maxSeparate is how many probes of single processes there may be, of all
// libraries. Each is a descriptor, and a user can start thousands of processes
// and have ttmond detach from one. Beyond, such a process keeps hitting the probes
// of all, at its own cost.
const maxSeparate = 512

// separates reports whether ttmond has detached from some process of a library.
func (l *library) separates() bool {
	return slices.ContainsFunc(l.left[:], func(left map[int]bool) bool { return len(left) > 0 })
}

// maySeparate reports whether the processes of a library may get probes of their
// own. With mu.
func (s *Source) maySeparate(l *library) bool {
	if !l.separates() {
		return false
	}
	n := 4 * len(l.pids)
	for _, other := range s.libraries {
		if other != l && other.set > 4 {
			n += other.set
		}
	}
	return n <= maxSeparate
}

// forget drops what is known of a process and its libraries. With mu.
func (s *Source) forget(pid int) {
	delete(s.elsewhere, uint32(pid))
	uses := s.known[pid]
	delete(s.known, pid)
	for _, of := range uses {
		l := s.libraries[of]
		if l == nil {
			continue
		}
		delete(l.pids, pid)
		for _, left := range l.left {
			if left[pid] {
				delete(left, pid)
				s.rearm(l)
			}
		}
		if len(l.pids) == 0 && !l.onHost {
			s.drop(of)
		}
	}
}

// Find returns what is known of a process, as a copy.
func (s *Source) Find(pid int) (*blocks.Process, bool) {
	s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.accounts.processes[uint32(pid)]
	if p == nil {
		return nil, false
	}
	c := p.Clone()
	for i, a := range c.Allocators {
		a.ID = uint64(i + 1) // ours is an address in the process, which others need not know
	}
	return c, true
}
