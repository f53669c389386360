package keep

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

var t0 = time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)

// scene is a host whose snapshots a test makes.
type scene struct {
	power, temperature float64
	to, from           uint64
	state              model.State
	condition          model.ConditionKind
	ghosts             []model.StaleSlot
	exits              []model.Exit
}

func (sc *scene) at(second float64, list ...model.Process) *model.Snapshot {
	s := &model.Snapshot{Time: t0.Add(time.Duration(second * float64(time.Second))), Processes: list, StaleSlots: sc.ghosts, Exits: sc.exits, Assessed: true}
	s.Host.Name = "lab"
	for i := range 2 {
		d := model.Device{Index: i, BusID: fmt.Sprintf("0000:0%d:00.0", i+1), Board: model.Value("n300"), State: model.StateOK}
		if sc.state != "" {
			d.State = sc.state
		}
		d.Power, d.Temperature = model.Value(sc.power), model.Value(sc.temperature)
		d.PCIe.ToDeviceTotal, d.PCIe.FromDeviceTotal = model.Value(sc.to), model.Value(sc.from)
		d.Chips = []model.Chip{{ID: model.Value(uint64(10*i + 1)), Name: "L"}, {ID: model.Value(uint64(10*i + 2)), Name: "R", Remote: true}}
		s.Devices = append(s.Devices, d)
		if sc.condition != "" {
			s.Conditions = append(s.Conditions, model.Condition{Kind: sc.condition, Level: model.Warning, Device: i})
		}
	}
	return s
}

// program is a process that holds DRAM on both chips of a device.
func program(pid, device int, left, right uint64) model.Process {
	p := model.Process{
		PID: pid, StartTicks: uint64(pid), StartTime: t0.Add(-time.Second), State: model.Running,
		UID: model.Value(1000), User: model.Value("anna"), Name: model.Value("python3"), Cmdline: model.Value("python3 train.py"),
		Devices: []model.DeviceUse{{Device: device, Chips: []model.ChipUse{{ChipID: uint64(10*device + 1)}, {ChipID: uint64(10*device + 2)}}}},
	}
	u := &p.Devices[0]
	u.Chips[0].Memory[model.DRAM], u.Chips[1].Memory[model.DRAM] = model.ExactBytes(left), model.ExactBytes(right)
	u.Memory[model.DRAM] = model.ExactBytes(left + right)
	return p
}

func begin(t *testing.T, dir string) *Book {
	b := New(Options{Dir: dir, Report: func(err error) { t.Error(err) }})
	b.Restore()
	return b
}

func open(t *testing.T, dir string) *Book {
	t.Helper()
	b := begin(t, dir)
	t.Cleanup(b.Close)
	return b
}

