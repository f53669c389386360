package runtext

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
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
	started := time.Unix(1_790_000_000, 0)
	held := func(bytes uint64, bound model.Bound) runs.Pool {
		return runs.Pool{Peak: bytes, PeakBound: bound.String(), PeakAt: started.Add(4 * time.Second)}
	}
	r := &runreport.Report{Method: runreport.Sampled, Complaints: []string{"it has no function f"}, Run: runs.Run{
		Who: runs.Who{Command: "./model"}, Start: started, Last: started.Add(12 * time.Second), End: runs.Ending{Kind: runs.Exited},
		Devices: []runs.Device{{ChipID: "5", Pools: map[string]runs.Pool{"dram": held(3<<30, model.Unsure), "l1": held(3<<10, model.AtLeast)}}},
	}}
	got := string(Append(nil, r, Options{}))
	for _, want := range []string{"sampled from shared memory", " note: it has no function f", "~3.0 GiB", "≥3.0 KiB", "         –\n", "not judged"} {
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
	started, late := time.Unix(1_790_000_000, 0), 4.0
	at := func(seconds int) time.Time { return started.Add(time.Duration(seconds) * time.Second) }
	busy := runs.Work{Chip: "1", Name: "L", Busy: 25, Bound: "at_least", Cause: model.WorkLossy, Programs: 1, Longest: 25}
	for i := range 7 {
		busy.Operations = append(busy.Operations, runs.Operation{Name: "op" + string(rune('a'+i)) + "\x1b", Calls: 4, Seconds: 4, Longest: 2})
	}
	r := &runreport.Report{Method: runreport.Ledger, Run: runs.Run{Start: started, Last: at(40), Devices: []runs.Device{
		{Index: -1, Open: 40, Pools: map[string]runs.Pool{"dram": {Peak: 1, PeakBound: "exact"}}, Work: []runs.Work{
			{Chip: "3", Bound: "exact", Programs: 2, Late: &late, Gap: 6.2, GapsCause: model.GapsNotKept},
			{Chip: "4", Bound: "exact", Programs: 9, Late: &late, Gap: 6.2, GapsCause: model.GapsProcesses, Gaps: []runs.Gap{
				{Seconds: 6.2, End: at(8), After: "mat\x1bmul"}, {Seconds: 2, End: at(3661)}, {Seconds: 1, End: at(2)}, {Seconds: 0.5, End: at(1)},
			}},
		}},
		{Index: 1, Board: "n300", Open: 40, Work: []runs.Work{busy, {Chip: "2", Name: "R", Cause: model.WorkProfilerOff}}},
	}}}
	got := string(Append(nil, r, Options{}))
	for _, want := range []string{
		" 1 n300 L  busy ≥62 % of the time it was open: 25 s of 40 s in ≥1 program\n", "   opa\\x1b ", "   (2 others)                           20 %\n",
		"   busy is at least that: tt-metal before 0.80 drops", " busy unknown on 1 n300 R: tt-metal does not report programs of this chip\n",
		" chip 3  busy 0 % of the time it was open", "10 %  of the time, the chip waited for the host; longest gap 6.2 s\n",
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
	chip := func(dram, l1 uint64) runs.Chip {
		return runs.Chip{Pools: map[string]runs.Pool{"dram": {Peak: dram, PeakBound: "at_least"}, "l1": {Peak: l1, PeakBound: "unsure"}}}
	}
	p := printer{}
	for _, c := range []struct {
		chips []runs.Chip
		want  string
	}{
		{nil, "killed"},
		{[]runs.Chip{chip(3<<30, 2<<20)}, "DRAM ≥3.0 GiB  L1 ~2.0 MiB  killed"},
		{[]runs.Chip{chip(3<<30, 2<<20), chip(3<<30, 2<<20)}, "DRAM ≥3.0 GiB  L1 ~2.0 MiB  on each of 2 chips  killed"},
		{[]runs.Chip{chip(1<<30, 2<<20), chip(3<<30, 1<<20)}, "DRAM ≥3.0 GiB  L1 ~2.0 MiB  at most on one of 2 chips  killed"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if got := p.ownPeaks(&runs.ProcessLedger{Killed: true, Devices: []runs.Device{{Chips: c.chips}}}); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// TestFlameLines: stacks that share a small function are told apart by their
// callers, frames of libraries are folded away, and pools are not mixed.
func TestFlameLines(t *testing.T) {
	frame := func(file string, line int, function string) runs.Frame {
		return runs.Frame{File: file, Line: line, Function: function}
	}
	library := frame("/v/lib/python3.12/site-packages/ttnn/decorators.py", 500, "__call__")
	place := func(caller runs.Frame, bytes uint64) runs.Place {
		return runs.Place{Stack: []runs.Frame{library, frame("/a/oom.py", 6, "t"), caller}, Amount: runs.Amount{Bytes: bytes, Blocks: 1}}
	}
	pool := func(places ...runs.Place) runs.Pool {
		return runs.Pool{Peak: 3 << 20, Blocks: &runs.Blocks{AtPeak: places}}
	}
	r := &runs.Run{Devices: []runs.Device{{ChipID: "7", Pools: map[string]runs.Pool{
		"dram": pool(place(frame("/a/oom.py", 20, "weights"), 2<<20), place(frame("/a/oom.py", 30, "cache"), 1<<20)),
		"l1":   pool(place(frame("/a/oom.py", 40, "scores"), 1<<20)),
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
