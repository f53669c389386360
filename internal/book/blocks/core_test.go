package blocks

import (
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

// coreLists are the lists of an allocator that gives out L1 core by core, of four cores.
func coreLists() (list []*List) {
	for n := range uint32(5) {
		list = append(list, NewList(Geometry{Pool: model.L1, Banks: 4, Base: 1000, Capacity: 1000, Align: 64, Nth: n + 1}, FromStart))
	}
	return list
}

// twoChips is a mesh of two chips: 100 bytes at the top of all cores, 50 on one core of
// each, and 200 at addresses that a core of the first chip has given out already.
func twoChips() *Process {
	own, other, mesh := coreLists(), coreLists(), coreLists()
	for _, l := range []*List{own[0], other[0], mesh[0]} {
		l.Alloc(Block{Addr: 1900, Size: 100})
	}
	own[1].Alloc(Block{Addr: 1850, Size: 50})
	other[4].Alloc(Block{Addr: 1800, Size: 50})
	mesh[0].Alloc(Block{Addr: 1650, Size: 200})
	own[0].Alloc(Block{Addr: 1650, Size: 200})
	own[3].Alloc(Block{Addr: 1600, Size: 100})
	return &Process{PID: 5, Allocators: []*Allocator{
		{ID: 1, Chips: []uint64{7}, Lists: own}, {ID: 2, Chips: []uint64{9}, Lists: other}, {ID: 3, Chips: []uint64{7, 9}, Lists: mesh},
	}}
}

func TestPerCoreL1(t *testing.T) {
	l, known := twoChips().PerCore()
	if !known || len(l.Chips) != 2 || len(l.Meshes) != 1 {
		t.Fatalf("%+v %v", l, known)
	}
	// 300 on each core, and 50 on one; of 100 on another core 50 lie under the mesh's.
	if c := l.Chip(7); l.Used(c) != 4*300+50+50 || l.Holes(c) != (Holes{600, 600, 650}) {
		t.Errorf("one chip: %d %+v", l.Used(c), l.Holes(c))
	}
	// 300 on each core of the other chip, too; its own buffer lies under them.
	if c := l.Chip(9); l.Used(c) != 4*300 || l.Holes(c) != (Holes{600, 800, 900}) {
		t.Errorf("the other: %d %+v", l.Used(c), l.Holes(c))
	}
	// A buffer on two cores has to avoid what these have on both chips.
	if n := l.Lockstep(l.Meshes[0], []int{0, 1}); n != 650 {
		t.Errorf("on two cores: %d", n)
	}
	groups := l.Groups(l.Chips[0])
	if len(groups) != 3 || !slices.Equal(groups[0].Banks, []int{1, 3}) || !slices.Equal(groups[2].Banks, []int{2}) {
		t.Fatalf("%+v", groups)
	}
	if got := slices.Collect(groups[2].List.All()); !slices.Equal(got, []Block{{Addr: 1600, Size: 100}, {Addr: 1700, Size: 150}, {Addr: 1900, Size: 100}}) {
		t.Errorf("%+v", got)
	}
	for _, g := range groups {
		if g.List.Peak != (Peak{}) {
			t.Errorf("a peak that was not seen: %+v", g.List.Peak)
		}
	}
	held := twoChips().Held()
	if len(held) != 2 || !held[0].Bytes[model.L1].Exactly(1300) || len(held[0].Doubts) > 0 || held[0].Pools[model.L1].LargestFree.V != 4*600 || held[0].Pools[model.L1].Free.V != 2700 {
		t.Errorf("%+v", held)
	}
}

// What is not known of such an allocator makes all of its L1 unknown.
func TestPerCoreL1Unknown(t *testing.T) {
	for name, change := range map[string]func(*Process){
		"events were lost":            func(p *Process) { p.Lost = 1 },
		"it was met late":             func(p *Process) { p.Late = true },
		"one chip was opened before":  func(p *Process) { p.Late, p.Seen = true, []uint64{7} },
		"the order of the lists":      func(p *Process) { p.Allocators[0].Lists[2].Nth = 0 },
		"two lists of a core":         func(p *Process) { p.Allocators[0].Lists[2].Nth = 4 },
		"more lists than cores":       func(p *Process) { p.Allocators[0].Lists[2].Nth = 6 },
		"a list was found in use":     func(p *Process) { p.Allocators[1].Lists[4].Origin = Late },
		"a list contradicts itself":   func(p *Process) { p.Allocators[1].Lists[4].Contradictions = 1 },
		"a forked child's copy":       func(p *Process) { p.Allocators[2].Lists[0].Inherited = true },
		"L1 that was made smaller":    func(p *Process) { p.Allocators[1].Lists[1].Cut = 64 },
		"a block outside":             func(p *Process) { p.Allocators[0].Lists[1].Alloc(Block{Addr: 4294819584, Size: 64}) },
		"the chips of an allocator":   func(p *Process) { p.Allocators[1].Chips = nil },
		"a chip's own allocator":      func(p *Process) { p.Allocators = p.Allocators[1:] },
		"one core's buffer on a mesh": func(p *Process) { p.Allocators[2].Lists[1].Alloc(Block{Addr: 1000, Size: 64}) },
		"a sub-device that has L1 as well": func(p *Process) {
			x := NewList(Geometry{Pool: model.L1, Banks: 4, Base: 1000, Capacity: 1000}, FromStart)
			x.Alloc(Block{Addr: 1000, Size: 64})
			p.Allocators = append(p.Allocators, &Allocator{ID: 4, Chips: []uint64{7}, Lists: []*List{x}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			p := twoChips()
			change(p)
			if l, known := p.PerCore(); known {
				t.Fatalf("%+v", l)
			}
			for _, h := range p.Held() {
				if h.Bytes[model.L1].Known() && h.Bytes[model.L1] != model.ExactBytes(0) {
					t.Errorf("%+v", h.Bytes[model.L1])
				}
			}
		})
	}
	if _, known := (&Process{}).PerCore(); known {
		t.Error("a process without allocators")
	}
}

// The banks of the cores of a Wormhole and of a Blackhole, as tt-metal mixes them up:
// TestPerCoreL1 of source/track holds all of them against the real one.
func TestCoreBanks(t *testing.T) {
	for _, n := range []int{0, 1, 2, 63, 64, 110} {
		banks := CoreBanks(n)
		slices.Sort(banks)
		for i, b := range banks {
			if b != i {
				t.Fatalf("of %d cores: %v", n, banks)
			}
		}
	}
	l := &CoreL1{Geometry: Geometry{Banks: 110, Align: 64}}
	for bank := range 110 {
		x, y, known := l.Place(bank)
		back, also := l.BankAt(x, y)
		if !known || !also || back != bank {
			t.Fatalf("bank %d is at (%d,%d), where bank %d is", bank, x, y, back)
		}
	}
	l.Banks, l.Align = 56, 32 // 8 by 7, or 7 by 8
	if _, _, known := l.Place(0); known {
		t.Error("56 cores of a Wormhole have one shape")
	}
	if _, known := l.BankAt(0, 0); known {
		t.Error("56 cores of a Wormhole have one shape")
	}
}

// BenchmarkPerCoreL1 is what a snapshot costs of a process with 32 chips of 72 cores: a
// thousand buffers on all cores, and ten on each core of each chip. The floor is one walk
// over the blocks.
func BenchmarkPerCoreL1(b *testing.B) {
	const chips, cores, shared, own = 32, 72, 1000, 10
	p := &Process{PID: 5}
	mesh := &Allocator{ID: chips}
	lists := func() (list []*List) {
		for n := range uint32(cores + 1) {
			list = append(list, NewList(Geometry{Pool: model.L1, Banks: cores, Base: 1 << 17, Capacity: 1 << 20, Align: 32, Nth: n + 1}, FromStart))
		}
		return list
	}
	mesh.Lists = lists()
	for id := range uint64(chips) {
		a := &Allocator{ID: id, Chips: []uint64{id + 1}, Lists: lists()}
		p.Allocators, mesh.Chips = append(p.Allocators, a), append(mesh.Chips, id+1)
		for k, l := range a.Lists {
			n := uint64(own)
			if k == 0 {
				n = shared
			}
			for i := range n {
				l.Alloc(Block{Addr: 1<<17 + i*512 + uint64(k)*32, Size: 32})
			}
		}
	}
	for i := range uint64(shared) {
		mesh.Lists[0].Alloc(Block{Addr: 1<<17 + i*512, Size: 32})
	}
	p.Allocators = append(p.Allocators, mesh)
	b.Run("held", func(b *testing.B) {
		for b.Loop() {
			p.Held()
		}
	})
	b.Run("floor", func(b *testing.B) {
		for b.Loop() {
			for _, a := range p.Allocators {
				for _, l := range a.Lists {
					for range l.All() {
					}
				}
			}
		}
	})
}
