package compare

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

var t0 = time.Date(2026, 11, 15, 2, 14, 0, 0, time.UTC)

// run is one that took so many seconds and held so much on devices 0 and 1.
func run(id uint64, seconds float64, dram0, dram1 uint64, throttled float64) runs.Run {
	end := t0.Add(time.Duration(seconds * float64(time.Second)))
	zero := 0
	r := runs.Run{ID: id, Start: t0, Seen: t0, Last: end, End: runs.Ending{Kind: runs.Exited, At: end, Code: &zero}, Observed: seconds}
	r.Who = runs.Who{UID: 1000, Command: "python train.py"}
	pool := func(n uint64) map[string]runs.Pool {
		return map[string]runs.Pool{"dram": {Peak: n, PeakBound: "at_least", Mean: float64(n) / 2, MeanBound: "exact", Seconds: seconds}}
	}
	r.Pools = pool(dram0 + dram1)
	for i, n := range []uint64{dram0, dram1} {
		d := runs.Device{Index: i, Board: "n300", Open: seconds, Pools: pool(n), Power: &runs.Stat{Mean: 100, Max: 120, Seconds: seconds}, Energy: 100 * seconds}
		if i == 1 && throttled > 0 {
			d.Trouble = map[model.ConditionKind]float64{model.ConditionThrottled: throttled}
		}
		r.Devices = append(r.Devices, d)
	}
	return r
}

