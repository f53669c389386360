package node

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// TestPace: snapshots are made at each interval, those that clients demand in between,
// and in the long run never so many that they take more than a tenth of the time.
func TestPace(t *testing.T) {
	type made struct {
		at    int // ms
		extra bool
	}
	for name, c := range map[string]struct {
		took    int // ms that each takes
		demands []int
		until   int
		want    []made
	}{
		"none":              {0, nil, 2500, []made{{0, false}, {1000, false}, {2000, false}}},
		"one":               {0, []int{400}, 1500, []made{{0, false}, {400, true}, {1000, false}}},
		"soon after one":    {0, []int{30}, 500, []made{{0, false}, {30, true}}},
		"while one is made": {20, []int{10}, 900, []made{{0, false}, {20, true}}},
		"many": {
			0,
			[]int{300, 301, 302, 303, 304, 305, 306},
			650,
			[]made{{0, false}, {300, true}, {301, true}, {302, true}, {303, true}, {304, true}, {400, true}},
		},
		"slow ones":         {50, []int{200, 300, 310}, 999, []made{{0, false}, {200, true}, {300, true}, {800, true}}},
		"a chip that hangs": {700, []int{710, 720, 1420}, 2990, []made{{0, false}, {710, true}, {1410, false}, {2110, false}}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const ms = time.Millisecond
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(c.until)*ms)
				defer cancel()
				p, begin := newPace(time.Second), time.Now()
				for _, at := range c.demands {
					time.AfterFunc(time.Duration(at)*ms, p.demand)
				}
				var got []made
				p.run(ctx, func(_ context.Context, extra bool) time.Duration {
					got = append(got, made{int(time.Since(begin) / ms), extra})
					time.Sleep(time.Duration(c.took) * ms)
					return time.Duration(c.took) * ms
				})
				if !slices.Equal(got, c.want) {
					t.Errorf("made %v, want %v", got, c.want)
				}
			})
		})
	}
}
