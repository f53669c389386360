package page

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// heldBlock is a block of a list: its size of each bank, its site, and when it was made.
type heldBlock struct {
	size uint64
	site uint32
	born int64
}

func holding(pool model.Pool, chips []uint64, list ...heldBlock) *blocks.Allocator {
	l := blocks.NewList(blocks.Geometry{Pool: pool, Banks: 2, Capacity: 1 << 30, Align: 32, Smallest: 32}, blocks.FromStart)
	at := uint64(0)
	for _, h := range list {
		l.Alloc(blocks.Block{Addr: at, Size: h.size, Site: h.site, Born: h.born * 1e9})
		at += h.size
	}
	return &blocks.Allocator{ID: chips[0], Chips: chips, Lists: []*blocks.List{l}}
}

func site(number int, tensor string, lines ...int) callsite.Site {
	s := callsite.Site{Number: number, Tensor: tensor}
	for _, n := range lines {
		s.Stack = append(s.Stack, ledgerfile.Frame{File: "/x/model.py", Line: n, Function: "f"})
	}
	return s
}

// holdersOf are the holders of the pools of a process, each in a line.
func holdersOf(of *held) (out []string) {
	lines := newMapLines(of)
	for _, a := range of.Process.Allocators {
		for _, l := range a.Lists {
			x := bankmap.Pool{List: l, Of: a}
			m := newMapPool(of.Process, x, func(uint64) string { return "" })
			for _, h := range lines.of(x, m.Blocks) {
				out = append(out, fmt.Sprintf("%v %d %q others %d: %d, %d in %d since %d, grew %v, %v", l.Pool, h.Number, h.Line, h.Others, h.Bank, h.Bytes, h.Blocks, h.Oldest, h.Grew, h.Sites))
			}
		}
	}
	return out
}

func TestMapHolders(t *testing.T) {
	frees := []blocks.ChipPool{{Chip: 1, Pool: "dram"}}
	steps := []heldBlock{{64, 1, 10}, {64, 1, 20}, {64, 1, 30}, {64, 1, 40}, {4096, 2, 10}}
	for _, tt := range []struct {
		name       string
		allocators []*blocks.Allocator
		sites      []callsite.Site
		frees      []blocks.ChipPool
		want       []string
	}{
		{"no line is known", []*blocks.Allocator{holding(model.DRAM, []uint64{1}, heldBlock{64, 0, 1})}, nil, nil, nil},
		{
			"a helper is not credited, a line has two sites with a tensor each",
			[]*blocks.Allocator{holding(model.DRAM, []uint64{1}, heldBlock{64, 1, 5}, heldBlock{32, 2, 3}, heldBlock{512, 3, 4}, heldBlock{64, 0, 0})},
			[]callsite.Site{site(1, "[1,2] bfloat16", 6, 10), site(2, "[3] float32", 6, 10), site(3, "", 6, 12)},
			nil,
			[]string{
				`dram 1 "model.py:12 f" others 0: 512, 1024 in 1 since 4000, grew false, [{3 }]`,
				`dram 2 "model.py:10 f" others 0: 96, 192 in 2 since 3000, grew false, [{1 [1,2] bfloat16} {2 [3] float32}]`,
				`dram 0 "" others 0: 64, 128 in 1 since 0, grew false, [{0 }]`,
			},
		},
		{
			"a line has one number on all chips, and one for each pool",
			[]*blocks.Allocator{
				holding(model.DRAM, []uint64{1}, heldBlock{64, 1, 1}, heldBlock{32, 2, 1}), holding(model.DRAM, []uint64{2}, heldBlock{1024, 2, 1}), holding(model.L1, []uint64{1}, heldBlock{64, 1, 1}),
			},
			[]callsite.Site{site(1, "", 10), site(2, "", 12)},
			nil,
			[]string{
				`dram 2 "model.py:10 f" others 0: 64, 128 in 1 since 1000, grew false, [{1 }]`,
				`dram 1 "model.py:12 f" others 0: 32, 64 in 1 since 1000, grew false, [{2 }]`,
				`dram 1 "model.py:12 f" others 0: 1024, 2048 in 1 since 1000, grew false, [{2 }]`,
				`l1 1 "model.py:10 f" others 0: 64, 128 in 1 since 1000, grew false, [{1 }]`,
			},
		},
		{
			"a line that grew step by step, beside weights",
			[]*blocks.Allocator{holding(model.DRAM, []uint64{1}, steps...)},
			[]callsite.Site{site(1, "", 10), site(2, "", 12)},
			frees,
			[]string{
				`dram 1 "model.py:12 f" others 0: 4096, 8192 in 1 since 10000, grew false, [{2 }]`,
				`dram 2 "model.py:10 f" others 0: 256, 512 in 4 since 10000, grew true, [{1 }]`,
			},
		},
		{
			"in a program that only allocates everything grows",
			[]*blocks.Allocator{holding(model.DRAM, []uint64{1}, steps...)},
			[]callsite.Site{site(1, "", 10), site(2, "", 12)},
			nil,
			[]string{
				`dram 1 "model.py:12 f" others 0: 4096, 8192 in 1 since 10000, grew false, [{2 }]`,
				`dram 2 "model.py:10 f" others 0: 256, 512 in 4 since 10000, grew false, [{1 }]`,
			},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got := holdersOf(&held{Process: &blocks.Process{Allocators: tt.allocators}, Sites: tt.sites, Frees: tt.frees})
			for i := range max(len(got), len(tt.want)) {
				if i >= len(got) || i >= len(tt.want) || got[i] != tt.want[i] {
					t.Fatalf("got\n%q\nwant\n%q", got, tt.want)
				}
			}
		})
	}
}

