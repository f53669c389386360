package text

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

// runsAnswer has a run that ended well, one that was killed and left something,
// and one that runs and of whose memory nothing is known.
func runsAnswer() *runs.Answer {
	at := time.Date(2026, 11, 15, 2, 14, 0, 0, time.UTC)
	zero := 0
	pool := func(peak uint64, bound string) runs.Pool {
		return runs.Pool{Peak: peak, PeakBound: bound, PeakAt: at.Add(31 * time.Second), Mean: float64(peak) / 2, MeanBound: "exact", Seconds: 2400}
	}
	first := runs.Run{
		ID: 317, Host: "lab-3", Start: at.Add(-24 * time.Hour), Seen: at.Add(-24 * time.Hour), Last: at.Add(-24*time.Hour + 38*time.Minute), Observed: 2280,
		End:       runs.Ending{Kind: runs.Exited, At: at.Add(-24*time.Hour + 38*time.Minute), Code: &zero},
		Processes: []runs.Process{{PID: 4242, StartTicks: 7, Name: "python"}}, Pools: map[string]runs.Pool{"dram": pool(16<<30, "at_least")},
		Devices: []runs.Device{{
			Index: 0, BusID: "0000:01:00.0", Board: "n300", Open: 2280, Pools: map[string]runs.Pool{"dram": pool(16<<30, "at_least"), "l1": pool(0, "at_least")},
			Chips: []runs.Chip{
				{ID: "1", Name: "L", Pools: map[string]runs.Pool{"dram": pool(12<<30, "at_least")}},
				{ID: "2", Name: "R", Pools: map[string]runs.Pool{"dram": pool(4<<30, "unsure")}},
			},
			Power: &runs.Stat{Mean: 90, Max: 140, MaxAt: at, Seconds: 2280}, Energy: 205200, Temperature: &runs.Stat{Mean: 60, Max: 71.4, MaxAt: at, Seconds: 2280},
			Clock: &runs.Stat{Mean: 990, Max: 1000, MaxAt: at, Seconds: 2280}, Activity: &runs.Stat{Mean: 0.81, Max: 1, MaxAt: at, Seconds: 2280},
			Work: []runs.Work{{
				PID: 7, Chip: "1", Name: "L", Busy: 1710, Programs: 4200000, Bound: "at_least", Cause: model.WorkLossy, Longest: 0.4,
				Operations: []runs.Operation{{Name: "MatmulDeviceOperation", Calls: 2100000, Seconds: 1200}, {Name: "Layer\x1bNorm", Calls: 2100000, Seconds: 510}},
				Gap:        95, GapsCause: model.GapsLossy, Gaps: []runs.Gap{
					{Seconds: 95, End: at.Add(-24*time.Hour + 12*time.Minute), After: "Layer\x1bNorm"}, {Seconds: 0.041, End: at.Add(-24*time.Hour + 31*time.Second)},
				},
			}, {PID: 8, Chip: "2", Name: "R", Bound: "exact", Gap: 3}},
			PCIe: &runs.PCIe{ToDevice: 5 << 30, FromDevice: 1 << 20, Bound: "exact"}, Trouble: map[model.ConditionKind]float64{model.ConditionThrottled: 41},
		}},
	}
	first.Who = runs.Who{UID: 1000, User: "anna", Name: "python", Command: "python train.py --model, big", Job: &runs.Job{Kind: runs.JobSlurm, ID: "4702"}, Release: "0.81.1"}
	first.Failures = &runs.Failures{}
	second := runs.Run{
		ID: 318, Host: "lab-3", Start: at, Seen: at, Last: at.Add(41 * time.Minute), Observed: 2300, Unseen: 160,
		End:   runs.Ending{Kind: runs.Killed, Signal: 9, At: at.Add(41 * time.Minute)},
		Pools: map[string]runs.Pool{"dram": pool(18<<30, "unsure")}, Processes: []runs.Process{{PID: 1}, {PID: 2}},
		Devices: []runs.Device{
			{Index: 0, Board: "n300", Open: 2300, Shared: 30, Resets: 1, Power: &runs.Stat{Mean: 1000, Seconds: 2300}, Energy: 2.3e6, Pools: map[string]runs.Pool{"dram": pool(18<<30, "unsure")}},
			{Index: 1, Board: "n300", Open: 2300, Power: &runs.Stat{Mean: 1000, Seconds: 2300}, Energy: 2.3e6},
			{Index: 2, Board: "p150a", Open: 2300},
		},
		Neighbours: []runs.Neighbour{{ID: 316, UID: 0, User: "root", Name: "evil\x1b[2J", Devices: []int{0}, Seconds: 30}, {ID: 315, UID: -1, Devices: []int{0}, Seconds: 3}},
		Left:       []runs.Left{{PID: 2, Region: "/dev/shm/tt_device_1_memory", Device: 0, Bytes: map[string]uint64{"l1": 2202009}, Bound: "exact"}},
	}
	second.Who = runs.Who{UID: 1001, Name: "serve\x1b"}
	third := runs.Run{ID: 319, Start: at.Add(time.Hour), Last: at.Add(2 * time.Hour), End: runs.Ending{Kind: runs.Running}, Devices: []runs.Device{{Index: -1}}}
	third.UID, third.Failures = -1, &runs.Failures{Count: 3, Last: at, Pool: "l1", Clash: true}
	one := 1
	fourth := runs.Run{
		ID: 320, Start: at.Add(3 * time.Hour), Seen: at.Add(3 * time.Hour), Last: at.Add(3*time.Hour + time.Minute), Devices: []runs.Device{{Index: 0}}, Processes: []runs.Process{{PID: 9, Failures: 1}},
		End:      runs.Ending{Kind: runs.Exited, Code: &one, At: at.Add(3*time.Hour + time.Minute), NoRoom: true},
		Failures: &runs.Failures{Count: 1, Last: at.Add(3*time.Hour + time.Minute), ID: "f12", Pool: "l1_small"},
	}
	fourth.Who = runs.Who{UID: 1000, User: "anna", Command: "python oom.py"}
	first.Lines = &runs.PeakLines{Lost: 2, Lines: []runs.PeakLine{
		{Line: runs.Line{Pool: "dram", File: "/home/anna/model.py", Line: 88, Tag: "kv_cache"}, AtPeak: 12 << 30, Allocs: 640},
		{Line: runs.Line{Pool: "dram", Tag: "weights"}, AtPeak: 4 << 30, Allocs: 1},
		{Line: runs.Line{Pool: "l1_small"}, AtPeak: 1 << 20, Allocs: 3},
	}}
	second.NoLines, fourth.NoLines = runs.OtherUser, runs.NotTraced
	return &runs.Answer{Time: at.Add(10 * time.Hour), Runs: []runs.Run{first, second, third, fourth}, More: true}
}

