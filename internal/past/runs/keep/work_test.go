package keep

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// working is program whose left chip has been busy for some seconds.
func working(pid int, busy float64, cause model.WorkCause) model.Process {
	p := program(pid, 0, 1<<30, 1<<30)
	p.Devices[0].OpenFDs, p.Devices[0].Chips = model.Value(1), p.Devices[0].Chips[:1]
	w := model.Work{Busy: model.Value(0.5), Cause: cause}
	if cause != "" {
		w.Bound = model.AtLeast
	}
	at := t0.Add(time.Duration(busy) * time.Second)
	p.Work = model.ProcessWork{
		Watched: true, Host: model.HostWork{Enqueued: 10, LastEnqueue: at, LastFinish: at.Add(time.Millisecond)},
		Chips: []model.ChipWork{{
			Device: 0, ChipID: 1, Chip: "L", Work: w.WithTotals(uint64(busy*1e9), uint64(busy*100), model.Exact), LastRecord: at, Longest: 0.01, LongestGap: 3,
			Gaps: []model.Gap{{Length: 3e9, End: t0, After: "softmax"}, {Length: 1e9, End: t0.Add(time.Second)}}, GapsCause: model.GapsUnprofiled,
			Operations: []model.Operation{{Name: "softmax", Calls: 2, Time: uint64(busy * 1e8)}, {Name: "matmul", Calls: 3, Time: uint64(busy * 9e8)}, {Calls: 1, Others: 4}},
		}},
	}
	return p
}

// without takes the figure of a window away, not the totals.
func without(p model.Process, now bool, cause model.WorkCause) model.Process {
	if w := &p.Work.Chips[0].Work; now {
		w.Busy, w.Bound, w.Cause = model.Missing[float64](model.Absent, ""), 0, cause
	}
	return p
}

// A chip that reports nothing for a whole run was not idle for all that is known.
func TestSilentRun(t *testing.T) {
	for _, c := range []struct {
		cause model.WorkCause
		known bool
	}{{"", true}, {model.WorkSilent, false}, {model.WorkUnreported, false}, {model.WorkQueues, false}, {model.WorkUnprofiled, false}, {model.WorkRecordsLost, false}} {
		t.Run(fmt.Sprint(c.cause), func(t *testing.T) {
			b := open(t, t.TempDir())
			var sc scene
			for s := range 11 {
				b.Observe(sc.at(float64(s), without(working(7, 0, ""), c.cause != "", c.cause)))
			}
			if got, known := all(t, b, runs.Query{})[0].Busy(); known != c.known || got.Bound != model.Exact {
				t.Errorf("%q: %+v, known %v", c.cause, got, known)
			}
		})
	}
}

// How busy a run had its device is what its processes report, of the time in which
// it was watched; what they did before is not in it.
func TestWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		list  func(second int) []model.Process
		ratio float64
		bound model.Bound
		cause model.WorkCause
	}{
		{"a chip of the board says nothing", func(s int) []model.Process {
			p := working(7, float64(s)/2, "")
			p.Devices[0].Chips = append(p.Devices[0].Chips, model.ChipUse{ChipID: 2})
			return []model.Process{p}
		}, 0.5, model.AtLeast, model.WorkOtherChip},
		{"one, half busy", func(s int) []model.Process { return []model.Process{working(7, 40+float64(s)/2, "")} }, 0.5, model.Exact, ""},
		{"a second one comes later", func(s int) []model.Process {
			list := []model.Process{working(7, 40+float64(s)/2, "")}
			if s >= 5 {
				child := working(8, float64(s-4)/4, "")
				child.PPID = 7
				list = append(list, child)
			}
			return list
		}, 0.65, model.Exact, ""},
		{"a lossy release", func(s int) []model.Process { return []model.Process{working(7, float64(s)/2, model.WorkLossy)} }, 0.5, model.AtLeast, model.WorkLossy},
		{"what is not reported at the end", func(s int) []model.Process { return []model.Process{working(7, float64(s)/2, model.WorkUnreported)} }, 0.5, model.AtLeast, model.WorkUnreported},
		{"silent at the end", func(s int) []model.Process {
			return []model.Process{without(working(7, float64(s)/2, ""), s == 10, model.WorkSilent)}
		}, 0.5, model.AtLeast, model.WorkSilent},
		{"silent meanwhile", func(s int) []model.Process {
			return []model.Process{without(working(7, float64(s)/2, ""), s == 5, model.WorkSilent)}
		}, 0.5, model.Exact, ""},
		{"records were lost where there is no figure", func(s int) []model.Process {
			return []model.Process{without(working(7, float64(s)/2, ""), s == 5, model.WorkRecordsLost)}
		}, 0.5, model.AtLeast, model.WorkRecordsLost},
		{"another process says nothing", func(s int) []model.Process {
			silent := working(8, 0, "")
			silent.PPID, silent.Work = 7, model.ProcessWork{}
			return []model.Process{working(7, float64(s)/2, ""), silent}
		}, 0.5, model.AtLeast, model.WorkOtherProcess},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, t.TempDir())
			var sc scene
			for s := range 11 {
				b.Observe(sc.at(float64(s), c.list(s)...))
			}
			list := all(t, b, runs.Query{})
			if len(list) != 1 {
				t.Fatalf("%d runs", len(list))
			}
			got, known := list[0].Busy()
			if !known || math.Abs(got.Ratio-c.ratio) > 1e-9 || got.Bound != c.bound || got.Cause != c.cause {
				t.Errorf("%+v %v, want %v %v %q", got, known, c.ratio, c.bound, c.cause)
			}
			if ops := list[0].Operations(); len(ops) != 2 || ops[0].Name != "matmul" {
				t.Errorf("operations %+v", ops)
			}
			if gaps := list[0].Gaps(); len(gaps) < 2 || gaps[0].Seconds != 3 || !gaps[0].End.Equal(t0) || gaps[0].After != "softmax" || gaps[0].Cause != model.GapsUnprofiled {
				t.Errorf("gaps %+v", gaps)
			}
		})
	}
}