func side(t *testing.T, list ...runs.Run) *Side {
	t.Helper()
	s, err := NewSide("x", list...)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

const gib = 1 << 30

func TestVerdict(t *testing.T) {
	usual := run(1, 1000, 8*gib, 8*gib, 0)
	killed := run(2, 1000, 8*gib, 8*gib, 0)
	killed.End = runs.Ending{Kind: runs.Killed, Signal: 9, At: killed.Last}
	leaked := run(2, 1000, 8*gib, 8*gib, 0)
	leaked.Left = []runs.Left{{Bytes: map[string]uint64{"l1": 5}, Bound: "exact"}}
	fewer := run(2, 1000, 8*gib, 8*gib, 0)
	fewer.Devices = fewer.Devices[:1]
	unknown := run(2, 1000, 0, 0, 0)
	unknown.Pools = nil
	for name, x := range map[string]struct {
		b    runs.Run
		want []RemarkKind
	}{
		"the same":             {run(2, 1001, 8*gib, 8*gib+1000, 0), nil},
		"more on one device":   {run(2, 1080, 8*gib, 10*gib, 41), []RemarkKind{PeakDRAM, Duration, Throttled, Energy}},
		"killed":               {killed, []RemarkKind{Ended}},
		"left something":       {leaked, []RemarkKind{Left}},
		"fewer devices":        {fewer, []RemarkKind{Energy, Devices}},
		"not known is not 0":   {unknown, nil},
		"shorter and less":     {run(2, 500, 4*gib, 8*gib, 0), []RemarkKind{PeakDRAM, Duration, Energy}},
		"a little more energy": {run(2, 1020, 8*gib, 8*gib, 0), nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := Compare(side(t, usual), side(t, x.b))
			var got []RemarkKind
			for _, r := range c.Verdict {
				got = append(got, r.Kind)
			}
			if diff := cmp.Diff(x.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	c := Compare(side(t, usual), side(t, run(2, 1080, 8*gib, 10*gib, 41)))
	if d := c.Verdict[0].Device; d == nil || *d != 1 || c.Verdict[0].B-c.Verdict[0].A != 2*gib {
		t.Errorf("%+v", c.Verdict[0])
	}
}

func TestMedian(t *testing.T) {
	a := side(t, run(1, 100, 1*gib, 0, 0), run(2, 300, 2*gib, 0, 0), run(3, 200, 9*gib, 0, 0))
	c := Compare(a, side(t, run(4, 200, 2*gib, 0, 0)))
	if f := c.Find("duration", nil); f.A.V != 200 {
		t.Errorf("%+v", f.A)
	}
	if f := c.Find("dram.peak", nil); f.A.V != 2*gib || f.A.Bound != "at_least" {
		t.Errorf("%+v", f.A)
	}
	if len(c.Verdict) != 0 {
		t.Errorf("%+v", c.Verdict)
	}
	zero := 0
	if f := c.Find("power.mean", &zero); f == nil || f.A.V != 100 {
		t.Errorf("%+v", f)
	}
}

// Of a run that has not ended neither duration nor energy are a verdict.
func TestNotEnded(t *testing.T) {
	a, b := run(1, 100, gib, 0, 0), run(2, 300, gib, 0, 0)
	a.End = runs.Ending{Kind: runs.Running}
	c := Compare(side(t, a), side(t, b))
	if len(c.Verdict) != 0 {
		t.Errorf("%+v", c.Verdict)
	}
	if f := c.Find("duration", nil); f.A.Bound != "at_least" || f.B.Bound != "exact" {
		t.Errorf("%+v %+v", f.A, f.B)
	}
	b.Left = []runs.Left{{Bytes: map[string]uint64{"l1": 5}, Bound: "exact"}}
	if c := Compare(side(t, a), side(t, b)); len(c.Verdict) != 1 || c.Verdict[0].Kind != Left || c.Verdict[0].B != 5 {
		t.Errorf("what B left is known, whatever A will leave: %+v", c.Verdict)
	}
	c = Compare(side(t, b), side(t, a))
	if f, err := c.Check(Condition{Name: "left", Above: true}); !errors.Is(err, ErrNoFigure) {
		t.Errorf("what a program leaves that still runs was checked: %v, %v", f, err)
	}
}

// Lines are compared by their peaks, and a peak is put down to what lines held then.
func TestLines(t *testing.T) {
	cache, weights := runs.Line{Pool: "dram", File: "model.py", Line: 88, Tag: "kv_cache"}, runs.Line{Pool: "dram", File: "model.py", Line: 12}
	scratch := runs.Line{Pool: "l1", File: "model.py", Line: 40}
	a, b := side(t, run(1, 100, 16*gib, 0, 0)), side(t, run(2, 100, 18*gib, 0, 0))
	a.Lines = &runs.Lines{Used: map[runs.Line]runs.LineUse{cache: {Peak: 4 * gib, AtPeak: 4 * gib, Allocs: 4}, weights: {Peak: 12 * gib, AtPeak: 12 * gib, Allocs: 1}}}
	if c := Compare(a, b); c.Lines != nil || c.Verdict[0].Line != nil {
		t.Errorf("lines of one side only: %+v", c)
	}
	b.Lines = &runs.Lines{Used: map[runs.Line]runs.LineUse{
		cache: {Peak: 6 * gib, AtPeak: 6 * gib, Allocs: 6}, weights: {Peak: 12 * gib, AtPeak: 12 * gib, Allocs: 1},
		scratch: {Peak: 9 * gib, AtPeak: 9 * gib, Held: 1, Allocs: 1},
	}}
	c := Compare(a, b)
	want := []Line{{Line: scratch, PeakB: 9 * gib, AtPeakB: 9 * gib, HeldB: 1, AllocsB: 1}, {cache, 4 * gib, 6 * gib, 4 * gib, 6 * gib, 0, 0, 4, 6}}
	if diff := cmp.Diff(want, c.Lines); diff != "" {
		t.Error(diff)
	}
	if r := c.Verdict[0]; r.Kind != PeakDRAM || r.Line == nil || *r.Line != cache || r.LineChange != 2*gib {
		t.Errorf("%+v", r)
	}
	c = Compare(b, a)
	if r := c.Verdict[0]; r.Line == nil || *r.Line != cache || r.LineChange != -2*gib {
		t.Errorf("%+v", r)
	}
}

// A condition that holds fails; one that does not hold has passed only where no value
// within the bounds makes it hold.
func TestConditions(t *testing.T) {
	a, b := run(1, 1000, 8*gib, 8*gib, 0), run(2, 1080, 8*gib, 10*gib, 41)
	c := Compare(side(t, a), side(t, b))
	for text, want := range map[string]Result{
		"dram.peak>+5%": Failed, "dram.peak > +12.5%": Uncertain, "dram.peak>=+12.5%": Failed, "dram.peak>+20%": Uncertain, "dram.peak>17GiB": Failed, "dram.peak>+3G": Uncertain,
		"dram.peak<17GiB": Passed, "dram.peak<-5%": Uncertain, "dram.mean<-90%": Uncertain,
		"duration>+79s": Failed, "duration>+2m": Passed, "throttled>0s": Failed, "throttled@0>0s": Passed, "throttled@1>40s": Failed,
		"energy<-1%": Uncertain, "duration<20m": Failed, "left>0": Passed, "power.max>119W": Failed, "dram.peak@0>+1%": Uncertain, "duration>=+8%": Failed,
		"power.max<10W": Passed, "power.max>200W": Uncertain,
	} {
		t.Run(text, func(t *testing.T) {
			cond, err := ParseCondition(text)
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := c.Check(cond); err != nil || got.Result != want || got.Figure.Name != cond.Name {
				t.Errorf("%+v, %v, want %s", got, err, want)
			}
		})
	}
	for _, r := range []*runs.Run{&a, &b} { // as their ledgers know it
		p := r.Pools["dram"]
		p.PeakBound = "exact"
		r.Pools["dram"] = p
	}
	c = Compare(side(t, a), side(t, b))
	for text, want := range map[string]Result{"dram.peak>+12.5%": Passed, "dram.peak<-5%": Passed, "dram.peak>+12%": Failed} {
		t.Run("exact "+text, func(t *testing.T) {
			cond, err := ParseCondition(text)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := c.Check(cond); err != nil || got.Result != want {
				t.Errorf("%+v, %v, want %s", got, err, want)
			}
		})
	}
	for _, text := range []string{"", "dram.peak", ">5%", "dram.peak>", "dram.peak>five", "dram.peak>5 bananas", "dram.peak@x>5", "dram.peak@-1>5"} {
		if cond, err := ParseCondition(text); err == nil {
			t.Errorf("%q was read as %+v", text, cond)
		}
	}
	for _, text := range []string{"trace.peak>0", "nothing>1", "dram.peak>5s", "power.mean@7>5"} {
		cond, err := ParseCondition(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Check(cond); err == nil {
			t.Errorf("%q was checked", text)
		}
	}
}

func TestUsual(t *testing.T) {
	b := run(9, 100, gib, 0, 0)
	var asked runs.Query
	s, err := Usual(&b, func(q runs.Query) ([]runs.Run, error) {
		asked = q
		list := []runs.Run{b}
		for i := range 6 {
			list = append(list, run(uint64(i+1), 100, gib, 0, 0))
		}
		return list, nil
	})
	if err != nil || len(s.Runs) != 5 || s.Runs[4] != "r6" || asked.Command != b.Command || *asked.UID != 1000 {
		t.Errorf("%+v %v %+v", s, err, asked)
	}
	if _, err := Usual(&b, func(runs.Query) ([]runs.Run, error) { return []runs.Run{b}, nil }); !errors.Is(err, ErrFirst) {
		t.Error(err)
	}
}

func FuzzParseCondition(f *testing.F) {
	f.Add("dram.peak@3>=+5%")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := ParseCondition(text); err == nil && c.Name == "" {
			t.Errorf("%q has no name", text)
		}
	})
}

// working is a run whose operations took so many seconds on one chip.
func working(id uint64, times map[string]float64) runs.Run {
	r := run(id, 1000, gib, gib, 0)
	w := runs.Work{PID: 1, Chip: "1", Bound: "exact"}
	for name, s := range times {
		w.Operations = append(w.Operations, runs.Operation{Name: name, Calls: 10, Seconds: s})
	}
	r.Devices[0].Work = []runs.Work{w}
	return r
}

func TestOperations(t *testing.T) {
	full, other := map[string]float64{}, map[string]float64{"new": 3}
	for i := range runs.MaxOperations {
		full[string(rune('a'+i))] = 10
		if i > 0 {
			other[string(rune('a'+i))] = 10
		}
	}
	for _, tt := range []struct {
		name    string
		a       []runs.Run
		b       runs.Run
		want    []string // the slowest first
		slowest string
	}{
		{"one got slower", []runs.Run{working(1, map[string]float64{"matmul": 100, "softmax": 5})}, working(2, map[string]float64{"matmul": 112, "softmax": 4}), []string{"matmul", "softmax"}, "matmul"},
		{"the same", []runs.Run{working(1, map[string]float64{"matmul": 100})}, working(2, map[string]float64{"matmul": 100.5}), nil, ""},
		{"not by much", []runs.Run{working(1, map[string]float64{"matmul": 100})}, working(2, map[string]float64{"matmul": 102}), []string{"matmul"}, ""},
		{"a new one", []runs.Run{working(1, map[string]float64{"matmul": 100})}, working(2, map[string]float64{"matmul": 100, "copy": 3}), []string{"copy"}, "copy"},
		{"one that may have been left out", []runs.Run{working(1, full)}, working(2, other), nil, ""},
		{"not known of one", []runs.Run{run(1, 1000, gib, gib, 0)}, working(2, map[string]float64{"matmul": 100}), nil, ""},
		{"the median", []runs.Run{working(1, map[string]float64{"m": 10}), working(2, map[string]float64{"m": 20}), working(3, map[string]float64{"m": 90})}, working(4, map[string]float64{"m": 30}), []string{"m"}, "m"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := Compare(side(t, tt.a...), side(t, tt.b))
			var got []string
			for _, o := range c.Operations {
				got = append(got, o.Name)
			}
			slowest := ""
			for _, r := range c.Verdict {
				if r.Kind == Slower {
					slowest = r.Operation.Name
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || slowest != tt.slowest {
				t.Errorf("slowest %q, want %q: %s", slowest, tt.slowest, diff)
			}
		})
	}
}

// Lines that ttmond kept are those of the processes of a run; of several runs the
// median counts. A line that may be among those that were not kept is no difference.
func TestKeptLines(t *testing.T) {
	kept := map[int]runs.ProcessLines{}
	add := func(pid int, cut bool, bytes map[int]uint64) runs.Run {
		p := runs.ProcessLines{Cut: cut}
		for line, n := range bytes {
			p.Lines = append(p.Lines, runs.PeakLine{Line: runs.Line{Pool: "dram", File: "model.py", Line: line}, AtPeak: n})
		}
		kept[pid] = p
		r := run(uint64(pid), 1000, gib, bytes[88], 0)
		r.Processes = []runs.Process{{PID: pid}}
		return r
	}
	find := func(p *runs.Process) (runs.ProcessLines, bool) { l, ok := kept[p.PID]; return l, ok }
	unknown := run(99, 1000, gib, gib, 0)
	for _, tt := range []struct {
		name string
		a    []runs.Run
		b    runs.Run
		want map[int]int64 // by line, how much more it held at the peak; nil: not compared
		line int           // that is named; 0: none
	}{
		{"two runs", []runs.Run{add(1, false, map[int]uint64{88: gib, 90: 5})}, add(2, false, map[int]uint64{88: 3 * gib, 91: 7}), map[int]int64{88: 2 * gib, 90: -5, 91: 7}, 88},
		{"lines were cut off", []runs.Run{add(3, true, map[int]uint64{88: gib})}, add(4, false, map[int]uint64{88: 3 * gib, 91: 7}), map[int]int64{88: 2 * gib}, 88},
		{"the median", []runs.Run{add(5, false, map[int]uint64{88: gib}), add(6, false, map[int]uint64{88: 2 * gib}), unknown, add(7, false, map[int]uint64{88: 9 * gib})}, add(8, false, map[int]uint64{88: 4 * gib}), map[int]int64{88: 2 * gib}, 88},
		{"not known of one", []runs.Run{unknown}, add(9, false, map[int]uint64{88: 3 * gib}), nil, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a, b := side(t, tt.a...), side(t, tt.b)
			a.AddLines(find)
			b.AddLines(find)
			c := Compare(a, b)
			var got map[int]int64
			if c.Lines != nil {
				got = map[int]int64{}
			}
			for _, l := range c.Lines {
				got[l.Line.Line] = int64(l.AtPeakB) - int64(l.AtPeakA)
			}
			named := 0
			for _, r := range c.Verdict {
				if r.Kind == PeakDRAM && r.Line != nil {
					named = r.Line.Line
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || named != tt.line {
				t.Errorf("line %d is named, want %d: %s", named, tt.line, diff)
			}
		})
	}
}
