package keep

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Program follows one program: its processes are one run, whichever of them has a
// device open. It is not safe for concurrent use.
type Program struct {
	mine func(*model.Snapshot, *model.Process) bool
	t    tracker
}

// Follow begins to follow the program of a process and its descendants. interval is the
// time between two snapshots.
func Follow(pid int, interval time.Duration) *Program {
	return follow(func() time.Duration { return interval }, func(s *model.Snapshot, p *model.Process) bool { return descends(s, p, pid) })
}

// follow begins to follow the program of which mine says which processes it has.
func follow(interval func() time.Duration, mine func(*model.Snapshot, *model.Process) bool) *Program {
	return &Program{mine, tracker{one: true, interval: interval}}
}

// Observe takes a snapshot in, as far as it is about the program.
func (p *Program) Observe(s *model.Snapshot) {
	own := *s
	own.Processes = nil
	for i := range s.Processes {
		if p.mine(s, &s.Processes[i]) {
			own.Processes = append(own.Processes, s.Processes[i])
		}
	}
	p.t.observe(&own)
}

// Run is the run; false: no process of it had a device open.
func (p *Program) Run() (runs.Run, bool) {
	if len(p.t.live) == 0 {
		return runs.Run{}, false
	}
	return p.t.live[0].Clone(), true
}

// descends reports whether a process is the given one or a child of its children, as
// far as the snapshot has them.
func descends(s *model.Snapshot, p *model.Process, pid int) bool {
	for range len(s.Processes) + 1 {
		if p.PID == pid || p.PPID == pid {
			return true
		}
		i := slices.IndexFunc(s.Processes, func(q model.Process) bool { return q.PID == p.PPID })
		if i < 0 {
			return false
		}
		p = &s.Processes[i]
	}
	return false
}
