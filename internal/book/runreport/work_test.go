package runreport

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// ran is what a process reports of a chip that it knows as 0.
func ran(busy time.Duration, change func(*ledgerfile.Work)) *ledgerfile.Work {
	w := &ledgerfile.Work{
		Host: ledgerfile.HostWork{Enqueued: 4, LastEnqueue: time.Unix(10, 0), LastFinish: time.Unix(11, 0), Queues: 1},
		Chips: []ledgerfile.ChipWork{{
			State: ledgerfile.WorkOn, Programs: 4, Busy: busy, Gap: 100 * time.Millisecond, Longest: busy / 2, LongestName: "matmul",
			LongestGap: 3 * time.Second, GapsKept: true,
			LongestGaps: []ledgerfile.Gap{{Length: 3 * time.Second, End: time.Unix(1004, 0), After: "softmax"}, {Length: time.Second, End: time.Unix(1007, 0)}},
			Ops:         []ledgerfile.Op{{Name: "softmax", Calls: 2, Time: busy / 4, Longest: busy / 8}, {Name: "matmul", Calls: 2, Time: busy * 3 / 4, Longest: busy / 2}},
		}},
	}
	if change != nil {
		change(w)
	}
	return w
}

func TestWorkOfARun(t *testing.T) {
	started := time.Unix(1000, 0)
	ledger := func(pid int) *ledgerfile.Ledger {
		return &ledgerfile.Ledger{PID: pid, Library: "/x/site-packages/ttnn/y.so", Chips: []ledgerfile.Chip{{ID: 99, Logical: 0, Open: true}}, Lists: []ledgerfile.List{{}, {
			State: ledgerfile.Closed, Banks: 1, Chips: []int{0}, Made: started.Add(2 * time.Second), Closed: started.Add(12 * time.Second),
		}}}
	}
	for _, c := range []struct {
		name  string
		work  []*ledgerfile.Work // of each process
		ratio float64
		bound model.Bound
		cause model.WorkCause
		gaps  model.GapCause
	}{
		{"one process", []*ledgerfile.Work{ran(2*time.Second, nil)}, 0.2, model.Exact, "", ""},
		{"two", []*ledgerfile.Work{ran(2*time.Second, nil), ran(4*time.Second, nil)}, 0.6, model.Exact, "", model.GapsProcesses},
		{"a lossy release", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Chips[0].Loss = ledgerfile.WorkLossy })}, 0.2, model.AtLeast, model.WorkLossy, model.GapsLossy},
		{"two queues", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Host.Queues = 2 })}, 0.2, model.AtLeast, model.WorkQueues, model.GapsQueues},
		{"attached when its queues were there", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Host.Queues = 0 })}, 0.2, model.AtLeast, model.WorkQueues, model.GapsQueues},
		{"no ids", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Chips[0].Unprofiled = 3 })}, 0.2, model.AtLeast, model.WorkUnprofiled, model.GapsUnprofiled},
		{"killed in a program", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Host.LastFinish = time.Unix(9, 0) })}, 0.2, model.AtLeast, model.WorkUnreported, ""},
		{"fewer records than programs", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Host.Enqueued = 12 })}, 0.2, model.AtLeast, model.WorkUnreported, ""},
		{"one that says nothing", []*ledgerfile.Work{ran(2*time.Second, nil), {Chips: []ledgerfile.ChipWork{{State: ledgerfile.WorkOn, Loss: ledgerfile.WorkUnreadable}}}}, 0.2, model.AtLeast, model.WorkLayout, model.GapsOtherProcess},
		{"an older libttmon", []*ledgerfile.Work{ran(2*time.Second, func(w *ledgerfile.Work) { w.Chips[0].GapsKept, w.Chips[0].LongestGaps = false, nil })}, 0.2, model.Exact, "", model.GapsNotKept},
		{"nonsense", []*ledgerfile.Work{ran(200*time.Second, nil)}, 1, model.Unsure, model.WorkTooMuch, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := NewBuilder(started)
			for i, w := range c.work {
				path := string(rune('a' + i))
				b.Add(path, ledger(i), true)
				b.AddWork(path, w, started.Add(5*time.Second))
				b.Add(path, ledger(i), false)
				b.AddWork(path, w, started.Add(9*time.Second))
			}
			d := b.Report(started.Add(20*time.Second), nil).Run.Devices
			if len(d) != 1 || len(d[0].WorkOfChips()) != 1 {
				t.Fatalf("devices %+v", d)
			}
			w := d[0].WorkOfChips()[0]
			if w.Ratio != c.ratio || w.Bound != c.bound || w.Cause != c.cause || !w.Known {
				t.Errorf("%v %v %q, want %v %v %q", w.Ratio, w.Bound, w.Cause, c.ratio, c.bound, c.cause)
			}
			if got, known := d[0].Busy(); got != w.Busyness || !known {
				t.Errorf("the device says %+v, its chip %+v", got, w.Busyness)
			}
			wantGaps := []runs.Gap{{Seconds: 3, End: time.Unix(1004, 0), After: "softmax"}, {Seconds: 1, End: time.Unix(1007, 0)}}
			switch c.name {
			case "two":
				wantGaps = []runs.Gap{wantGaps[0], wantGaps[0], wantGaps[1], wantGaps[1]}
			case "an older libttmon":
				wantGaps = nil
			}
			if diff := cmp.Diff(wantGaps, w.Gaps); diff != "" || w.GapsCause != c.gaps {
				t.Errorf("gaps %q, want %q\n%s", w.GapsCause, c.gaps, diff)
			}
			if w.Gap != 3 || w.Operations[0].Name != "matmul" {
				t.Errorf("gap %v, first operation %q", w.Gap, w.Operations[0].Name)
			}
		})
	}
}

