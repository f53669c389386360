package runreport

import (
	"bytes"
	"testing"
	"time"

	"github.com/google/pprof/profile"

	"github.com/ttmon/ttmon/internal/book/runs"
)

// TestProfileIsPprofs: pprof's own library reads what is written, with every
// stack, value and label.
func TestProfileIsPprofs(t *testing.T) {
	at := func(file string, line int, function string) runs.Frame {
		return runs.Frame{File: file, Line: line, Function: function}
	}
	inner, outer := at("/m/model.py", 88, "KV.grow"), at("/m/model.py", 10, "<module>")
	var held, peak runs.Place
	held.Stack, held.Tag = []runs.Frame{inner, outer}, "kv-cache"
	held.Total.Blocks, held.Total.Bytes, held.Held.Blocks, held.Held.Bytes = 3, 300, 1, 100
	peak.Blocks, peak.Bytes = 2, 200 // without a call site
	r := &runs.Run{Start: time.Unix(1_790_000_000, 5), Devices: []runs.Device{
		{ChipID: "77", Pools: map[string]runs.Pool{"dram": {Blocks: &runs.Blocks{Places: []runs.Place{held}, AtPeak: []runs.Place{peak}}}}},
	}}
	r.Last = r.Start.Add(1500 * time.Millisecond)
	b, err := Profile(r)
	if err != nil {
		t.Fatal(err)
	}
	p, err := profile.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := p.CheckValid(); err != nil {
		t.Error(err)
	}
	if p.TimeNanos != r.Start.UnixNano() || p.DurationNanos != 1_500_000_000 || p.DefaultSampleType != "peak_space" || len(p.SampleType) != 6 {
		t.Errorf("header: %v", p)
	}
	if len(p.Sample) != 2 {
		t.Fatalf("%d samples", len(p.Sample))
	}
	s := p.Sample[0]
	if got := s.Value; got[0] != 3 || got[1] != 300 || got[2] != 1 || got[3] != 100 || got[5] != 0 {
		t.Errorf("values %v", got)
	}
	if s.Label["chip"][0] != "77" || s.Label["pool"][0] != "dram" || s.Label["tag"][0] != "kv-cache" {
		t.Errorf("labels %v", s.Label)
	}
	var names []string
	for _, l := range s.Location {
		names = append(names, l.Line[0].Function.Name)
	}
	if len(names) != 3 || names[0] != "KV.grow" || names[1] != "module model.py" || names[2] != "[kv-cache]" || s.Location[0].Line[0].Line != 88 {
		t.Errorf("stack %q", names)
	}
	if last := p.Sample[1]; last.Location[0].Line[0].Function.Name != "(no call site)" || last.Value[5] != 200 {
		t.Errorf("the sample without a call site: %v", last)
	}
}