// The account of `ttmon run` and that of the server say the same of one run: how
// busy it had the device while it had it open. It takes 12 s until it opens it, and
// 8 s after it has closed it.
func TestBusyIsOneFigure(t *testing.T) {
	kept := open(t, t.TempDir())
	var sc scene
	for s := range 41 {
		kept.Observe(sc.at(float64(s), working(7, float64(s)/2, "")))
	}
	server, known := all(t, kept, runs.Query{})[0].Busy()

	b := runreport.NewBuilder(t0.Add(-12 * time.Second))
	b.Add("a", &ledgerfile.Ledger{PID: 7, Chips: []ledgerfile.Chip{{ID: 1}}, Lists: []ledgerfile.List{{}, {
		State: ledgerfile.Closed, Pool: ledgerfile.DRAM, Banks: 1, Chips: []int{0}, Made: t0, Closed: t0.Add(40 * time.Second),
	}}}, false)
	b.AddWork("a", &ledgerfile.Work{
		Host:  ledgerfile.HostWork{Enqueued: 4, LastEnqueue: t0, LastFinish: t0.Add(39 * time.Second), Queues: 1},
		Chips: []ledgerfile.ChipWork{{State: ledgerfile.WorkOn, Programs: 4, Busy: 20 * time.Second}},
	}, t0.Add(48*time.Second))
	own, ownKnown := b.Report(t0.Add(48*time.Second), nil).Run.Devices[0].Busy()

	if !known || !ownKnown || server.Ratio != 0.5 || own.Ratio != server.Ratio {
		t.Errorf("ttmon runs says %v, ttmon run %v, and it was 0.5", server.Ratio, own.Ratio)
	}
}

// A run that holds memory and has its chips do nothing is idle since its last
// program; one that waits, or of which nothing is known, is not.
func TestIdle(t *testing.T) {
	b := open(t, t.TempDir())
	var sc scene
	step := 0
	idle := func(change func(*model.Process)) time.Time {
		step++
		p := working(7, 3, "")
		change(&p)
		b.Observe(sc.at(float64(100+step), p))
		return all(t, b, runs.Query{})[0].IdleSince
	}
	if got := idle(func(*model.Process) {}); !got.Equal(t0.Add(3 * time.Second)) {
		t.Errorf("idle since %v", got)
	}
	for name, change := range map[string]func(*model.Process){
		"waits":         func(p *model.Process) { p.Work.Host.WaitingSince = t0 },
		"has work":      func(p *model.Process) { p.Work.Host.LastFinish = t0 },
		"not watched":   func(p *model.Process) { p.Work = model.ProcessWork{} },
		"holds nothing": func(p *model.Process) { p.Devices[0].Memory[model.DRAM] = model.ExactBytes(0) },
	} {
		t.Run(name, func(t *testing.T) {
			if got := idle(change); !got.IsZero() {
				t.Errorf("idle since %v", got)
			}
		})
	}
}