func all(t *testing.T, b *Book, q runs.Query) []runs.Run {
	t.Helper()
	list, _, err := b.Find(q)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func only(t *testing.T, b *Book) runs.Run {
	t.Helper()
	list := all(t, b, runs.Query{})
	if len(list) != 1 {
		t.Fatalf("%d runs: %+v", len(list), list)
	}
	return list[0]
}

// Peaks, means, energy and the rest are what the samples say.
func TestFigures(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{power: 100, temperature: 50, to: 1000, from: 500}
	b.Observe(sc.at(0, program(7, 0, 10, 20)))
	sc.power, sc.temperature, sc.to, sc.from, sc.condition = 200, 70, 1600, 700, model.ConditionThrottled
	b.Observe(sc.at(2, program(7, 0, 30, 20)))
	sc.power, sc.condition = 100, ""
	b.Observe(sc.at(3, program(7, 0, 0, 20)))
	code := 3
	sc.exits = []model.Exit{{ID: model.ProcessID{PID: 7, StartTicks: 7}, Time: t0.Add(3500 * time.Millisecond), Status: model.Value(code << 8)}}
	b.Observe(sc.at(4))
	b.Observe(sc.at(20))
	r := only(t, b)
	d := r.Devices[0]
	got := map[string]float64{
		"observed": r.Observed, "unseen": r.Unseen, "took": r.Took().Seconds(), "open": d.Open,
		"peak": float64(r.Pool(model.DRAM).Peak), "mean": r.Pool(model.DRAM).Mean, "device peak": float64(d.Pools["dram"].Peak),
		"left peak": float64(d.Chips[0].Pools["dram"].Peak), "left mean": d.Chips[0].Pools["dram"].Mean, "right mean": d.Chips[1].Pools["dram"].Mean,
		"energy": d.Energy, "power mean": d.Power.Mean, "power max": d.Power.Max, "heat": d.Temperature.Max,
		"to": float64(d.PCIe.ToDevice), "from": float64(d.PCIe.FromDevice), "throttled": d.Trouble[model.ConditionThrottled], "exit": float64(*r.End.Code),
	}
	want := map[string]float64{
		"observed": 3, "unseen": 0, "took": 4.5, "open": 3,
		"peak": 50, "mean": (40*2 + 35.0) / 3, "device peak": 50, "left peak": 30, "left mean": (20*2 + 15.0) / 3, "right mean": 20,
		"energy": 150*2 + 150, "power mean": 150, "power max": 200, "heat": 70,
		"to": 600, "from": 200, "throttled": 1, "exit": 3,
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, near); diff != "" {
		t.Error(diff)
	}
	if p := r.Pool(model.DRAM); p.PeakBound != "at_least" || p.MeanBound != "unsure" || p.HeldBound != "exact" || !p.PeakAt.Equal(t0.Add(2*time.Second)) {
		t.Errorf("%+v", p)
	}
	if !r.End.Failed() || r.End.Kind != runs.Exited || r.User != "anna" || r.Command != "python3 train.py" || r.Host != "lab" {
		t.Errorf("%+v", r)
	}
	if _, known := r.Pools["l1"]; known {
		t.Error("a figure of what no source accounts for")
	}
}

// A figure that is missing for a while is not 0 meanwhile, and doubt stays.
func TestDoubt(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{power: 10}
	p := program(7, 0, 10, 10)
	b.Observe(sc.at(0, p))
	b.Observe(sc.at(1, p))
	unknown := program(7, 0, 0, 0)
	unknown.Devices[0].Memory[model.DRAM] = model.NoBytes(model.Denied)
	b.Observe(sc.at(2, unknown))
	doubtful := program(7, 0, 0, 0)
	doubtful.Devices[0].Memory[model.DRAM] = model.BoundBytes(100, model.Unsure)
	b.Observe(sc.at(3, doubtful))
	b.Observe(sc.at(4, doubtful))
	r := only(t, b)
	x := r.Pool(model.DRAM)
	if x.Seconds != 2 || x.Mean != 60 || x.MeanBound != "unsure" || x.Peak != 100 || x.PeakBound != "unsure" {
		t.Errorf("%+v", x)
	}
}

// Time without snapshots is no part of means and energy, and is reported.
func TestGap(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{power: 100, to: 5000}
	b.Observe(sc.at(0, program(7, 0, 10, 0)))
	b.Observe(sc.at(1, program(7, 0, 10, 0)))
	sc.to = 10 // ttmond was restarted
	b.Observe(sc.at(101, program(7, 0, 90, 0)))
	sc.to = 30
	b.Observe(sc.at(102, program(7, 0, 90, 0)))
	r := only(t, b)
	d := r.Devices[0]
	if r.Unseen != 100 || r.Observed != 2 || d.Energy != 200 || r.Pool(model.DRAM).Mean != 50 || d.PCIe.ToDevice != 20 || d.PCIe.Bound != "at_least" {
		t.Errorf("%+v %+v %+v", r, d, d.PCIe)
	}
}

// A pool that is unknown for a while has a mean of the rest. No mean is exact: it is
// of samples, and of a part of the run.
func TestHole(t *testing.T) {
	known, unknown := program(7, 0, 10, 10), program(7, 0, 10, 10)
	unknown.Devices[0].Memory[model.DRAM] = model.NoBytes(model.Denied)
	for name, c := range map[string]struct {
		seen    string // k: known, u: unknown
		bound   string
		seconds float64
	}{
		"always known":           {"kkkk", "unsure", 3},
		"unknown in the middle":  {"kkukk", "unsure", 2},
		"unknown twice":          {"kkuukkuk", "unsure", 2},
		"unknown at first":       {"uukkk", "unsure", 2},
		"unknown in the end":     {"kkkuu", "unsure", 2},
		"never known for a time": {"kuk", "", 0},
		"one sample, then none":  {"kukk", "unsure", 1},
	} {
		t.Run(name, func(t *testing.T) {
			b := open(t, t.TempDir())
			sc := &scene{power: 10}
			for i, k := range c.seen {
				b.Observe(sc.at(float64(i), map[rune]model.Process{'k': known, 'u': unknown}[k]))
			}
			r := only(t, b)
			if x := r.Pool(model.DRAM); x.MeanBound != c.bound || x.Seconds != c.seconds || c.seconds > 0 && x.Mean != 20 {
				t.Errorf("%+v", x)
			}
		})
	}
}

// The longest step is that between two snapshots that were counted, not a gap.
func TestStep(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{power: 10}
	for _, at := range []float64{0, 1, 3.5, 4.5, 60, 61} {
		b.Observe(sc.at(at, program(7, 0, 10, 0)))
	}
	if r := only(t, b); r.Step != 2.5 || r.Unseen != 55.5 {
		t.Errorf("step %v, unseen %v", r.Step, r.Unseen)
	}
}

// One late snapshot is no gap, and what is one follows the interval.
func TestLateSnapshot(t *testing.T) {
	for name, c := range map[string]struct {
		interval time.Duration
		after    float64
		unseen   float64
	}{
		"one is late":                {time.Second, 2.5, 0},
		"three are missing":          {time.Second, 4, 4},
		"at long intervals":          {10 * time.Second, 25, 0},
		"missing at long intervals":  {10 * time.Second, 31, 31},
		"missing at short intervals": {100 * time.Millisecond, 2, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := New(Options{Dir: t.TempDir(), Interval: func() time.Duration { return c.interval }, Report: func(err error) { t.Error(err) }})
			b.Restore()
			t.Cleanup(b.Close)
			sc := &scene{power: 100}
			b.Observe(sc.at(0, program(7, 0, 10, 0)))
			b.Observe(sc.at(c.after, program(7, 0, 10, 0)))
			if r := only(t, b); r.Unseen != c.unseen || r.Observed != c.after-c.unseen {
				t.Errorf("unseen %v, observed %v", r.Unseen, r.Observed)
			}
		})
	}
}

