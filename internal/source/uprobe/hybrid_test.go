package uprobe

import (
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// TestHybrid: an allocator that keeps L1 per core is as exact as any, if it was
// watched from its start. Of one that is met late there is no figure of L1, with the
// reason: its lists are found one by one, and their order is not known.
func TestHybrid(t *testing.T) {
	path, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		t.Fatal(err)
	}
	hybrid := ttnn.Options{Descriptor: path, Env: []string{"TT_METAL_ALLOCATOR_MODE_HYBRID=1"}}
	fill := func(t *testing.T, j *ttnn.Job) {
		do(t, j, ttnn.Step{"do": "alloc", "name": "a", "pool": "dram", "bytes": 2 << 20})
		do(t, j, ttnn.Step{"do": "alloc", "name": "b", "pool": "l1", "bytes": 1 << 18})
		do(t, j, ttnn.Step{"do": "shard", "name": "c", "bytes": 4096, "how": "per_core", "cores": [][2]int{{1, 2}, {3, 4}}})
	}
	t.Run("from its start", func(t *testing.T) {
		s := watch(t, Options{})
		j := start(t, s, hybrid)
		do(t, j, ttnn.Step{"do": "open", "device": 0})
		fill(t, j)
		h := claimOfJob(t, s, j.PID)
		if n, bound, known := h.Bytes[model.DRAM].Best(); !known || bound != model.Exact || n != 2<<20 {
			t.Errorf("DRAM: %d, %v, %v", n, bound, known)
		}
		// 128 tiles of 2048 bytes over 110 cores are two on each.
		l1, want := h.Pools[model.L1], uint64(110*2*2048+2*4096)
		if !h.Bytes[model.L1].Exactly(want) || len(h.Doubts) > 0 {
			t.Errorf("L1: %+v, want %d; %+v", h.Bytes[model.L1], want, h.Doubts)
		}
		if hole := l1.Capacity.V/110 - 2*2048; l1.CoreMost.V != hole || l1.CoreLeast.V != hole-4096 || l1.LargestFree.V != 110*(hole-4096) {
			t.Errorf("holes: %+v, want %d", l1, hole)
		}
	})
	t.Run("no room", func(t *testing.T) {
		s := watch(t, Options{})
		j := start(t, s, hybrid)
		do(t, j, ttnn.Step{"do": "open", "device": 0})
		do(t, j, ttnn.Step{"do": "shard", "name": "a", "bytes": 1 << 20, "how": "per_core", "cores": [][2]int{{1, 2}, {3, 4}}})
		for _, c := range []struct {
			name  string
			ask   ttnn.Step
			banks uint64
		}{
			{"a core", ttnn.Step{"how": "per_core", "bytes": 1 << 19, "cores": [][2]int{{0, 0}, {1, 2}}}, 1},
			{"all cores", ttnn.Step{"how": "lockstep", "bytes": 1 << 19, "cores": [][2]int{{0, 0}}}, 110},
			{"a range", ttnn.Step{"how": "range", "bytes": 3 << 18, "cores": [][2]int{{0, 0}, {1, 2}}}, 110},
		} {
			t.Run(c.name, func(t *testing.T) {
				c.ask["do"], c.ask["name"] = "shard", c.name
				if r := do(t, j, c.ask); r.Fits {
					t.Fatal("it fits")
				}
				s.Sync()
				list := s.Failures()
				if len(list) != 1 {
					t.Fatalf("%d records", len(list))
				}
				r := list[0]
				r.Judge()
				hole := r.State.Capacity - 1<<20 // all that is left where the first buffer lies
				if v := r.Verdict; v.Cause != failure.Full || v.Space == nil || v.Space.Largest != hole || r.State.Banks != c.banks || !slices.Contains(r.Doubts, failure.PerCore) {
					t.Errorf("%+v %+v of %d banks, want a hole of %d; %v", v, v.Space, r.State.Banks, hole, r.Doubts)
				}
			})
		}
	})
	t.Run("random requests", func(t *testing.T) {
		hermetic.Long(t)
		for _, on := range []struct {
			name, descriptor string
			open             ttnn.Step
		}{
			{"p150", "blackhole_P150", ttnn.Step{"do": "open", "device": 0}},
			{"n300", "wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}}},
		} {
			t.Run(on.name, func(t *testing.T) {
				path, err := ttnn.Descriptor(on.descriptor)
				if err != nil {
					t.Fatal(err)
				}
				s := watch(t, Options{})
				j := start(t, s, ttnn.Options{Descriptor: path, Env: hybrid.Env})
				do(t, j, on.open)
				if on.open["mesh"] != nil {
					eventually(t, "its chips are learned", func() bool { return s.learns(j.PID) })
				}
				ttnn.CoreRequests{Rounds: 500, Range: true}.Try(t, j, func() *blocks.CoreL1 { return perCore(t, s, j.PID) })
			})
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
		h := claimOfJob(t, s, j.PID)
		if l1 := h.Bytes[model.L1]; l1.Status() != model.Unsupported || h.Pools[model.L1] != (claim.Pool{}) {
			t.Errorf("L1: %+v, %+v", l1, h.Pools[model.L1])
		}
		if !slices.ContainsFunc(h.Doubts, func(d model.Doubt) bool { return d.Kind == model.PerCoreL1 }) {
			t.Errorf("no reason in %+v", h.Doubts)
		}
	})
}

// perCore is what is known of the L1 of a process.
func perCore(t *testing.T, s *Source, pid int) *blocks.CoreL1 {
	t.Helper()
	s.Sync()
	p, ok := s.Find(pid)
	if !ok {
		t.Fatal("it is not watched")
	}
	l, known := p.PerCore()
	if !known {
		t.Fatalf("not known: late %t, lost %d, %d allocators", p.Late, p.Lost, len(p.Allocators))
	}
	return l
}

// claimOfJob is what is claimed of a process that holds DRAM.
func claimOfJob(t *testing.T, s *Source, pid int) (h claim.Held) {
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
	return h
}
