package runtext

import (
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
		{"a chip of nobody", map[uint64]map[model.Pool]uint64{9: {model.DRAM: mib}}, 80, "ttmon 1:05  chip 9 DRAM 1.0 MiB"},
		{"empty chips are left out", map[uint64]map[model.Pool]uint64{7: {}, 9: {model.DRAM: mib}}, 80, "ttmon 1:05  chip 9 DRAM 1.0 MiB"},
		{"a mesh", mesh, 80, "ttmon 1:05  each of 32 chips DRAM 64 MiB"},
		{"two that differ", map[uint64]map[model.Pool]uint64{7: {model.DRAM: mib}, 9: {model.DRAM: 2 * mib}}, 80, "ttmon 1:05  device 0 L DRAM 1.0 MiB  chip 9 DRAM 2.0 MiB"},
		{"a narrow terminal", mesh, 20, "ttmon 1:05  each"},
	} {
		m := Meter{}
		got := string(m.Append(nil, c.held, map[uint64]string{7: "device 0 L"}, 65*time.Second, c.width))
		line, ok := strings.CutPrefix(strings.TrimSuffix(got, "\x1b[K"), "\r")
		if !ok || !strings.HasPrefix(line, c.want) || c.width == 80 && line != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := string(m.Clear(nil)); got != "\r\x1b[K" {
			t.Errorf("%s: cleared by %q", c.name, got)
		}
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
		if got := p.ownPeaks(runreport.Process{Killed: true, Chips: c.chips}); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
