package runtext

import (
	"testing"

	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/runs"
)

// TestLeaked: a failed check names the line that grew, before what was allocated once and
// is larger.
func TestLeaked(t *testing.T) {
	left := func(bytes, n uint64) runs.Amount { return runs.Amount{Bytes: bytes, Blocks: n} }
	pool := runs.Pool{Blocks: &runs.Blocks{Left: left(10<<20, 8), LeftBy: []runs.Place{
		{Tag: "weights", Amount: left(8<<20, 1)}, {Tag: "step", Amount: left(2<<20, 7), Grew: true},
	}}}
	ran := func(pool runs.Pool) *runreport.Report {
		r := &runreport.Report{}
		r.Run.Pools = map[string]runs.Pool{"l1": pool}
		r.Run.Devices = []runs.Device{{Index: 3, Board: "p150a", Pools: map[string]runs.Pool{"l1": pool}}}
		return r
	}
	r := ran(pool)
	for want, limit := range map[string]uint64{
		"10 MiB in 8 blocks not freed; step grew in each quarter of the run, by 2.0 MiB in L1 of 3 p150a":                0,
		"10 MiB in 8 blocks not freed, limit 1.0 MiB; step grew in each quarter of the run, by 2.0 MiB in L1 of 3 p150a": 1 << 20,
	} {
		t.Run(want, func(t *testing.T) {
			if got := Leaked(r, limit); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}

	kept := runs.Pool{Blocks: &runs.Blocks{Left: left(8<<20, 1), LeftBy: pool.Blocks.LeftBy[:1]}}
	const want = "8.0 MiB in 1 block not freed; weights holds 8.0 MiB in L1 of 3 p150a (no line was seen to grow; --fail-on-leak=SIZE allows what is kept on purpose)"
	if got := Leaked(ran(kept), 0); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