// A program and its children are one run; another program is another.
func TestDescendants(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	child := program(8, 1, 5, 5)
	child.PPID = 7
	other := program(9, 0, 1, 1)
	other.PPID, other.UID, other.User = 1, model.Value(1001), model.Value("ben")
	for i := range 3 {
		b.Observe(sc.at(float64(i), program(7, 0, 10, 10), child, other))
	}
	list := all(t, b, runs.Query{})
	if len(list) != 2 || len(list[0].Processes) != 2 || list[0].Pool(model.DRAM).Peak != 30 || len(list[0].Devices) != 2 {
		t.Fatalf("%+v", list)
	}
	a, o := list[0], list[1]
	if a.Devices[0].Shared != 2 || a.Devices[1].Shared != 0 || len(a.Neighbours) != 1 || a.Neighbours[0].User != "ben" || a.Neighbours[0].Seconds != 2 || o.Neighbours[0].ID != a.ID {
		t.Errorf("%+v\n%+v", a, o)
	}
	// The parent exits first: the run lasts as long as the child.
	b.Observe(sc.at(3, child))
	b.Observe(sc.at(4, child))
	if r := all(t, b, runs.Query{Names: []string{a.RunName()}})[0]; r.End.Kind != runs.Running || r.Name != "python3" {
		t.Errorf("%+v", r.End)
	}
}

