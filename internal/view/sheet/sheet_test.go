package sheet

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// Of more blocks than a screen has points the largest are drawn, by address.
func TestMapIsBounded(t *testing.T) {
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Base: 64, Capacity: 1 << 32, Align: 64, Smallest: 64}, blocks.FromStart)
	for i := range uint64(2 * MaxSpans) {
		l.Alloc(blocks.Block{Addr: 64 + i*4096, Size: 64 + i%2*64})
	}
	m := MapOf(l, func(blocks.Block) int { return 0 }, time.Time{}, MaxSpans)
	if len(m.Spans) != MaxSpans || m.LeftOut != MaxSpans || m.Spans[0][1] != 128 {
		t.Fatalf("%d spans, %d left out, the first is %v", len(m.Spans), m.LeftOut, m.Spans[0])
	}
	for i := 1; i < len(m.Spans); i++ {
		if m.Spans[i][0] <= m.Spans[i-1][0] {
			t.Fatal("they are not in the order of their addresses")
		}
	}
}
