package track

import (
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// TestPerCoreL1 holds L1 that is given out core by core against what tt-metal's HYBRID
// allocator then does with random requests.
func TestPerCoreL1(t *testing.T) {
	hermetic.Long(t)
	env := append(preloaded(t), "TT_METAL_ALLOCATOR_MODE_HYBRID=1")
	for _, on := range []struct {
		release, name, descriptor string
		open                      ttnn.Step
		asks                      ttnn.CoreRequests
	}{
		{ttnn.Newest, "p150", "blackhole_P150", ttnn.Step{"device": 0}, ttnn.CoreRequests{Rounds: 500, Range: true}},
		{ttnn.Newest, "n300", "wormhole_N300_pci_bdf", ttnn.Step{"mesh": []int{1, 2}}, ttnn.CoreRequests{Rounds: 500, Range: true}},
		{ttnn.Newest, "4xp150", "blackhole_4xP150", ttnn.Step{"mesh": []int{2, 2}}, ttnn.CoreRequests{Rounds: 200, Range: true}},
		{ttnn.Middle, "p150", "blackhole_P150", ttnn.Step{"device": 0}, ttnn.CoreRequests{Rounds: 500, Most: 100_000}},
	} {
		t.Run(on.release+"/"+on.name, func(t *testing.T) {
			ttnn.NeedRelease(t, on.release)
			path, err := ttnn.Descriptor(on.descriptor)
			if err != nil {
				t.Fatal(err)
			}
			j, err := ttnn.Start(ttnn.Options{Release: on.release, Descriptor: path, Dir: t.TempDir(), Env: env})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Kill() })
			r := NewReader(Options{})
			defer r.Close()
			on.open["do"] = "open"
			step(t, j, on.open)
			on.asks.Try(t, j, func() *blocks.CoreL1 { return perCore(t, r, j) })
		})
	}
}

// perCore is what the ledger of a job says of its L1, held against the claim that is
// made of it.
func perCore(t *testing.T, r *Reader, j *ttnn.Job) *blocks.CoreL1 {
	t.Helper()
	p := find(t, r, j.PID)
	l, known := p.State.PerCore()
	if !known {
		t.Fatalf("not known: lost %d, %d allocators", p.State.Lost, len(p.State.Allocators))
	}
	for _, h := range p.State.Held() {
		c := l.Chip(h.Chip.ID)
		if c == nil || !h.Bytes[model.L1].Exactly(l.Used(c)) || len(h.Doubts) > 0 {
			t.Fatalf("claimed of chip %d: %+v, %+v", h.Chip.ID, h.Bytes[model.L1], h.Doubts)
		}
	}
	return l
}