// The name of a run's user is that of its uid: also of a program that root starts and
// that then becomes another user, and of one whose user cannot be read any longer.
func TestUserOfRun(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	p := program(7, 0, 10, 10)
	for i, c := range []struct {
		name string
		uid  model.Reading[int]
		user model.Reading[string]
		want runs.Who
	}{
		{"root starts it", model.Value(0), model.Value("root"), runs.Who{UID: 0, User: "root"}},
		{"it becomes another user", model.Value(1), model.Value("daemon"), runs.Who{UID: 1, User: "daemon"}},
		{"its name is denied", model.Value(1), model.Missing[string](model.Denied, ""), runs.Who{UID: 1, User: "daemon"}},
		{"both are", model.Missing[int](model.Denied, ""), model.Missing[string](model.Denied, ""), runs.Who{UID: 1, User: "daemon"}},
		{"it becomes one without a name", model.Value(1000), model.Missing[string](model.Denied, ""), runs.Who{UID: 1000}},
	} {
		p.UID, p.User = c.uid, c.user
		b.Observe(sc.at(float64(i), p))
		r := only(t, b)
		t.Run(c.name, func(t *testing.T) {
			if r.UID != c.want.UID || r.User != c.want.User {
				t.Errorf("uid %d, user %q, want %d %q", r.UID, r.User, c.want.UID, c.want.User)
			}
		})
	}
}

// What a dead process left is found after it is gone, once.
func TestLeft(t *testing.T) {
	b := open(t, t.TempDir())
	sc := &scene{}
	old := model.StaleSlot{Region: "/dev/shm/a", Device: 0, PID: 7, Name: "python3", Updated: t0.Add(-time.Hour)}
	old.Bytes[model.DRAM] = model.ExactBytes(99)
	sc.ghosts = []model.StaleSlot{old}
	b.Observe(sc.at(0, program(7, 0, 10, 10)))
	mine := old
	mine.Region, mine.Updated = "/dev/shm/b", t0
	mine.Bytes[model.L1], mine.Bytes[model.DRAM] = model.BoundBytes(2, model.Unsure), model.Bytes{}
	sc.ghosts = append(sc.ghosts, mine)
	for i := range 30 {
		b.Observe(sc.at(float64(1 + i)))
	}
	r := only(t, b)
	if n, bound := r.LeftBytes(); n != 2 || bound != model.Unsure || len(r.Left) != 1 {
		t.Errorf("%+v", r.Left)
	}
	if len(all(t, b, runs.Query{Leaked: true})) != 1 || len(all(t, b, runs.Query{Failed: true})) != 0 {
		t.Error("--leaked or --failed lists the wrong runs")
	}
}

// A run whose device was reset under it says so, also where it is gone by the time
// the reset is seen; one that was stopped first was not ended by that.
func TestReset(t *testing.T) {
	for _, tt := range []struct {
		name   string
		status model.Reading[int]
		alive  bool // it is still there while the device is reset
		resets int
		want   bool
	}{
		{"it lives through it", model.Value(0), true, 1, false},
		{"it aborts with it", model.Value(6), false, 0, true},
		{"it fails with it", model.Value(1 << 8), false, 0, true},
		{"its status is not known", model.Missing[int](model.Unsupported, ""), false, 0, true},
		{"it was killed, and its device reset", model.Value(9), false, 0, false},
		{"it exited in good order", model.Value(0), false, 0, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b := open(t, t.TempDir())
			sc := &scene{power: 100}
			b.Observe(sc.at(0, program(7, 0, 10, 20)))
			sc.state = model.StateResetting
			if tt.alive {
				b.Observe(sc.at(1, program(7, 0, 10, 20)))
			}
			sc.exits = []model.Exit{{ID: model.ProcessID{PID: 7, StartTicks: 7}, Time: t0.Add(time.Second), Status: tt.status}}
			b.Observe(sc.at(2))
			b.Observe(sc.at(20))
			r := only(t, b)
			if r.Devices[0].Resets != tt.resets || r.End.Reset != tt.want {
				t.Errorf("%d resets, %+v", r.Devices[0].Resets, r.End)
			}
			if unknown := r.End.Unknown == runs.OldKernel; unknown == tt.status.Known() {
				t.Errorf("%+v", r.End)
			}
		})
	}
}

// A command line is cut between two characters, never within one.
func TestTruncate(t *testing.T) {
	for _, tt := range []struct {
		name, in string
		want     int
	}{
		{"short", "a b", 3},
		{"long", strings.Repeat("a", maxCommand+1), maxCommand},
		{"in a character", strings.Repeat("a", maxCommand-1) + "é", maxCommand - 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := truncate(tt.in); len(got) != tt.want || !utf8.ValidString(got) {
				t.Errorf("%d bytes, want %d: %q", len(got), tt.want, got[max(0, len(got)-4):])
			}
		})
	}
}
