package top

import (
	"fmt"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/config"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// BenchmarkSecond is what one second at 1 Hz costs a screen, without reading
// the host and without the terminal: 1 ms is 0.1 % of a core.
func BenchmarkSecond(b *testing.B) {
	for _, n := range []int{1, 8, 32} {
		for _, size := range [][2]int{{80, 24}, {120, 40}, {200, 50}} {
			b.Run(fmt.Sprintf("devices=%d/%dx%d", n, size[0], size[1]), func(b *testing.B) {
				second(b, n, size[0], size[1])
			})
		}
	}
}

func second(b *testing.B, n, w, h int) {
	s, err := New(Options{Config: config.Default()})
	if err != nil {
		b.Fatal(err)
	}
	s.Update(tui.Resize{W: w, H: h})
	host := make([]*model.Snapshot, 600)
	for i := range host {
		host[i] = tuitest.Host(n, i)
		s.Update(tui.Sample{Snapshot: host[i]})
	}
	now, then := cells.NewGrid(w, h), cells.NewGrid(w, h)
	changed, i := 0, 0
	b.ReportAllocs()
	for b.Loop() {
		snap := *host[i%len(host)]
		_, newest := s.hist.Span()
		snap.Time = newest.Add(time.Second)
		s.Update(tui.Sample{Snapshot: &snap})
		now.Clear()
		s.Draw(now)
		changed += now.Diff(then, func(int, int, cells.Cell) {})
		now, then = then, now
		i++
	}
	b.ReportMetric(float64(changed)/float64(b.N), "cells/op")
}