func TestRuns(t *testing.T) {
	o := Options{Zone: time.UTC}
	a := runsAnswer()
	golden.Check(t, "testdata/runs.golden", AppendRuns(nil, a, o))
	golden.Check(t, "testdata/runs.csv.golden", AppendRunsCSV(nil, a))
	var b []byte
	for i := range a.Runs {
		b = AppendRun(b, &a.Runs[i], a.Time, o)
	}
	golden.Check(t, "testdata/run.golden", b)
	o.Width = 80
	golden.Check(t, "testdata/runs80.golden", AppendRuns(nil, a, o))
	for line := range strings.Lines(string(AppendRuns(nil, a, o))) {
		if n := len([]rune(strings.TrimSpace(line))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	if got := string(AppendRuns(nil, &runs.Answer{}, o)); got != "no run\n" {
		t.Errorf("%q", got)
	}
}

func TestComparison(t *testing.T) {
	a := runsAnswer()
	side := func(name string, list ...runs.Run) *compare.Side {
		s, err := compare.NewSide(name, list...)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	o := Options{Zone: time.UTC}
	c := compare.Compare(side("r317", a.Runs[0]), side("r318", a.Runs[1]))
	b := AppendComparison(nil, c, false, 15, o)
	b = append(append(b, '\n'), AppendComparison(nil, compare.Compare(side("before", a.Runs[0], a.Runs[0]), side("r317", a.Runs[0])), false, 15, o)...)
	b = append(append(b, '\n'), AppendComparison(nil, compare.Compare(side("before", a.Runs[0]), side("r317", a.Runs[0])), false, 15, o)...)
	b = append(append(b, '\n'), AppendComparison(nil, compare.Compare(side("r317", a.Runs[0]), side("r320", a.Runs[3])), false, 15, o)...)
	golden.Check(t, "testdata/comparison.golden", b)

	cache, weights := runs.Line{Pool: "dram", File: "/home/anna/model.py", Line: 88, Tag: "kv_cache"}, runs.Line{Pool: "dram"}
	x, y := side("a.ttrec", a.Runs[0]), side("b.ttrec", a.Runs[1])
	x.Recorded, y.Recorded = true, true
	x.Lines = &runs.Lines{Used: map[runs.Line]runs.LineUse{cache: {Peak: 4 << 30, AtPeak: 4 << 30, Allocs: 4}, weights: {Peak: 8 << 30, Held: 2 << 20, Allocs: 1}}}
	only := string(AppendComparison(nil, compare.Compare(x, y), false, 15, o))
	y.Lines = &runs.Lines{Used: map[runs.Line]runs.LineUse{cache: {Peak: 6 << 30, AtPeak: 6 << 30, Allocs: 6}}, Lost: 3}
	c = compare.Compare(x, y)
	b = append(AppendComparison(nil, c, false, 15, o), AppendComparison(nil, c, false, 1, o)...)
	golden.Check(t, "testdata/comparison-lines.golden", b)
	z := a.Runs[0].Clone()
	z.ID = 321
	z.Devices[0].Work = slices.Clone(z.Devices[0].Work)
	z.Devices[0].Work[0].Operations = []runs.Operation{{Name: "MatmulDeviceOperation", Calls: 2100000, Seconds: 1350}, {Name: "Layer\x1bNorm", Calls: 1900000, Seconds: 500}, {Name: "Softmax", Calls: 7, Seconds: 0.3}}
	p, q := side("r317", a.Runs[0]), side("r321", z)
	p.Lines, q.Lines = x.Lines.AtPeak(), y.Lines.AtPeak()
	golden.Check(t, "testdata/comparison-operations.golden", AppendComparison(nil, compare.Compare(p, q), false, 15, o))
	if !strings.Contains(only, "lines of code cannot be compared, B has none: ") {
		t.Error(only)
	}
}
