package keep

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// TestNoRoom: a run that fails right after an allocation has failed ended because
// of it; one that a user killed, or that continues for long, did not.
func TestNoRoom(t *testing.T) {
	last := t0.Add(3 * time.Second)
	failed := &model.Failures{Count: 2, Last: last, ID: "f12", Pool: "dram"}
	for name, c := range map[string]struct {
		failures *model.Failures
		status   int
		at       time.Duration // after the failure
		want     bool
	}{
		"exception":       {failed, 1 << 8, time.Second, true},
		"abort":           {failed, 6, time.Second, true},
		"just in time":    {failed, 1 << 8, runs.BlameWithin, true},
		"much later":      {failed, 1 << 8, runs.BlameWithin + time.Second, false},
		"caught":          {failed, 0, time.Second, false},
		"by its user":     {failed, 2, time.Second, false},
		"by the system":   {failed, 9, time.Second, false},
		"nothing failed":  {&model.Failures{}, 1 << 8, time.Second, false},
		"nothing watched": {nil, 1 << 8, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, t.TempDir())
			sc := &scene{}
			b.Observe(sc.at(0, program(7, 0, 10, 20)))
			end := last.Add(c.at)
			sc.exits = []model.Exit{{ID: model.ProcessID{PID: 7, StartTicks: 7}, Time: end, Status: model.Value(c.status), Failures: c.failures}}
			b.Observe(sc.at(1))
			b.Observe(sc.at(2))
			r := only(t, b)
			if r.End.NoRoom != c.want {
				t.Errorf("%+v, %+v", r.End, r.Failures)
			}
			if c.failures == nil && r.Failures != nil {
				t.Errorf("%+v where nothing was watched", r.Failures)
			}
			if c.failures != nil && (r.Failures == nil || r.Failures.Count != c.failures.Count || r.Failures.ID != c.failures.ID) {
				t.Errorf("%+v instead of %+v", r.Failures, c.failures)
			}
		})
	}
}

// TestFailureIsKnownLate: the failure of a program may be read from its ledger after
// its end has been written.
func TestFailureIsKnownLate(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	b.Observe(sc.at(0, program(7, 0, 10, 20)))
	sc.exits = []model.Exit{{ID: model.ProcessID{PID: 7, StartTicks: 7}, Time: t0.Add(time.Second), Status: model.Value(1 << 8)}}
	b.Observe(sc.at(1))
	b.Observe(sc.at(10))
	if r := only(t, b); r.End.NoRoom || r.Failures != nil {
		t.Fatalf("%+v %+v", r.End, r.Failures)
	}
	sc.exits[0].Failures = &model.Failures{Count: 1, Last: t0, ID: "f1", Pool: "l1", Clash: true}
	b.Observe(sc.at(11))
	if r := only(t, b); !r.End.NoRoom || r.Failures.Count != 1 || !r.Failures.Clash {
		t.Errorf("%+v %+v", r.End, r.Failures)
	}
}

// TestFailuresOfProcesses: those of all processes of a run are added up, each is
// counted once, and a successor continues the count.
func TestFailuresOfProcesses(t *testing.T) {
	dir := t.TempDir()
	b := begin(t, dir)
	sc := &scene{}
	parent, child := program(7, 0, 10, 20), program(8, 1, 10, 20)
	child.PPID = 7
	count := func(p *model.Process, n uint64) { p.Failures = &model.Failures{Count: n, Last: t0, Pool: "dram"} }
	count(&parent, 0)
	b.Observe(sc.at(0, parent, child))
	if r := only(t, b); r.Failures == nil || r.Failures.Count != 0 {
		t.Errorf("%+v where none failed", r.Failures)
	}
	count(&parent, 3)
	count(&child, 5)
	b.Observe(sc.at(1, parent, child))
	b.Observe(sc.at(2, parent, child))
	b.Close()
	b = open(t, dir)
	count(&child, 6)
	b.Observe(sc.at(3, parent, child))
	if r := only(t, b); r.Failures.Count != 9 || r.Processes[0].Failures != 3 || r.Processes[1].Failures != 6 {
		t.Errorf("%+v %+v", r.Failures, r.Processes)
	}
}
