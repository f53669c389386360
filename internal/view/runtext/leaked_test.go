package runtext

import (
	"testing"

	"github.com/ttmon/ttmon/internal/book/runreport"
	"github.com/ttmon/ttmon/internal/book/runs"
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
	kept, unnamed := pool, pool
	kept.Blocks = &runs.Blocks{Left: left(8<<20, 1), LeftBy: pool.Blocks.LeftBy[:1]}
	unnamed.Blocks = &runs.Blocks{Left: left(10<<20, 8), LeftBy: []runs.Place{{Amount: left(10<<20, 8), Grew: true}}}
	for want, tt := range map[string]struct {
		pool  runs.Pool
		limit runreport.LeakLimit
	}{
		"leak: step grew in each quarter of the run: 7 blocks, +293 KiB each, 2.0 MiB in L1 of 3 p150a":                         {pool, runreport.LeakLimit{Kept: true}},
		"10 MiB in 8 blocks not freed; step grew in each quarter of the run: 7 blocks, +293 KiB each, 2.0 MiB in L1 of 3 p150a": {pool, runreport.LeakLimit{}},
		"8.0 MiB in 1 block not freed, limit 1.0 MiB; weights holds 8.0 MiB in L1 of 3 p150a":                                   {kept, runreport.LeakLimit{Bytes: 1 << 20}},
		"10 MiB in 8 blocks not freed; there is more in each quarter of the run (--stacks names the line)":                      {unnamed, runreport.LeakLimit{Kept: true}},
	} {
		t.Run(want, func(t *testing.T) {
			if got := Leaked(ran(tt.pool), tt.limit); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}
