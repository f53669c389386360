package runwords

import (
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
)

// TestEndAfterFailure: a failed allocation is the cause of an end that follows at
// once; of a later one it is only what came before.
func TestEndAfterFailure(t *testing.T) {
	at := time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		after time.Duration
		code  int
		count uint64
		want  string
	}{
		{time.Second, 1, 1, "out of L1, exit 1"},
		{25 * time.Second, 1, 1, "exit 1, 25s after an allocation failed"},
		{25 * time.Second, 1, 3, "exit 1, 25s after the last of ≥3 failed allocations"},
		{time.Minute, 1, 3, "exit 1, ≥3 failed allocations"},
		{time.Second, 0, 1, "exit 0, ≥1 failed allocation"},
	} {
		t.Run(c.want, func(t *testing.T) {
			r := runs.Run{
				End:      runs.Ending{Kind: runs.Exited, Code: &c.code, At: at.Add(c.after)},
				Failures: &runs.Failures{Count: c.count, Last: at, Pool: "l1"},
			}
			r.Blame()
			if got := End(&r); got != c.want {
				t.Errorf("%v after %d: %q instead of %q", c.after, c.count, got, c.want)
			}
		})
	}
}

// Changes are said so that they are read in one way only.
func TestChange(t *testing.T) {
	for name, c := range map[string]struct {
		unit compare.Unit
		a, b float64
		want string
	}{
		"the same":            {compare.Bytes, 5, 5, ""},
		"more bytes":          {compare.Bytes, 4 << 30, 6 << 30, "+2.0 GiB (+50 %)"},
		"from nothing":        {compare.Bytes, 0, 2 << 20, "+2.0 MiB"},
		"many times":          {compare.Joules, 3600, 36000, "+9.0 Wh (10.0×)"},
		"almost nothing left": {compare.Bytes, 1 << 40, 1 << 20, "−1.0 TiB (−99 %)"},
		"less than a second":  {compare.Seconds, 5.7, 4.9, "−0.80s (−14 %)"},
		"whole seconds":       {compare.Seconds, 41, 0, "−41s (−100 %)"},
		"minutes":             {compare.Seconds, 2280, 2460, "+3m00s (+7.9 %)"},
		"degrees":             {compare.Celsius, 47, 52, "+5 K"},
		"shares":              {compare.Ratio, 0.49, 0.482, "−0.8 points"},
		"half a watt":         {compare.Watts, 49, 48.5, "−0.5 W (−1.0 %)"},
		"no time":             {compare.Seconds, 5.7, 5.697, ""},
		"a little time":       {compare.Seconds, 5.7, 5.69, "−0.01s (−0.2 %)"},
		"a tiny share":        {compare.Seconds, 3600, 3599.9, "−0.10s"},
		"no energy":           {compare.Joules, 36000, 36001, ""},
		"no power":            {compare.Watts, 49, 49.04, ""},
		"no degree":           {compare.Celsius, 47, 47.4, ""},
		"no clock":            {compare.MHz, 800, 800.4, ""},
		"no points":           {compare.Ratio, 0.49, 0.4904, ""},
		"one failure":         {compare.Count, 1, 2, "+1 (+100 %)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &compare.Figure{Unit: c.unit, A: &compare.Value{V: c.a, Bound: "exact"}, B: &compare.Value{V: c.b, Bound: "exact"}}
			if got := Change(f); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A line of code, and what has none.
func TestLine(t *testing.T) {
	for name, c := range map[string]struct {
		line runs.Line
		want string
	}{
		"with a tag":      {runs.Line{File: "/home/anna/model.py", Line: 88, Tag: "kv_cache"}, "model.py:88 kv_cache"},
		"with a function": {runs.Line{File: "model.py", Line: 7, Function: "main"}, "model.py:7 main"},
		"only a tag":      {runs.Line{Tag: "kv_cache"}, `blocks tagged "kv_cache", no line recorded`},
		"nothing":         {runs.Line{}, "blocks, no line recorded"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Line(&c.line); got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// A mean of a part of a run says of how much, and none is exact.
func TestMean(t *testing.T) {
	begun := time.Date(2026, 11, 14, 9, 0, 0, 0, time.UTC)
	r := &runs.Run{Start: begun, Last: begun.Add(100 * time.Second), End: runs.Ending{Kind: runs.Running}}
	for seconds, want := range map[float64]string{0: "–", 42: "~2.0 GiB over 42 %", 89: "~2.0 GiB over 89 %", 90: "~2.0 GiB", 100: "~2.0 GiB"} {
		t.Run(want, func(t *testing.T) {
			if got := Mean(r, runs.Pool{Mean: 2 << 30, MeanBound: "exact", Seconds: seconds}); got != want {
				t.Errorf("known for %v s of 100: %q, want %q", seconds, got, want)
			}
			part := strings.TrimPrefix(strings.TrimPrefix(want, "~2.0 GiB"), "–")
			d := runs.Device{Activity: &runs.Stat{Mean: 0.5, Seconds: seconds}}
			r.Devices = []runs.Device{d}
			power, busy := Over(r, "80 W", seconds), DeviceBusy(r, &d)
			if seconds > 0 && (power != "80 W"+part || busy != "~50 %"+part || Activity(r) != busy) {
				t.Errorf("known for %v s of 100: %q %q, the run %q, want %q", seconds, power, busy, Activity(r), part)
			}
		})
	}
}
