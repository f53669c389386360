package blocks

import (
	"encoding/json"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func pool(blocks ...Block) *List {
	l := NewList(Geometry{Pool: model.DRAM, Banks: 8, Base: 64, Capacity: 1 << 20, Align: 64}, FromStart)
	for _, b := range blocks {
		l.Alloc(b)
	}
	return l
}

func TestHeld(t *testing.T) {
	mesh := &Allocator{ID: 2, Chips: []uint64{11, 12}, Lists: []*List{pool(Block{Addr: 64, Size: 4096, Asked: 30000})}}
	single := &Allocator{ID: 1, Chips: []uint64{11}, Lists: []*List{pool()}}
	p := &Process{PID: 7, Start: 99, Allocators: []*Allocator{single, mesh}}
	held := p.Held()
	if len(held) != 2 {
		t.Fatalf("%d claims, want one for each chip: %+v", len(held), held)
	}
	for _, h := range held {
		if h.Process != (model.ProcessID{PID: 7, StartTicks: 99}) || len(h.Doubts) > 0 || h.Partial {
			t.Errorf("claim %+v", h)
		}
		if !h.Bytes[model.DRAM].Exactly(30000) || !h.Pools[model.DRAM].Occupied.Exactly(8*4096) {
			t.Errorf("chip %d: used %v, occupied %v", h.Chip.ID, h.Bytes[model.DRAM], h.Pools[model.DRAM].Occupied)
		}
		if got := h.Pools[model.DRAM].Free.V; got != 8*(1<<20-4096) {
			t.Errorf("chip %d: free %d", h.Chip.ID, got)
		}
		if h.Bytes[model.L1].Known() {
			t.Error("a figure for a pool that no allocator has")
		}
	}
}

func TestHeldWithDoubts(t *testing.T) {
	unknown := &Allocator{ID: 1, Lists: []*List{pool(Block{Addr: 64, Size: 4096, Asked: 5000})}}
	p := &Process{PID: 7, Start: 99, Lost: 3, Allocators: []*Allocator{unknown}}
	held := p.Held()
	if len(held) != 1 || !held[0].Chip.Some {
		t.Fatalf("%+v", held)
	}
	kinds := map[model.DoubtKind]bool{}
	for _, d := range held[0].Doubts {
		kinds[d.Kind] = true
	}
	if !kinds[model.EventsLost] {
		t.Errorf("doubts: %+v", held[0].Doubts)
	}
	if n, bound, ok := held[0].Bytes[model.DRAM].Best(); n != 5000 || bound != model.AtLeast || !ok {
		t.Errorf("used %v", held[0].Bytes[model.DRAM])
	}
	over := pool(Block{Addr: 64, Size: 4096, Asked: 1}, Block{Addr: 64, Size: 64, Asked: 1})
	p = &Process{PID: 7, Start: 99, Allocators: []*Allocator{{ID: 1, Chips: []uint64{1}, Lists: []*List{over}}}}
	if _, bound, _ := p.Held()[0].Bytes[model.DRAM].Best(); bound != model.Unsure {
		t.Errorf("blocks over each other make a figure that is %v", bound)
	}
}

// TestHeldRequestUnknown: a block whose request is not known counts as what it
// takes, and the figure says that it may be too high.
func TestHeldRequestUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		blocks []Block
		want   model.Bytes
		doubts int
	}{
		"all known":  {[]Block{{Addr: 64, Size: 4096, Asked: 30000}}, model.ExactBytes(30000), 0},
		"one is not": {[]Block{{Addr: 64, Size: 4096, Asked: 30000}, {Addr: 8192, Size: 64}}, model.BoundBytes(30000+8*64, model.Unsure), 1},
		"none is":    {[]Block{{Addr: 64, Size: 4096}}, model.BoundBytes(8*4096, model.Unsure), 1},
	} {
		t.Run(name, func(t *testing.T) {
			l := pool(c.blocks...)
			p := &Process{PID: 7, Start: 99, Allocators: []*Allocator{{ID: 1, Chips: []uint64{11}, Lists: []*List{l}}}}
			h := p.Held()[0]
			if h.Bytes[model.DRAM] != c.want || len(h.Doubts) != c.doubts || h.Partial {
				t.Errorf("used %v, doubts %v, want %v", h.Bytes[model.DRAM], h.Doubts, c.want)
			}
			if n, bound, known := h.Pools[model.DRAM].Occupied.Best(); bound != model.Exact || !known || n < 8*4096 {
				t.Errorf("occupied %v", h.Pools[model.DRAM].Occupied)
			}
			text, err := json.Marshal(l)
			if err != nil {
				t.Fatal(err)
			}
			var said struct {
				Used  uint64 `json:"used_bytes"`
				Bound string `json:"used_bound"`
			}
			if err := json.Unmarshal(text, &said); err != nil {
				t.Fatal(err)
			}
			if n, bound, _ := c.want.Best(); said.Used != n || said.Bound != bound.String() {
				t.Errorf("JSON has %+v, want %d %v", said, n, bound)
			}
		})
	}
}