// A chip that reports nothing has a reason, and no figure.
func TestNoWorkOfARun(t *testing.T) {
	for release, want := range map[string]model.WorkCause{"ttnn 0.70.1": model.WorkNoProfiler, "ttnn 0.81.1": model.WorkProfilerOff, "": model.WorkProfilerOff, "ttnn 1.2": model.WorkProfilerOff} {
		t.Run(release, func(t *testing.T) {
			if got := silentCause(release); got != want {
				t.Errorf("%q: %q, want %q", release, got, want)
			}
		})
	}
	b := NewBuilder(time.Unix(0, 0))
	b.Add("a", &ledgerfile.Ledger{Chips: []ledgerfile.Chip{{ID: 5}}, Lists: []ledgerfile.List{{}, {
		State: ledgerfile.Open, Pool: ledgerfile.L1, Chips: []int{0}, Total: ledgerfile.Sum{Bytes: 1, Blocks: 1},
	}}}, true)
	if d := b.Report(time.Unix(2, 0), nil).Run.Devices; len(d) != 1 || len(d[0].Work) > 0 {
		t.Errorf("work was not requested, and there is a reason why there is none: %+v", d)
	}
	b.AddWork("a", nil, time.Unix(1, 0))
	w := b.Report(time.Unix(2, 0), nil).Run.Devices[0].Work
	if got, err := json.Marshal(w); err != nil || len(w) != 1 || w[0].Cause != model.WorkProfilerOff || !strings.Contains(string(got), `"busy_bound":""`) {
		t.Errorf("%s %v", got, err)
	}
}

func TestWorkProperties(t *testing.T) {
	started := time.Unix(1000, 0)
	at := func(seconds int) time.Time { return started.Add(time.Duration(seconds) * time.Second) }
	late := 0.0
	r := &Report{Run: runs.Run{Start: started, Last: at(10), Devices: []runs.Device{{Open: 10, Work: []runs.Work{
		{
			Chip: "7", Busy: 2.5, Programs: 4, Bound: "at_least", Cause: model.WorkLossy, Late: &late,
			Operations: []runs.Operation{{Name: "matmul", Calls: 3, Seconds: 2, Longest: 1}}, Gap: 3, GapsCause: model.GapsLossy,
			Gaps: []runs.Gap{{Seconds: 3, End: at(4), After: "softmax"}, {Seconds: 1, End: at(7)}, {Seconds: 0.5, End: at(8)}, {Seconds: 0.25, End: at(9)}},
		},
		{Chip: "8", Cause: model.WorkProfilerOff},
	}}}}}
	want := []property{
		{"chip7.busy_cause", "lossy_release"},
		{"chip7.busy_ratio", "0.2500"},
		{"chip7.busy_bound", "at_least"},
		{"chip7.busy_s", "2.500000"},
		{"chip7.programs", "4"},
		{"chip7.host_late_s", "0.000000"},
		{"chip7.longest_gap_s", "3.000000"},
		{"chip7.gap1_s", "3.000000"},
		{"chip7.gap1_until_s", "4.000000"},
		{"chip7.gap1_after", "softmax"},
		{"chip7.gap2_s", "1.000000"},
		{"chip7.gap2_until_s", "7.000000"},
		{"chip7.gap3_s", "0.500000"},
		{"chip7.gap3_until_s", "8.000000"},
		{"chip7.gaps_cause", "lossy_release"},
		{"chip7.operation1", "matmul"},
		{"chip7.operation1_s", "2.000000"},
		{"chip7.operation1_calls", "3"},
		{"chip8.busy_cause", "profiler_off"},
	}
	if diff := cmp.Diff(want, workProperties(&r.Run), cmp.AllowUnexported(property{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if xml := string(JUnit(r, Limits{})); !strings.Contains(xml, `<property name="chip7.operation1" value="matmul"></property>`) {
		t.Errorf("no properties in\n%s", xml)
	}
}

// Programs were enqueued and none was reported: that is not "busy 0 %".
func TestWorkWithoutRecords(t *testing.T) {
	for name, chips := range map[string][]ledgerfile.ChipWork{"a chip that reports none": {{State: ledgerfile.WorkOn}}, "no chip reports": nil} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(time.Unix(1000, 0))
			l := &ledgerfile.Ledger{PID: 7, Chips: []ledgerfile.Chip{{ID: 99}}, Lists: []ledgerfile.List{{}, {
				State: ledgerfile.Closed, Banks: 1, Chips: []int{0}, Total: ledgerfile.Sum{Bytes: 64, Blocks: 1},
			}}}
			b.Add("a", l, false)
			b.AddWork("a", &ledgerfile.Work{Host: ledgerfile.HostWork{Enqueued: 2, Queues: 1}, Chips: chips}, time.Unix(1001, 0))
			if w := b.Report(time.Unix(1002, 0), nil).Run.Devices[0].WorkOfChips(); len(w) != 1 || w[0].Known || w[0].Cause == "" {
				t.Errorf("%+v", w)
			}
		})
	}
}
