package uprobe

import (
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// accounting is in the paths of the files that tt-metal accounts in.
const accounting = "/dev/shm/tt_device_"

// processTimeout is how long discover waits for processes, for all of a sweep
// together.
const processTimeout = 2 * time.Second

// newProcesses returns a reader for discover, which finds libraries, the files
// that tt-metal accounts in, and Python.
func newProcesses() *proc.Reader {
	r := proc.New(hostfs.Root{})
	r.Guard = proc.NewGuard(processTimeout)
	r.KeepMappings("/" + libraryName)
	r.KeepMappings(accounting)
	for _, part := range pythonPaths {
		r.KeepMappings(part)
	}
	return r
}

// scan queues all processes that have mapped a library and are not known. Those
// that may not be read, or do not answer, are left out.
func (s *Source) scan() {
	s.processes.StartSweep()
	defer s.processes.Close()
	pids, err := s.processes.PIDs()
	if err != nil {
		s.log.Warn("cannot list processes", "err", err)
	}
	for _, pid := range pids {
		if s.isKnown(pid) {
			continue
		}
		if m, ok := s.mapped(pid); ok {
			s.enqueue(m)
		}
	}
}

// scanUnplaced queues the processes that hit a probe before they were inspected.
func (s *Source) scanUnplaced() {
	s.mu.Lock()
	var pids []int
	for pid, p := range s.accounts.processes {
		if p.unplaced {
			pids = append(pids, int(pid))
		}
	}
	s.mu.Unlock()
	if len(pids) == 0 {
		return
	}
	s.processes.StartSweep()
	defer s.processes.Close()
	for _, pid := range pids {
		if m, ok := s.mapped(pid); ok {
			s.enqueue(m)
		}
	}
}

// mapped finds the library in the memory of a process.
func (s *Source) mapped(pid int) (m mapping, ok bool) {
	p, err := s.processes.Process(pid)
	if err != nil {
		return m, false
	}
	defer s.processes.Discard(p)
	list, err := s.processes.Maps(p)
	if err != nil {
		return m, false
	}
	for i := range list {
		f := &list[i]
		if f.Code == (proc.Range{}) || !isLibrary(f.Path) {
			continue
		}
		m = mapping{pid: pid, start: f.Code.Start, end: f.Code.End, offset: f.Code.Offset, inode: f.Inode, path: f.Path}
		if f.Deleted {
			m.path += deleted
		}
		return m, true
	}
	return m, false
}

// mayHaveChip reports whether a process has a device or its accounting open, or
// may have. If not, it has no allocator of a chip.
func (s *Source) mayHaveChip(p *proc.Process) bool {
	list, err := s.processes.ReadMaps(p)
	if err != nil {
		return true
	}
	for i := range list {
		if strings.Contains(list[i].Path, accounting) {
			return true
		}
	}
	return s.processes.MayHold(p)
}
