package bankmap

import (
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
)

// hybrid is a process whose L1 is given out core by core: 20 KiB on all cores of its
// chip, 1 MiB on two of them, and 64 KiB at one address that only other cores use.
func hybrid() *blocks.Process {
	geometry := blocks.Geometry{Pool: model.L1, Banks: 110, Base: 107968, Capacity: 1464896, Align: 64, Smallest: 64}
	top := geometry.Base + geometry.Capacity
	born := now.Add(-time.Minute).UnixNano()
	lists := func() (list []*blocks.List) {
		for n := range 111 {
			g := geometry
			g.Nth = uint32(n + 1)
			list = append(list, blocks.NewList(g, blocks.FromStart))
		}
		return list
	}
	own := &blocks.Allocator{ID: 1, Chips: []uint64{7}, Lists: lists()}
	mesh := &blocks.Allocator{ID: 2, Chips: []uint64{7}, Lists: lists()}
	mesh.Lists[0].Alloc(blocks.Block{Addr: top - 20480, Size: 20480, Asked: 20480 * 110, Born: born})
	own.Lists[0].Alloc(blocks.Block{Addr: top - 20480, Size: 20480})
	mesh.Lists[0].Alloc(blocks.Block{Addr: top - 20480 - 1<<20, Size: 65536, Asked: 65536, Born: born})
	own.Lists[0].Alloc(blocks.Block{Addr: top - 20480 - 1<<20, Size: 65536})
	banks := blocks.CoreBanks(110)
	for _, core := range []int{3, 4} { // of the first row
		own.Lists[1+banks[core]].Alloc(blocks.Block{Addr: top - 20480 - 1<<20, Size: 1 << 20, Asked: 1 << 20, Born: born})
	}
	return &blocks.Process{PID: 4242, Start: 5, Allocators: []*blocks.Allocator{own, mesh}, Programs: []*blocks.Program{{Base: geometry.Base, End: geometry.Base + 400<<10}}}
}

// TestPerCore: one section for the cores that hold the same, and answers that tt-metal
// gives to each kind of request.
func TestPerCore(t *testing.T) {
	o := Options{Width: 100, Now: now, Title: "python serve.py", Chip: func(uint64) string { return "device 0" }}
	out := text(Lines(hybrid(), o)) + "\n"
	for _, q := range []FitQuery{
		{Size: "40M", Pool: "l1"},
		{Size: "60M", Pool: "l1"},
		{Size: "500K", Pool: "l1", Range: true, Cores: "0,1-7,1"},
		{Size: "500K", Pool: "l1", Range: true, Cores: "3,0"},
		{Size: "500K", Pool: "l1", PerCore: true},
		{Size: "300K", Pool: "l1", PerCore: true, Cores: "0,0-3,0"},
		{Size: "300K", Pool: "l1", PerCore: true, Cores: "0,0-30,0"},
		{Size: "1000K", Pool: "l1", PerCore: true, Cores: "0,0-3,0"},
	} {
		w, err := q.Parse()
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range w.Answers(hybrid(), o.Chip) {
			out += strings.TrimSpace(a.What+"\n  "+a.Line) + "\n"
		}
	}
	golden.Check(t, "testdata/percore.txt", []byte(out))
}
