package bankmap

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
)

var now = time.Unix(1_800_000_000, 0)

// sample is a process with a mesh: an allocator for each chip, which stays
// empty, and one for both.
func sample() *blocks.Process {
	geometry := blocks.Geometry{Pool: model.DRAM, Banks: 12, Base: 1024, Capacity: 1 << 30, Align: 32, Smallest: 32}
	empty := &blocks.Allocator{ID: 1, Lists: []*blocks.List{blocks.NewList(geometry, blocks.FromStart)}}
	dram := blocks.NewList(geometry, blocks.FromStart)
	born := now.Add(-90 * time.Second).UnixNano()
	dram.Alloc(blocks.Block{Addr: 1024, Size: 400 << 20, Asked: 4799 << 20, Born: born})
	dram.Alloc(blocks.Block{Addr: 1024 + 600<<20, Size: 100 << 20, Asked: 1200 << 20, Born: born + 5e9})
	dram.Alloc(blocks.Block{Addr: 1024 + 800<<20, Size: 4096})
	l1 := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 64, Base: 105824, Capacity: 1360544, Align: 32, Smallest: 32}, blocks.FromStart)
	l1.Alloc(blocks.Block{Addr: 105824 + 1360544 - 16384, Size: 16384, Asked: 1 << 20, Born: born})
	return &blocks.Process{
		PID: 4242, Start: 5,
		Allocators: []*blocks.Allocator{empty, {ID: 2, Chips: []uint64{7, 9}, Lists: []*blocks.List{dram, l1}}},
		Programs:   []*blocks.Program{{Base: 105824, End: 105824 + 12288}, {Base: 105824, End: 105824 + 768<<10}},
	}
}

// Circular buffers that reach into a buffer keep their program from running;
// which of several devices they are for is not known.
func TestPrograms(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*blocks.Process)
		width  int
		want   []string
	}{
		"room":        {func(*blocks.Process) {}, 100, []string{"  circular buffers of 2 programs: up to 768 KiB a core, below 0xd9d60; 545 KiB to the lowest buffer"}},
		"narrow":      {func(*blocks.Process) {}, 80, []string{"  circular buffers of 2 programs: up to 768 KiB a core, below 0xd9d60", "  545 KiB to the lowest buffer"}},
		"one, late":   {func(p *blocks.Process) { p.Programs, p.Late = p.Programs[:1], true }, 120, []string{"  circular buffers of at least 1 program: up to 12 KiB a core, below 0x1cd60; 1.3 MiB to the lowest buffer"}},
		"clash":       {func(p *blocks.Process) { p.Programs[0].End = 1460000 }, 80, []string{"  circular buffers of 2 programs: up to 1.3 MiB a core, below 0x164720", "  they clash with the buffer at 0x162000"}},
		"two devices": {func(p *blocks.Process) { p.Allocators = append(p.Allocators, p.Allocators[1]) }, 100, []string{"  circular buffers of 2 programs: up to 768 KiB a core, below 0xd9d60"}},
		"none":        {func(p *blocks.Process) { p.Programs = nil }, 100, nil},
	} {
		t.Run(name, func(t *testing.T) {
			p := sample()
			c.change(p)
			if got := programs(p, Pool{List: p.Allocators[1].Lists[1], Of: p.Allocators[1]}, Options{Width: c.width}); !slices.Equal(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
			if got := programs(p, Pool{List: p.Allocators[1].Lists[0], Of: p.Allocators[1]}, Options{Width: c.width}); got != nil {
				t.Errorf("in DRAM: %q", got)
			}
		})
	}
}

func TestLines(t *testing.T) {
	o := Options{Width: 80, Now: now, Title: "python train.py \x1b[31m", Chip: func(id uint64) string {
		return map[uint64]string{7: "device 0 L", 9: "device 0 R"}[id]
	}}
	golden.Check(t, "testdata/lines.txt", []byte(text(Lines(sample(), o))+"\n"))
	o.Chip, o.Top = nil, 1
	p := sample()
	p.Late, p.Lost = true, 3
	p.Allocators[1].Chips = []uint64{1, 2, 3}
	late := blocks.NewList(blocks.Geometry{Pool: model.Trace}, blocks.Late)
	late.Alloc(blocks.Block{Addr: 64, Size: 64})
	p.Allocators[1].Lists = append(p.Allocators[1].Lists, late)
	golden.Check(t, "testdata/doubtful.txt", []byte(text(Lines(p, o))+"\n"))
	golden.Check(t, "testdata/nothing.txt", []byte(text(Lines(&blocks.Process{PID: 1}, o))+"\n"))
}

// Of a process that was there before, the chips that it opened since are known
// whole; a pool without room is not worth a line.
func TestDoubtsOfLateProcesses(t *testing.T) {
	p := sample()
	p.Late, p.Seen = true, []uint64{7}
	if got := Doubts(p); len(got) != 1 || strings.Contains(got[0], "known whole") {
		t.Errorf("one of two chips was opened before: %q", got)
	}
	p.Seen = []uint64{7, 9}
	if got := Doubts(p); len(got) != 1 || !strings.Contains(got[0], "known whole") {
		t.Errorf("all chips were opened since: %q", got)
	}
	a := p.Allocators[1]
	a.Lists = append(a.Lists, blocks.NewList(blocks.Geometry{Pool: model.Trace, Banks: 8}, blocks.FromStart))
	if got := text(Lines(p, Options{Now: now})); strings.Contains(got, "TRACE") {
		t.Errorf("a pool that has no room:\n%s", got)
	}
}

// text is lines without their styles.
func text(list []lines.Line) string {
	var out []string
	for _, l := range list {
		out = append(out, l.String())
	}
	return strings.Join(out, "\n")
}

func TestMap(t *testing.T) {
	l := blocks.NewList(blocks.Geometry{Base: 64, Capacity: 1000}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 64, Size: 200})
	l.Alloc(blocks.Block{Addr: 64 + 550, Size: 10})
	for width, want := range map[int]string{19: "0 ██░░░▓░░░░ 1000 B", 29: "0 ████░░░░░░░▓░░░░░░░░ 1000 B", 12: "", 0: ""} {
		t.Run(fmt.Sprint(width), func(t *testing.T) {
			if got := mapLine(l, nil, Options{Width: width}).String(); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
	l.Cut = 100
	l.Free(64)
	if got := mapLine(l, nil, Options{Width: 19}).String(); got != "0 █░░░░▓░░░░ 1000 B" {
		t.Errorf("with a cut: %q", got)
	}
}

func TestFitLine(t *testing.T) {
	a := sample().Allocators[1]
	var out []string
	for _, bytes := range []uint64{1 << 30, 4 << 30, 40 << 30} {
		f, known := a.Lists[0].Fits(blocks.Request{Bytes: bytes})
		if !known {
			t.Fatal("not known")
		}
		out = append(out, fitLine("that", a.Lists[0], f))
	}
	f, _ := a.Lists[1].Fits(blocks.Request{Bytes: 1 << 30})
	out = append(out, fitLine("that", a.Lists[1], f))
	golden.Check(t, "testdata/fits.txt", []byte(strings.Join(out, "\n")+"\n"))
}

func TestReports(t *testing.T) {
	a := sample().Allocators[1]
	late := *a.Lists[0]
	late.Origin = blocks.Late
	if !Reportable(a) || Reportable(&blocks.Allocator{Lists: []*blocks.List{&late}}) {
		t.Error("an allocator can be reported if and only if all its blocks are known")
	}
	for name, content := range Reports(a) {
		golden.Check(t, "testdata/"+name, content)
	}
}
