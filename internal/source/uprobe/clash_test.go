package uprobe

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

var clashMessage = regexp.MustCompile(`circular buffers in program (\d+) clash with L1 buffers on core range (\[[^\]]*\])\. L1 buffer allocated at (\d+) and static circular buffer region ends at (\d+)`)

// TestClashesAreTrue: circular buffers that reach into a buffer of L1 are kept as
// tt-metal says it, with the line that ran the operation; without the buffers
// that stand in the way it runs.
func TestClashesAreTrue(t *testing.T) {
	// With slow dispatch, as 0.71.2 is run here, tt-metal does not look for clashes.
	for _, release := range []string{middle, ttnn.Newest} {
		for _, on := range []struct {
			descriptor string
			open       ttnn.Step
		}{
			{"blackhole_P150", ttnn.Step{"do": "open"}},
			{"wormhole_N300_pci_bdf", ttnn.Step{"do": "open", "mesh": []int{1, 2}}},
		} {
			t.Run(release+" "+on.descriptor, func(t *testing.T) {
				x := newStage(t, release, on.descriptor, on.open)
				clashes := 0
				for round := range 8 {
					clashes += x.clashRound(round)
				}
				t.Logf("%d clashes", clashes)
				if clashes < 4 {
					t.Errorf("only %d clashes", clashes)
				}
			})
		}
	}
}

// clashRound fills L1 but for a few tiles of each core, and runs an operation.
func (x *stage) clashRound(round int) int {
	list := x.pool("l1")
	banks, tiles := int(list.Banks), int(list.Capacity/2048)
	operand, big := fmt.Sprintf("o%d", round), fmt.Sprintf("b%d", round)
	do(x.T, x.job, ttnn.Step{"do": "ask", "pool": "dram", "rows": 32 * banks * 4, "columns": 32 * 8, "name": operand})
	if !do(x.T, x.job, ttnn.Step{"do": "ask", "pool": "l1", "rows": 32 * banks * (tiles - 1 - round), "columns": 32, "name": big}).Fits {
		x.Fatal("L1 cannot be filled")
	}
	x.source.Sync()
	x.source.Failures()
	reply := do(x.T, x.job, ttnn.Step{"do": "clash", "of": operand})
	defer func() {
		for _, name := range []string{operand, big} {
			do(x.T, x.job, ttnn.Step{"do": "free", "name": name})
		}
	}()
	if reply.Fits {
		return 0
	}
	m := clashMessage.FindStringSubmatch(reply.Message)
	if m == nil {
		x.Fatalf("tt-metal says something else: %.400s", reply.Message)
	}
	lowest, _ := strconv.ParseUint(m[3], 10, 64)
	reach, _ := strconv.ParseUint(m[4], 10, 64)
	outside, inside := x.outside(), x.inside()
	for source, r := range map[string]*failure.Record{"uprobe": outside, "libttmon": inside} {
		if r == nil || r.Kind != failure.Clash {
			x.Errorf("%s kept nothing of %s", source, m[0])
			continue
		}
		r.Judge()
		if c := r.Clash; c.Lowest != lowest || c.Reach != reach || r.Verdict.Missing != reach-lowest || len(r.Stack) == 0 {
			x.Errorf("%s has %+v and %d lines, tt-metal says %s", source, c, len(r.Stack), m[0])
		}
		if f := r.Verdict.Fixes; len(f) != 1 || len(f[0].Blocks) != 1 || f[0].Blocks[0].Addr != lowest {
			x.Errorf("%s: fixes %+v", source, f)
		}
	}
	if outside != nil && inside != nil && !slices.Equal(outside.Stack, inside.Stack) {
		x.Errorf("lines from outside %v, from inside %v", outside.Stack, inside.Stack)
	}
	// The fix, done: without the buffer that stands in the way.
	do(x.T, x.job, ttnn.Step{"do": "free", "name": big})
	if !do(x.T, x.job, ttnn.Step{"do": "clash", "of": operand}).Fits {
		x.Errorf("it clashes without the buffer, too")
	}
	do(x.T, x.job, ttnn.Step{"do": "ask", "pool": "l1", "rows": 32, "columns": 32, "name": big})
	return 1
}

var beyondMessage = regexp.MustCompile(`circular buffers on core range \[[^\]]*\] grow to (\d+) B which is beyond max L1 size of (\d+) B`)

// TestBeyondL1: circular buffers that are larger than L1 altogether are a failure
// whether L1 has buffers or not, and no clash: freeing buffers does not help.
func TestBeyondL1(t *testing.T) {
	for _, release := range []string{middle, ttnn.Newest} {
		t.Run(release, func(t *testing.T) {
			x := newStage(t, release, "blackhole_P150", ttnn.Step{"do": "open", "l1_small": 32768})
			do(t, x.job, ttnn.Step{"do": "ask", "pool": "dram", "rows": 32, "columns": 32, "name": "operand"})
			x.beyondL1()
			do(t, x.job, ttnn.Step{"do": "ask", "pool": "l1", "rows": 32, "columns": 32, "name": "in L1"})
			x.beyondL1()
		})
	}
}

func (x *stage) beyondL1() {
	x.Helper()
	x.source.Sync()
	x.source.Failures()
	reply := do(x.T, x.job, ttnn.Step{"do": "clash", "of": "operand", "bytes": 2 << 20})
	m := beyondMessage.FindStringSubmatch(reply.Message)
	if m == nil {
		x.Fatalf("tt-metal says something else: %.400s", reply.Message)
	}
	reach, _ := strconv.ParseUint(m[1], 10, 64)
	size, _ := strconv.ParseUint(m[2], 10, 64)
	for source, r := range map[string]*failure.Record{"uprobe": x.outside(), "libttmon": x.inside()} {
		if r == nil || r.Kind != failure.Clash {
			x.Errorf("%s kept nothing of %s", source, m[0])
			continue
		}
		r.Judge()
		if c, v := r.Clash, r.Verdict; c.Reach != reach || v.Cause != failure.TooLarge || v.Missing != reach-size || len(v.Fixes) > 0 ||
			!slices.Equal(c.Cores, []int{0, 0, 1, 1}) || len(r.Stack) == 0 || len(r.Chips) != 1 || slices.Contains(r.Doubts, failure.SeveralDevices) {
			x.Errorf("%s has %+v, %+v, doubts %v and %d lines, tt-metal says %s", source, c, v, r.Doubts, len(r.Stack), m[0])
		}
	}
}
