package uprobe

import (
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/claim"
	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/model"
)

// TestHybrid: an allocator that keeps L1 per core has no figure of L1, with the
// reason; its DRAM is as exact as any. One that is met late shows its lists one
// by one: its environment says what they are.
func TestHybrid(t *testing.T) {
	path, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	hybrid := ttnn.Options{Descriptor: path, Env: []string{"TT_METAL_ALLOCATOR_MODE_HYBRID=1"}}
	fill := func(t *testing.T, j *ttnn.Job) {
		do(t, j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 2 << 20})
		do(t, j, ttnn.Step{"do": "alloc", "name": "b", "pool": "l1", "bytes": 1 << 18})
	}
	t.Run("from its start", func(t *testing.T) {
		s := watch(t, Options{})
		j := start(t, s, hybrid)
		do(t, j, ttnn.Step{"do": "open", "device": 0})
		fill(t, j)
		h := checkHybrid(t, s, j.PID)
		if n, bound, known := h.Bytes[model.DRAM].Best(); !known || bound != model.Exact || n != 2<<20 {
			t.Errorf("DRAM: %d, %v, %v", n, bound, known)
		}
	})
	t.Run("met late", func(t *testing.T) {
		o := hybrid
		o.Dir = t.TempDir()
		j, err := ttnn.Start(o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.End() })
		do(t, j, ttnn.Step{"do": "open", "device": 0})
		s := watch(t, Options{})
		eventually(t, "the program is watched", func() bool { _, ok := s.Find(j.PID); return ok })
		fill(t, j)
		checkHybrid(t, s, j.PID)
	})
}

// checkHybrid checks that a process has no figure of L1, and returns its claim.
func checkHybrid(t *testing.T, s *Source, pid int) (h claim.Held) {
	t.Helper()
	s.Sync() // what it did is in the accounts
	eventually(t, "it is claimed", func() bool {
		held := s.Claims().Held
		i := slices.IndexFunc(held, func(h claim.Held) bool { return h.Process.PID == pid && h.Bytes[model.DRAM].Status() == model.Known })
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
	return h
}
