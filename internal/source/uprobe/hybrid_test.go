package uprobe

import (
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/claim"
	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// TestHybrid: an allocator that keeps L1 per core has no figure of L1, with the
// reason; its DRAM is as exact as any.
func TestHybrid(t *testing.T) {
	s := watch(t, Options{})
	path, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	j := start(t, s, ttnn.Options{Descriptor: path, Env: []string{"TT_METAL_ALLOCATOR_MODE_HYBRID=1"}})
	do(t, j, ttnn.Step{"do": "open", "device": 0})
	do(t, j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 2 << 20})
	do(t, j, ttnn.Step{"do": "alloc", "name": "b", "pool": "l1", "bytes": 1 << 18})
	var h claim.Held
	eventually(t, "it is claimed", func() bool {
		held := s.Claims().Held
		i := slices.IndexFunc(held, func(h claim.Held) bool { return h.Process.PID == j.PID })
		if i >= 0 {
			h = held[i]
		}
		return i >= 0
	})
	if l1 := h.Bytes[model.L1]; l1.Status() != model.Unsupported || h.Pools[model.L1] != (claim.Pool{}) {
		t.Errorf("L1: %+v, %+v", l1, h.Pools[model.L1])
	}
	if !slices.ContainsFunc(h.Doubts, func(d model.Doubt) bool { return d.Kind == model.PerCoreL1 }) {
		t.Errorf("no reason in %+v", h.Doubts)
	}
	if n, bound, known := h.Bytes[model.DRAM].Best(); !known || bound != model.Exact || n != 2<<20 {
		t.Errorf("DRAM: %d, %v, %v", n, bound, known)
	}
}
