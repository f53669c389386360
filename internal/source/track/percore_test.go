package track

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// TestPerCoreL1 holds L1 that is given out core by core against what tt-metal's HYBRID
// allocator then does: whether each of many random requests finds room, and at which
// address, follows from what is known before it.
func TestPerCoreL1(t *testing.T) {
	hermetic.Long(t)
	env := append(preloaded(t), "TT_METAL_ALLOCATOR_MODE_HYBRID=1")
	for _, on := range []struct {
		release, name, descriptor string
		open                      ttnn.Step
	}{
		{ttnn.Newest, "p150", "blackhole_P150", ttnn.Step{"device": 0}},
		{ttnn.Newest, "n300", "wormhole_N300_pci_bdf", ttnn.Step{"mesh": []int{1, 2}}},
	} {
		t.Run(on.release+"/"+on.name, func(t *testing.T) {
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
			tryPerCore(t, r, j, rand.New(rand.NewPCG(7, 11)), 400)
		})
	}
}

// grids is how the cores that programs can use lie on the boards of the test.
var grids = map[uint64][2]int{110: {11, 10}, 64: {8, 8}, 56: {8, 7}, 130: {13, 10}, 120: {12, 10}}

func tryPerCore(t *testing.T, r *Reader, j *ttnn.Job, rng *rand.Rand, rounds int) {
	t.Helper()
	var live []string
	tried, refused := map[string]int{}, map[string]int{}
	step(t, j, ttnn.Step{"do": "alloc", "name": "first", "pool": "l1", "bytes": 4096}) // it tells the chips of the mesh
	before := perCore(t, r, j)
	grid, banks := grids[before.Banks], blocks.CoreBanks(int(before.Banks))
	if grid == ([2]int{}) {
		t.Fatalf("%d cores", before.Banks)
	}
	for round := range rounds {
		if len(live) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(live))
			step(t, j, ttnn.Step{"do": "free", "name": live[i]})
			live = slices.Delete(live, i, i+1)
			before = perCore(t, r, j)
			continue
		}
		how := []string{"lockstep", "range", "per_core"}[rng.IntN(3)]
		bytes := uint64(16+rng.IntN(4096)*4) &^ 15
		if rng.IntN(3) == 0 {
			bytes = uint64(rng.IntN(int(before.Capacity))) &^ 255
		}
		bytes = max(bytes, 256)
		at := rng.Perm(grid[0] * grid[1])[:1+rng.IntN(12)]
		slices.Sort(at)
		cores, lists := make([][2]int, len(at)), make([]int, len(at))
		for i, n := range at {
			cores[i], lists[i] = [2]int{n % grid[0], n / grid[0]}, banks[n]
		}
		rows := (bytes + 64<<10 - 1) / (64 << 10)
		need, _ := before.Need(blocks.Request{Page: bytes / rows / 4 * 4, Shards: 1, ShardPages: rows})
		name := fmt.Sprint("t", round)
		reply := step(t, j, ttnn.Step{"do": "shard", "name": name, "cores": cores, "bytes": bytes, "how": how})
		tried[how]++
		if reply.Fits {
			live = append(live, name)
		} else {
			refused[how]++
		}
		after := perCore(t, r, j)
		fits, place := predict(before, how, lists, need)
		if reply.Fits != fits || fits && how != "per_core" && reply.At != place {
			t.Fatalf("round %d: %s of %d bytes, %d a core, on %v: %t at %d, want %t at %d\n%s",
				round, how, bytes, need, cores, reply.Fits, reply.At, fits, place, reply.Message)
		}
		if fits && how == "per_core" {
			grown(t, before, after, lists, need)
		}
		before = after
	}
	t.Logf("tried %v, refused %v", tried, refused)
}

// predict says what tt-metal will do with a request, and where a buffer will lie.
func predict(l *blocks.CoreL1, how string, cores []int, need uint64) (fits bool, at uint64) {
	mesh := l.Meshes[len(l.Meshes)-1]
	switch how {
	case "per_core":
		for _, c := range l.Chips {
			for _, k := range cores {
				if l.CoreHole(c, k) < need {
					return false, 0
				}
			}
		}
		return true, 0
	case "lockstep":
		cores = nil
	}
	return l.Lockstep(mesh, cores) >= need, highest(l, l.InTheWay(mesh, cores), need)
}

// highest is where a buffer lies: at the upper end of the highest hole that is long enough.
func highest(l *blocks.CoreL1, lists []*blocks.List, need uint64) (at uint64) {
	from := l.Base
	for _, r := range append(blocks.Cover(nil).With(lists...), blocks.Range{Addr: l.Base + l.Capacity}) {
		if r.Addr >= from+need {
			at = r.Addr - need
		}
		from = r.Addr + r.Size
	}
	return at
}

// grown checks that just these cores of each chip have got a buffer.
func grown(t *testing.T, before, after *blocks.CoreL1, cores []int, need uint64) {
	t.Helper()
	for i, c := range after.Chips {
		for k := range c.Cores {
			was, is := before.OnCore(before.Chips[i], before.Chips[i].Cores[k]).Bytes(), after.OnCore(c, c.Cores[k]).Bytes()
			want := was
			if slices.Contains(cores, k) {
				want += need
			}
			if is != want {
				t.Fatalf("core %d of chip %d: %d bytes are taken, want %d", k, i, is, want)
			}
		}
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
