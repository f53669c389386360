package bankmap

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// The map in the README is what the program prints; make update rewrites it.
func TestReadme(t *testing.T) {
	const path, begin, fence = "../../../README.md", "`ttmon mem`, who holds what", "```\n"
	old, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(old), begin)
	words, rest, open := strings.Cut(rest, fence)
	_, tail, closed := strings.Cut(rest, fence)
	if !ok || !open || !closed {
		t.Fatalf("%s has no place for the map: %q", path, begin)
	}
	const base, mib, gib = 0x100080, 1 << 20, 1 << 30
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Base: base, Capacity: 4273*mib - base, Align: 64, Smallest: 64}, blocks.FromStart)
	born := now.Add(-2 * time.Hour).UnixNano()
	at := uint64(base)
	for _, b := range []struct{ bank, asked, hole uint64 }{{1280 * mib, 10 * gib, 0}, {768 * mib, 6 * gib, 640 * mib}, {24 * mib, 192 * mib, 96 * mib}} {
		l.Alloc(blocks.Block{Addr: at, Size: b.bank, Asked: b.asked, Born: born})
		at += b.bank + b.hole
	}
	p := &blocks.Process{PID: 182034, Allocators: []*blocks.Allocator{{Chips: []uint64{7}, Lists: []*blocks.List{l}}}}
	drawn := Lines(p, Options{Width: 100, Now: now, Chip: func(uint64) string { return "device 0" }})[2:] // without the process
	fit, known := l.Fits(blocks.Request{Bytes: 512 * mib})
	if !known {
		t.Fatal("what fits is not known")
	}
	drawn = append(drawn, nil, lines.Plain(fitLine("512 MiB", l, fit)))
	golden.Check(t, path, []byte(head+begin+words+fence+text(drawn)+"\n"+fence+tail))
}
