package runtext

import (
	"os"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// The account in the README and in the page of libttmon is what the program
// prints; make update rewrites it.
func TestReadme(t *testing.T) {
	const mib, gib = 1 << 20, 1 << 30
	device, gapAt := 0, 8.0
	of := func(n float64, unit uint64) uint64 { return uint64(n * float64(unit)) }
	place := func(file string, line int, function string, bytes uint64) runreport.Place {
		return runreport.Place{Stack: []ledgerfile.Frame{{File: file, Line: line, Function: function}}, Amount: runreport.Amount{Bytes: bytes, Blocks: 1}}
	}
	step := place("model.py", 203, "Trainer.step", of(2.1, mib))
	step.Blocks, step.Oldest, step.Grew = 7, 9, true
	r := &runreport.Report{
		Command: []string{"python", "train.py"}, Seconds: 41, Method: runreport.Ledger, Releases: []string{"ttnn 0.81.1"},
		Chips: []runreport.Chip{{Device: &device, Board: "p150a", Pools: []runreport.Pool{
			{
				Pool: model.DRAM, Peak: of(18.2, gib), PeakAt: 31, Capacity: of(31.9, gib),
				AtPeak: []runreport.Place{place("model.py", 88, "Attention.kv_cache", of(9.6, gib)), place("model.py", 41, "load_weights", of(8.1, gib))},
			},
			{Pool: model.L1, Peak: of(96.4, mib), PeakAt: 12, Capacity: 153 * mib, Left: step.Amount, LeftBy: []runreport.Place{step}},
		}, Work: &runreport.Work{
			Known: true, Busy: 25.4, Open: 37, Ratio: 25.4 / 37, Programs: 61204, Late: 4.1, Longest: 0.0019, LongestGap: 6.2, GapAt: &gapAt,
			Gaps:       []runreport.Gap{{Seconds: 6.2, Until: gapAt, After: "LayerNormDeviceOperation"}, {Seconds: 0.41, Until: 31, After: "MatmulDeviceOperation"}, {Seconds: 0.0382, Until: 12, After: "MatmulDeviceOperation"}},
			Operations: []runreport.Operation{{Name: "MatmulDeviceOperation", Calls: 24100, Seconds: 16.9, Longest: 0.0019}, {Name: "ScaledDotProductAttention", Calls: 6025, Seconds: 5.2, Longest: 0.0011}, {Name: "LayerNormDeviceOperation", Calls: 31079, Seconds: 3.3, Longest: 0.0003}},
		}}},
	}
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