// TestMapHoldersAreBounded: the largest lines are listed, the rest is one holder;
// no block is without one, and nothing is counted twice.
func TestMapHoldersAreBounded(t *testing.T) {
	const n = 5 * maxMapHolders
	var list []heldBlock
	var sites []callsite.Site
	for i := range n {
		list = append(list, heldBlock{uint64(n-i) * 32, uint32(i + 1), int64(i + 1)})
		sites = append(sites, site(i+1, "", i+1))
	}
	a := holding(model.DRAM, []uint64{1}, list...)
	of := held{Process: &blocks.Process{Allocators: []*blocks.Allocator{a}}, Sites: sites}
	m := newMapPool(of.Process, bankmap.Pool{List: a.Lists[0], Of: a}, func(uint64) string { return "" })
	got := newMapLines(&of).of(bankmap.Pool{List: a.Lists[0], Of: a}, m.Blocks)
	if len(got) != maxMapHolders+1 {
		t.Fatalf("%d holders", len(got))
	}
	blocks, bank, found := 0, uint64(0), map[uint32]bool{}
	for _, h := range got {
		blocks += h.Blocks
		bank += h.Bank
		for _, s := range h.Sites {
			if found[s.Site] {
				t.Errorf("site %d has two holders", s.Site)
			}
			found[s.Site] = true
		}
	}
	if u := a.Lists[0].Usage(); blocks != n || bank != u.BankBytes || len(found) != n {
		t.Errorf("%d blocks with %d bytes of %d sites, want %d with %d of %d", blocks, bank, len(found), n, u.BankBytes, n)
	}
	if last := got[maxMapHolders]; last.Others != n-maxMapHolders || last.Oldest != int64(maxMapHolders+1)*1000 {
		t.Errorf("the rest is %+v", last)
	}
}

// TestMapSites: call sites have the line that tells them from the others, and
// their frames without libraries.
func TestMapSites(t *testing.T) {
	lib := ledgerfile.Frame{File: "/x/site-packages/ttnn/decorators.py", Line: 9}
	a := holding(model.DRAM, []uint64{1}, heldBlock{32, 1, 1}, heldBlock{64, 2, 1}, heldBlock{64, 9, 1})
	var sites []callsite.Site
	for n, line := range []int{10, 12, 14} {
		x := site(n+1, "", 6, line)
		x.Stack = append([]ledgerfile.Frame{lib}, x.Stack...)
		sites = append(sites, x)
	}
	got := sitesOf(&held{Process: &blocks.Process{Allocators: []*blocks.Allocator{a}}, Sites: sites}, func(uint64) string { return "device 0" })
	if len(got) != 2 || got[0].Where != "f (model.py:12)" || got[1].Where != "f (model.py:10)" {
		t.Fatalf("%+v", got)
	}
	if got[0].Bytes != 128 || got[0].Blocks != 1 || got[0].Pool != "dram" || got[0].Chip != "device 0" {
		t.Errorf("%+v", got[0])
	}
	if fmt.Sprint(got[0].Own) != "[f (/x/model.py:12) f (/x/model.py:6)]" || len(got[0].Stack) != 3 {
		t.Errorf("own %q of %q", got[0].Own, got[0].Stack)
	}
}
