package bankmap

import (
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/lab/golden"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
)

// TestHolders: a bank with lines: each cell has the colour of the line that has
// most of it, the legend names them, and holes say between whose blocks they lie.
func TestHolders(t *testing.T) {
	const kib = 1 << 10
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 110, Base: 4096, Capacity: 1280 * kib, Align: 64, Smallest: 64}, blocks.FromStart)
	at := uint64(4096)
	for i, b := range []struct {
		size, hole uint64
		site       uint32
	}{{400 * kib, 0, 1}, {240 * kib, 49 * kib, 1}, {128 * kib, 41 * kib, 2}, {256 * kib, 23 * kib, 2}, {100 * kib, 0, 3}} {
		l.Alloc(blocks.Block{Addr: at, Size: b.size, Born: now.Add(time.Duration(i-100) * time.Second).UnixNano(), Site: b.site})
		at += b.size + b.hole
	}
	p := &blocks.Process{PID: 4242, Allocators: []*blocks.Allocator{{Chips: []uint64{7}, Lists: []*blocks.List{l}}}}
	names := map[uint32]string{1: "model.py:88 kv_cache", 2: "model.py:131 scores"}
	o := Options{Width: 80, Now: now, Top: 4, Place: func(b blocks.Block) string { return names[b.Site] }}
	var out strings.Builder
	print := lines.Printer{Options: lines.Options{Color: true}}
	print.Lines(Lines(p, o)...)
	out.WriteString(strings.ReplaceAll(string(print.Buf), "\x1b", "^"))
	golden.Check(t, "testdata/holders.txt", []byte(out.String()))
	o.Top = 1
	golden.Check(t, "testdata/holders-short.txt", []byte(text(Lines(p, o))+"\n"))
}
