package collect

import (
	"fmt"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
)

// Bounds of the exits in a snapshot.
const (
	exitsFor = time.Minute
	maxExits = 64
)

// exits finds how processes ended that no longer have their devices open.
type exits struct {
	root   hostfs.Root
	before map[model.ProcessID]time.Time // who had a device at the last snapshot, and when it began
	recent []model.Exit                  // the oldest first
	pidfds pidfds
	// silent: this kernel reports the status of a process to its parent only.
	silent bool
	oom    oomWatch
}

// tellsStatus reports whether a release of Linux reports the status of a process to
// those that hold a pidfd of it: since 6.15.
func tellsStatus(release string) bool {
	var major, minor int
	if n, _ := fmt.Sscanf(release, "%d.%d", &major, &minor); n < 2 {
		return true
	}
	return major > 6 || major == 6 && minor >= 15
}

// add puts the exits of the last minute into a snapshot. ledgers are the last ones of
// processes that have exited.
func (e *exits) add(s *model.Snapshot, ledgers []track.Exited) {
	now := map[model.ProcessID]time.Time{}
	for i := range s.Processes {
		if p := &s.Processes[i]; p.State == model.Running && len(p.Devices) > 0 {
			now[p.ID()] = p.StartTime
		}
	}
	var gone []model.ProcessID
	for id := range e.before {
		if _, here := now[id]; !here {
			gone = append(gone, id)
		}
	}
	slices.SortFunc(gone, func(a, b model.ProcessID) int { return a.PID - b.PID })
	for _, id := range gone {
		if slices.ContainsFunc(e.recent, func(x model.Exit) bool { return x.ID == id }) {
			continue // its ledger has been read before
		}
		e.recent = append(e.recent, e.exit(id, s.Time))
		e.oom.left(id, e.before[id])
	}
	for id := range now {
		e.pidfds.hold(id)
	}
	e.oom.readCounters(now)
	e.addAccounts(s, ledgers)
	e.before = now
	e.readStatuses()
	e.oom.judge(e.recent)
	e.forget(s.Time, now)
	s.Exits = slices.Clone(e.recent)
}

// forget drops the exits that are old, those of processes that are back, and the
// oldest of too many.
func (e *exits) forget(at time.Time, now map[model.ProcessID]time.Time) {
	e.recent = slices.DeleteFunc(e.recent, func(x model.Exit) bool {
		over := at.Sub(x.Time).Abs() > exitsFor
		_, back := now[x.ID]
		if over {
			e.pidfds.release(x.ID)
		}
		if over || back {
			e.oom.forget(x.ID)
		}
		return over || back
	})
	if over := len(e.recent) - maxExits; over > 0 {
		for _, x := range e.recent[:over] {
			e.pidfds.release(x.ID)
			e.oom.forget(x.ID)
		}
		e.recent = slices.Delete(e.recent, 0, over)
	}
}

// exit is what /proc shows of a process that no longer has its devices open.
func (e *exits) exit(id model.ProcessID, at time.Time) model.Exit {
	x := model.Exit{ID: id, Time: at, Status: model.Missing[int](model.Absent, "the kernel reports it to the parent only")}
	if e.silent {
		x.Status = model.Missing[int](model.Unsupported, "Linux before 6.15 reports it to the parent only")
	}
	st, err := proc.ReadStat(e.root, id.PID)
	switch {
	case err != nil || st.Start != id.StartTicks:
	case !st.Gone():
		x.Alive = true
	case st.ExitKnown: // its parent has not waited for it yet
		x.Status = model.Value(st.Exit)
	}
	return x
}

// readStatuses looks which processes have exited since, and asks the kernel for their
// status. It is known once the parent has waited for it, which may be later.
func (e *exits) readStatuses() {
	for i := range e.recent {
		x := &e.recent[i]
		if x.Status.Known() {
			continue
		}
		if x.Alive { // a process that exits closes its devices first
			now := e.exit(x.ID, x.Time)
			x.Alive, x.Status = now.Alive, now.Status
		}
		if status, known := e.pidfds.status(x.ID); known {
			x.Status, x.Alive = model.Value(status), false
			e.pidfds.release(x.ID)
		}
	}
}
