package keep

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// ledgerOf is the exit of a process whose ledger says what it held of device 0.
func ledgerOf(pid, uid int, dram uint64, bound model.Bound) model.Exit {
	peaks := []model.Peak{}
	for _, device := range []int{model.AllDevices, 0} {
		peaks = append(peaks, model.Peak{Device: device, Pool: "dram", Bytes: model.BoundBytes(dram, bound), At: t0.Add(100 * time.Millisecond)})
	}
	a := &model.Account{UID: uid, Name: "short", Start: t0, Last: t0.Add(300 * time.Millisecond), Peaks: peaks}
	return model.Exit{ID: model.ProcessID{PID: pid, StartTicks: uint64(pid)}, Time: t0.Add(time.Second), Status: model.Value(0), Account: a}
}

// A process that began and exited between two snapshots is a run, with what its
// ledger says.
func TestRunBetweenSnapshots(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	b.Observe(sc.at(0))
	sc.exits = []model.Exit{ledgerOf(7, 1000, 1<<30, model.Exact)}
	for second := range 9 {
		b.Observe(sc.at(float64(second + 1)))
	}
	r := only(t, b)
	if r.Name != "short" || r.UID != 1000 || r.End.Kind != runs.Exited || r.End.Code == nil || !r.Start.Equal(t0) || r.Took() != time.Second || r.Observed != 0 {
		t.Errorf("%+v", r)
	}
	for name, p := range map[string]runs.Pool{"run": r.Pools["dram"], "device": r.Devices[0].Pools["dram"]} {
		t.Run(name, func(t *testing.T) {
			if p.Peak != 1<<30 || p.PeakBound != "exact" || !p.PeakAt.Equal(t0.Add(100*time.Millisecond)) || p.Seconds != 0 {
				t.Errorf("%+v", p)
			}
		})
	}
	if len(r.Devices) != 1 || r.Devices[0].BusID == "" || r.Devices[0].Open != 0 || r.Devices[0].Power != nil {
		t.Errorf("%+v", r.Devices)
	}
}

// A ledger knows the peak of a run better than snapshots: exactly, unless several
// processes were added up, and not of another user's process.
func TestPeakOfLedger(t *testing.T) {
	for name, c := range map[string]struct {
		processes []model.Process
		exit      model.Exit
		peak      uint64
		bound     string
	}{
		"higher":             {[]model.Process{program(7, 0, 10, 0)}, ledgerOf(7, 1000, 50, model.Exact), 50, "exact"},
		"the same":           {[]model.Process{program(7, 0, 10, 0)}, ledgerOf(7, 1000, 10, model.Exact), 10, "exact"},
		"lower":              {[]model.Process{program(7, 0, 10, 0)}, ledgerOf(7, 1000, 5, model.AtLeast), 10, "at_least"},
		"that lost events":   {[]model.Process{program(7, 0, 10, 0)}, ledgerOf(7, 1000, 50, model.AtLeast), 50, "at_least"},
		"of one of two":      {[]model.Process{program(7, 0, 10, 0), child(program(8, 0, 60, 0), 7)}, ledgerOf(7, 1000, 80, model.Exact), 80, "at_least"},
		"of another user":    {[]model.Process{program(7, 0, 10, 0)}, ledgerOf(7, 666, 50, model.Exact), 10, "at_least"},
		"instead of a guess": {[]model.Process{unsure(program(7, 0, 99, 0))}, ledgerOf(7, 1000, 50, model.Exact), 50, "exact"},
		"of another process": {[]model.Process{program(7, 0, 10, 0)}, model.Exit{ID: model.ProcessID{PID: 9}}, 10, "at_least"},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, t.TempDir())
			sc := &scene{}
			b.Observe(sc.at(0, c.processes...))
			sc.exits = []model.Exit{c.exit}
			b.Observe(sc.at(1))
			b.Observe(sc.at(9))
			for where, p := range map[string]runs.Pool{"run": only(t, b).Pools["dram"], "device": only(t, b).Devices[0].Pools["dram"]} {
				if p.Peak != c.peak || p.PeakBound != c.bound {
					t.Errorf("%s: %+v", where, p)
				}
			}
		})
	}
}

// child makes a process the child of another.
func child(p model.Process, parent int) model.Process {
	p.PPID = parent
	return p
}

// unsure is a process of which tt-metal's own statistics are all there is.
func unsure(p model.Process) model.Process {
	n, _, _ := p.Devices[0].Memory[model.DRAM].Best()
	p.Devices[0].Memory[model.DRAM] = model.BoundBytes(n, model.Unsure)
	return p
}
