package blocks

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/ttmon/ttmon/internal/model"
)

func sample() *Process {
	dram := NewList(Geometry{Pool: model.DRAM, Banks: 12, Base: 32, Capacity: 1 << 30, Align: 32, Smallest: 32}, FromStart)
	dram.Alloc(Block{Addr: 32, Size: 4096, Asked: 40_000, Born: 1_700_000_000_000_000_000, Tag: 3, Site: 4})
	l1 := NewList(Geometry{Pool: model.L1}, Late)
	l1.Free(7)
	second := 1
	return &Process{
		PID: 4242, Start: 99, Release: "0.81.1",
		Allocators: []*Allocator{{ID: 1, Chips: []uint64{9956278468, 14251245764}, Lists: []*List{dram, l1}, SubDevice: &second}},
	}
}

func TestProcessIsHandedOnWhole(t *testing.T) {
	p := sample()
	data, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	var again Process
	if err := json.Unmarshal(data, &again); err != nil {
		t.Fatal(err)
	}
	opts := cmp.Options{cmp.AllowUnexported(List{}, index{}), cmpopts.EquateEmpty()}
	if diff := cmp.Diff(p, &again, opts); diff != "" {
		t.Error(diff)
	}
	c := p.Clone()
	if diff := cmp.Diff(p, c, opts); diff != "" {
		t.Error(diff)
	}
	c.Allocators[0].Chips[0] = 0
	c.Allocators[0].Lists[0].Clear()
	if p.Allocators[0].Chips[0] == 0 || p.Blocks() != 1 {
		t.Error("a clone shares memory with its original")
	}
}

func TestForeignJSON(t *testing.T) {
	for _, bad := range []string{
		`{"pool":"heap"}`,
		`{"pool":"dram","blocks":[{"address":0,"bank_bytes":64},{"address":32,"bank_bytes":64}]}`,
		`{"pool":"dram","blocks":[{"address":0,"bank_bytes":0}]}`,
		`[]`,
	} {
		if err := json.Unmarshal([]byte(bad), new(List)); err == nil {
			t.Errorf("%s is accepted", bad)
		}
	}
}

func TestExact(t *testing.T) {
	if p := sample(); p.Exact() {
		t.Error("exact with a list that was found late")
	}
	for what, change := range map[string]func(*Process){
		"late": func(p *Process) { p.Late = true },
		"lost": func(p *Process) { p.Lost = 1 },
	} {
		t.Run(what, func(t *testing.T) {
			p := sample()
			p.Allocators[0].Lists[1].Clear()
			if !p.Exact() {
				t.Fatal("not exact although all is known")
			}
			if change(p); p.Exact() {
				t.Errorf("exact although %s", what)
			}
		})
	}
	a := sample().Allocators[0]
	if lists := a.Pool(model.L1); len(lists) != 1 || lists[0].Origin != Late {
		t.Errorf("%v", lists)
	}
}
