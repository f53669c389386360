package runtext

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
)

func TestMeter(t *testing.T) {
	const mib = 1 << 20
	mesh := map[uint64]map[model.Pool]uint64{}
	for id := range uint64(32) {
		mesh[id] = map[model.Pool]uint64{model.DRAM: 64 * mib}
	}
	for _, c := range []struct {
		name  string
		held  map[uint64]map[model.Pool]uint64
		width int
		want  string
	}{
		{"nothing yet", nil, 80, "ttmon 1:05  nothing held"},
		{"one", map[uint64]map[model.Pool]uint64{7: {model.DRAM: 2 * mib, model.L1: 3 << 10}}, 80, "ttmon 1:05  device 0 L DRAM 2.0 MiB L1 3.0 KiB"},
		{"a chip of no device", map[uint64]map[model.Pool]uint64{9: {model.DRAM: mib}}, 80, "ttmon 1:05  chip 9 DRAM 1.0 MiB"},
		{"empty chips are left out", map[uint64]map[model.Pool]uint64{7: {}, 9: {model.DRAM: mib}}, 80, "ttmon 1:05  chip 9 DRAM 1.0 MiB"},
		{"a mesh", mesh, 80, "ttmon 1:05  each of 32 chips DRAM 64 MiB"},
		{"two that differ", map[uint64]map[model.Pool]uint64{7: {model.DRAM: mib}, 9: {model.DRAM: 2 * mib}}, 80, "ttmon 1:05  device 0 L DRAM 1.0 MiB  chip 9 DRAM 2.0 MiB"},
		{"a narrow terminal", mesh, 20, "ttmon 1:05  each"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := Meter{}
			got := string(m.Append(nil, c.held, map[uint64]string{7: "device 0 L"}, 65*time.Second, c.width))
			line, ok := strings.CutPrefix(strings.TrimSuffix(got, "\x1b[K"), "\r")
			if !ok || !strings.HasPrefix(line, c.want) || c.width == 80 && line != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got := string(m.Clear(nil)); got != "\r\x1b[K" {
				t.Errorf("cleared by %q", got)
			}
		})
	}
	m := Meter{}
	if got := m.Clear(nil); len(got) > 0 {
		t.Errorf("nothing was shown, and it is cleared by %q", got)
	}
}

// What samples do not tell is not told: neither leaks nor that there are none.
func TestSampledSummary(t *testing.T) {
	r := &runreport.Report{
		Command: []string{"./model"}, Seconds: 12, Method: runreport.Sampled, Complaints: []string{"it has no function f"},
		Chips: []runreport.Chip{{ID: 5, Pools: []runreport.Pool{
			{Pool: model.DRAM, PoolName: "dram", Peak: 3 << 30, Bound: model.Unsure, LeftUnknown: true, PeakAt: 4},
			{Pool: model.L1, PoolName: "l1", Peak: 3 << 10, Bound: model.AtLeast, LeftUnknown: true, PeakAt: 4},
		}}},
	}
	got := string(Append(nil, r, Options{}))
	for _, want := range []string{"sampled from shared memory", " note: it has no function f", "~3.0 GiB", "≥3.0 KiB", "       N/A\n", "not judged"} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(got, "0 B") {
		t.Errorf("nothing is known to be left, and 0 is told:\n%s", got)
	}
	if got := string(Append(nil, r, Options{ASCII: true})); strings.ContainsAny(got, "≥▓–") {
		t.Errorf("not ASCII:\n%s", got)
	}
}

