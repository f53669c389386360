package blocks

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestCloneIsWhole: a copy says the same, of which sub-device an allocator is as well.
func TestCloneIsWhole(t *testing.T) {
	n := 1
	p := &Process{Allocators: []*Allocator{{ID: 7, Chips: []uint64{3}, SubDevice: &n, Lists: []*List{}}}}
	if diff := cmp.Diff(p.Allocators, p.Clone().Allocators); diff != "" {
		t.Errorf("(-original +copy):\n%s", diff)
	}
}
