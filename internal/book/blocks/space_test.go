package blocks

import (
	"fmt"
	"math"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestNeed(t *testing.T) {
	p150 := Geometry{Pool: model.DRAM, Banks: 8, Capacity: 4277010304, Align: 64, Smallest: 64}
	l1 := Geometry{Pool: model.L1, Banks: 110, Capacity: 1428352, Align: 64, Smallest: 64}
	for _, c := range []struct {
		what string
		g    Geometry
		r    Request
		want uint64
	}{
		{"tiles that divide evenly", p150, Request{Bytes: 134217728, Page: 2048}, 16777216},
		{"1024 tiles over 110 cores take ten from each", l1, Request{Bytes: 2097152, Page: 2048}, 20480},
		{"one page is reserved in every bank", p150, Request{Bytes: 32768, Page: 32768}, 32768},
		{"pages are padded", p150, Request{Bytes: 100 * 8, Page: 100}, 128},
		{"sharded over 4 of 110", l1, Request{Bytes: 4 * 6144, Page: 2048, Shards: 4, ShardPages: 3}, 6144},
		{"rows of a shard are padded to 16 bytes in L1, and the block to 64", l1, Request{Page: 200, Shards: 8, ShardPages: 10}, 2112},
		{"rows of a shard are padded as pages in DRAM", p150, Request{Page: 200, Shards: 8, ShardPages: 10}, 2560},
		{"a size without pages", p150, Request{Bytes: 512 << 20}, 64 << 20},
		{"a size that leaves a rest", p150, Request{Bytes: 8*64 + 1}, 128},
		{"nothing still takes the smallest block", p150, Request{}, 64},
		{"a size that rounding up would wrap", Geometry{Banks: 1, Align: 64}, Request{Bytes: math.MaxUint64}, math.MaxUint64},
		{"a page that rounding up would wrap", p150, Request{Bytes: 1, Page: math.MaxUint64}, math.MaxUint64},
	} {
		t.Run(c.what, func(t *testing.T) {
			if got, known := c.g.Need(c.r); !known || got != c.want {
				t.Errorf("%d %v, want %d", got, known, c.want)
			}
		})
	}
	if _, known := (Geometry{}).Need(Request{Bytes: 1}); known {
		t.Error("an answer without a number of banks")
	}
}

// TestRefused: what tt-metal refuses does not fit, whatever is free.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		pool model.Pool
		r    Request
		want Refusal
	}{
		{model.L1Small, Request{Bytes: 64}, NotInterleaved},
		{model.L1Small, Request{Page: 64, Shards: 2, ShardPages: 1}, ""},
		{model.L1, Request{Bytes: 64}, ""},
		{model.L1, Request{Page: 64, Shards: 5, ShardPages: 1}, TooManyShards},
	} {
		t.Run(fmt.Sprintf("%s, %d shards", c.pool, c.r.Shards), func(t *testing.T) {
			l := NewList(Geometry{Pool: c.pool, Banks: 4, Base: 64, Capacity: 1024, Align: 64, Smallest: 64}, FromStart)
			if f, known := l.Fits(c.r); !known || f.Refused != c.want || f.Fits != (c.want == "") {
				t.Errorf("%s %+v: %+v, want %q", c.pool, c.r, f, c.want)
			}
		})
	}
}

func TestFits(t *testing.T) {
	l := NewList(Geometry{Pool: model.DRAM, Banks: 2, Base: 64, Capacity: 1024, Align: 64, Smallest: 64}, FromStart)
	l.Cut = 64
	l.Alloc(Block{Addr: 256, Size: 64})
	l.Alloc(Block{Addr: 1024, Size: 64})
	want := Space{Free: 128 + 704, Largest: 704, Holes: 2}
	for bytes, fits := range map[uint64]bool{1: true, 2 * 704: true, 2*704 + 1: false} {
		t.Run(fmt.Sprint(bytes), func(t *testing.T) {
			f, known := l.Fits(Request{Bytes: bytes})
			if !known || f.Fits != fits || f.Space != want {
				t.Errorf("%d bytes: %+v %v", bytes, f, known)
			}
		})
	}
}
