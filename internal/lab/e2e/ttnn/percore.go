package ttnn

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
)

// grids is how the cores that programs can use lie on the boards of the test.
var grids = map[uint64][2]int{110: {11, 10}, 64: {8, 8}, 56: {8, 7}, 130: {13, 10}, 120: {12, 10}}

// CoreRequests are random requests for L1 that is given out core by core (HYBRID).
type CoreRequests struct {
	Rounds int
	Range  bool // the release has buffers at one address of some cores (0.79 and later)
	// Most is what a core is asked for at most; 0: all it has. To 0.78 a buffer that is
	// longer than the address where a hole ends is placed outside of it.
	Most int
}

// Try makes them. Whether each finds room, at which address, and on which cores,
// follows from what is known before it: read says that.
func (q CoreRequests) Try(t *testing.T, j *Job, read func() *blocks.CoreL1) {
	t.Helper()
	step := func(s Step) Reply {
		r, err := j.Do(s)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	rng, hows := rand.New(rand.NewPCG(7, 11)), []string{"lockstep", "per_core"}
	if q.Range {
		hows = append(hows, "range")
	}
	var live []string
	tried, refused := map[string]int{}, map[string]int{}
	step(Step{"do": "alloc", "name": "first", "pool": "l1", "bytes": 4096}) // it tells the chips of the mesh
	before := read()
	grid, banks := grids[before.Banks], blocks.CoreBanks(int(before.Banks))
	if grid == ([2]int{}) {
		t.Fatalf("%d cores", before.Banks)
	}
	for round := range q.Rounds {
		if len(live) > 0 && rng.IntN(3) == 0 {
			i := rng.IntN(len(live))
			step(Step{"do": "free", "name": live[i]})
			live = slices.Delete(live, i, i+1)
			before = read()
			continue
		}
		how := hows[rng.IntN(len(hows))]
		bytes := uint64(16+rng.IntN(4096)*4) &^ 15
		if rng.IntN(3) == 0 {
			bytes = uint64(rng.IntN(cmp.Or(q.Most, int(before.Capacity)))) &^ 255
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
		reply := step(Step{"do": "shard", "name": name, "cores": cores, "bytes": bytes, "how": how})
		tried[how]++
		if reply.Fits {
			live = append(live, name)
		} else {
			refused[how]++
		}
		after := read()
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
			was, is := before.OnCore(before.Chips[i], k), after.OnCore(c, k)
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