// What ran is said of each chip, and why nothing is known of others.
func TestWork(t *testing.T) {
	device, at := 1, 8.0
	busy := &runreport.Work{Known: true, Busy: 25, Open: 40, Ratio: 0.625, Bound: model.AtLeast, Cause: model.WorkLossy, Programs: 1, Longest: 25}
	for i := range 7 {
		busy.Operations = append(busy.Operations, runreport.Operation{Name: "op" + string(rune('a'+i)) + "\x1b", Calls: 4, Seconds: 4, Longest: 2})
	}
	r := &runreport.Report{Command: []string{"x"}, Seconds: 40, Method: runreport.Ledger, Chips: []runreport.Chip{
		{ID: 1, Device: &device, Board: "n300", Name: "L", Work: busy},
		{ID: 2, Device: &device, Board: "n300", Name: "R", Work: &runreport.Work{Cause: model.WorkProfilerOff}},
		{ID: 3, Work: &runreport.Work{Known: true, Open: 40, Programs: 2, Late: 4, LongestGap: 6.2, GapAt: &at, GapsCause: model.GapsNotKept}},
		{ID: 4, Work: &runreport.Work{Known: true, Open: 40, Programs: 9, Late: 4, LongestGap: 6.2, GapsCause: model.GapsProcesses, Gaps: []runreport.Gap{
			{Seconds: 6.2, Until: 8, After: "mat\x1bmul"}, {Seconds: 2, Until: 3661}, {Seconds: 1, Until: 2}, {Seconds: 0.5, Until: 1},
		}}},
	}}
	got := string(Append(nil, r, Options{}))
	for _, want := range []string{
		" 1 n300 L  busy ≥62 % of the time it was open: 25 s of 40 s in ≥1 program\n", "   opa\\x1b ", "   (2 others)                           20 %\n",
		"   busy is at least that: tt-metal before 0.80 drops", " busy unknown on 1 n300 R: tt-metal does not report programs of this chip\n",
		" chip 3  busy 0 % of the time it was open", "10 %  of the time, the chip waited for the host; longest gap 6.2 s, until 0:08\n",
		"   gaps are not listed: an older libttmon or ttmond",
		"   longest gaps                       ~6.2 s  until 0:08, after mat\\x1bmul\n" +
			"                                      ~2.0 s  until 1:01:01\n" +
			"                                      ~1.0 s  until 0:02\n   gaps are not certain: several processes",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	if strings.Contains(string(Append(nil, r, Options{ASCII: true})), "≥") {
		t.Error("not ASCII")
	}
}

// What one process held is said of each chip only where all had the same.
func TestOwnPeaks(t *testing.T) {
	chip := func(dram, l1 uint64) runreport.Chip {
		return runreport.Chip{Pools: []runreport.Pool{{Pool: model.DRAM, Peak: dram, Bound: model.AtLeast}, {Pool: model.L1, Peak: l1, Bound: model.Unsure}}}
	}
	p := printer{}
	for _, c := range []struct {
		chips []runreport.Chip
		want  string
	}{
		{nil, "killed"},
		{[]runreport.Chip{chip(3<<30, 2<<20)}, "DRAM ≥3.0 GiB  L1 ~2.0 MiB  killed"},
		{[]runreport.Chip{chip(3<<30, 2<<20), chip(3<<30, 2<<20)}, "DRAM ≥3.0 GiB  L1 ~2.0 MiB  on each of 2 chips  killed"},
		{[]runreport.Chip{chip(1<<30, 2<<20), chip(3<<30, 1<<20)}, "DRAM ≥3.0 GiB  L1 ~2.0 MiB  at most on one of 2 chips  killed"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := p.ownPeaks(runreport.Process{Killed: true, Chips: c.chips}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestFlameLines: stacks that share a small function are told apart by their
// callers, frames of libraries are folded away, and pools are not mixed.
func TestFlameLines(t *testing.T) {
	frame := func(file string, line int, function string) runreport.Frame {
		return runreport.Frame{File: file, Line: line, Function: function}
	}
	library := frame("/v/lib/python3.12/site-packages/ttnn/decorators.py", 500, "__call__")
	place := func(caller runreport.Frame, bytes uint64) runreport.Place {
		return runreport.Place{Stack: []runreport.Frame{library, frame("/a/oom.py", 6, "t"), caller}, Amount: runreport.Amount{Bytes: bytes, Blocks: 1}}
	}
	pool := func(p model.Pool, places ...runreport.Place) runreport.Pool {
		return runreport.Pool{Pool: p, PoolName: p.String(), Peak: 3 << 20, AtPeak: places}
	}
	r := &runreport.Report{Chips: []runreport.Chip{{ID: 7, Pools: []runreport.Pool{
		pool(model.DRAM, place(frame("/a/oom.py", 20, "weights"), 2<<20), place(frame("/a/oom.py", 30, "cache"), 1<<20)),
		pool(model.L1, place(frame("/a/oom.py", 40, "scores"), 1<<20)),
	}}}}
	roots := flames(r)
	if len(roots) != 2 || len(roots[0].legend) != 2 || len(roots[1].legend) != 1 {
		t.Fatalf("%d graphs", len(roots))
	}
	if got := []string{roots[0].legend[0].name, roots[0].legend[1].name, roots[1].legend[0].name}; !slices.Equal(got, []string{"weights oom.py:20", "cache oom.py:30", "t oom.py:6"}) {
		t.Errorf("%q", got)
	}
	svg := string(AppendFlameSVG(nil, r))
	for _, want := range []string{lineColor(1, 1), lineColor(2, 1), "cache oom.py:30  1.0 MiB"} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %q", want)
		}
	}
	if strings.Contains(svg, "decorators.py") {
		t.Error("frames of a library are shown")
	}
}
