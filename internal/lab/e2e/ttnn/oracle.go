package ttnn

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks"
)

// InUse is the allocator that a process allocates from: the last one that
// holds something, or the last one made. Each chip has one of its own too,
// which stays empty.
func InUse(p *blocks.Process) *blocks.Allocator {
	if len(p.Allocators) == 0 {
		return &blocks.Allocator{}
	}
	last := p.Allocators[len(p.Allocators)-1]
	for _, a := range p.Allocators {
		for _, l := range a.Lists {
			if l.Usage().Blocks > 0 {
				last = a
			}
		}
	}
	return last
}

// Compare checks what a source knows about an allocator against its own table,
// by the names of its pools. The test ends where they differ.
func Compare(t testing.TB, want map[string]Table, a *blocks.Allocator, chips int) {
	t.Helper()
	if len(a.Chips) != chips {
		t.Errorf("%d chips %v, want %d", len(a.Chips), a.Chips, chips)
	}
	seen := map[string]bool{}
	for _, l := range a.Lists {
		w, ok := want[l.Pool.String()]
		if !ok {
			continue // the release does not report it
		}
		if w.Banks == 0 {
			w.Banks = l.Banks
		}
		if diff := cmp.Diff(w, tableOf(t, l)); diff != "" {
			t.Errorf("%s: the allocator (-) and what is known of it (+):\n%s", l.Pool, diff)
		}
		seen[l.Pool.String()] = true
	}
	for pool := range want {
		if !seen[pool] {
			t.Errorf("pool %s was not seen", pool)
		}
	}
	if t.Failed() {
		t.FailNow()
	}
}

func tableOf(t testing.TB, l *blocks.List) Table {
	t.Helper()
	space, known := l.Space()
	if !known && l.Capacity > 0 {
		t.Errorf("%s: what is free is not known", l.Pool)
	}
	got := Table{
		Banks: l.Banks, Capacity: l.Capacity, Allocated: l.Usage().BankBytes,
		Free: space.Free, Largest: space.Largest, Blocks: [][2]uint64{},
	}
	for b := range l.All() {
		got.Blocks = append(got.Blocks, [2]uint64{b.Addr - l.Base, b.Size})
	}
	return got
}
