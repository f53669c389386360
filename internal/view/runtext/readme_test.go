package runtext

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/lab/golden"
)

// The account in the README and in the page of libttmon is what the program
// prints; make update rewrites it.
func TestReadme(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	started, late := time.Unix(1_790_000_000, 0), 4.1
	at := func(seconds int) time.Time { return started.Add(time.Duration(seconds) * time.Second) }
	of := func(n float64, unit uint64) uint64 { return uint64(n * float64(unit)) }
	place := func(file string, line int, function string, bytes uint64) runs.Place {
		return runs.Place{Stack: []runs.Frame{{File: file, Line: line, Function: function}}, Amount: runs.Amount{Bytes: bytes, Blocks: 1}}
	}
	step := place("model.py", 203, "Trainer.step", of(2.1, mib))
	step.Blocks, step.Oldest, step.Grew = 7, at(9), true
	r := &runreport.Report{Method: runreport.Ledger, Run: runs.Run{
		Who: runs.Who{Command: "python train.py"}, Start: started, Last: at(41), End: runs.Ending{Kind: runs.Exited},
		Processes: []runs.Process{{Ledger: &runs.ProcessLedger{Release: "ttnn 0.81.1"}}},
		Devices: []runs.Device{{Index: 0, Board: "p150a", Open: 37, Pools: map[string]runs.Pool{
			"dram": {Peak: of(18.2, gib), PeakBound: "exact", PeakAt: at(31), Blocks: &runs.Blocks{
				Capacity: of(31.9, gib), AtPeak: []runs.Place{place("model.py", 88, "Attention.kv_cache", of(9.6, gib)), place("model.py", 41, "load_weights", of(8.1, gib))},
			}},
			"l1": {Peak: of(96.4, mib), PeakBound: "exact", PeakAt: at(12), Blocks: &runs.Blocks{Capacity: 153 * mib, Left: step.Amount, LeftBy: []runs.Place{step}}},
		}, Work: []runs.Work{{
			Busy: 25.4, Bound: "exact", Programs: 61204, Late: &late, Longest: 0.0019, Gap: 6.2,
			Gaps:       []runs.Gap{{Seconds: 6.2, End: at(8), After: "LayerNormDeviceOperation"}, {Seconds: 0.41, End: at(31), After: "MatmulDeviceOperation"}, {Seconds: 0.0382, End: at(12), After: "MatmulDeviceOperation"}},
			Operations: []runs.Operation{{Name: "MatmulDeviceOperation", Calls: 24100, Seconds: 16.9, Longest: 0.0019}, {Name: "ScaledDotProductAttention", Calls: 6025, Seconds: 5.2, Longest: 0.0011}, {Name: "LayerNormDeviceOperation", Calls: 31079, Seconds: 3.3, Longest: 0.0003}},
		}}}},
	}}
	for _, path := range []string{"../../../README.md", "../../../docs/libttmon.md"} {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		const begin, fence = "$ ttmon run --stacks -- python train.py\n", "```\n"
		head, rest, begun := strings.Cut(string(old), begin)
		_, tail, ended := strings.Cut(rest, fence)
		if !begun || !ended {
			t.Fatalf("%s has no place for the account: %q", path, begin)
		}
		golden.Check(t, path, append(Append([]byte(head+begin), r, Options{}), fence+tail...))
	}
}
