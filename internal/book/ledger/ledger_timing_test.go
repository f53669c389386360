package ledger

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// BenchmarkApply books alternating allocations and frees among n live
// buffers: what the hot path pays after decoding.
func BenchmarkApply(b *testing.B) {
	for name, n := range map[string]uint64{"1k": 1 << 10, "64k": 1 << 16, "1M": 1 << 20} {
		b.Run(name, func(b *testing.B) {
			l := New(Options{})
			p := l.Open(Info{}, t0)
			fill(l, p, n)
			events := make([]Event, 1024)
			next, i := n, uint64(0)
			b.ReportAllocs()
			for b.Loop() {
				for j := range events {
					if j%2 == 0 {
						events[j] = alloc(0, next*32, 4096, dram)
						next++
					} else {
						events[j] = free(0, i*32)
						i++
					}
				}
				l.Apply(p, events, t0)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(events)), "ns/event")
		})
	}
}

func fill(l *Ledger, p *Process, n uint64) {
	events := make([]Event, 0, 1024)
	for i := range n {
		if events = append(events, alloc(0, i*32, 4096, dram)); len(events) == cap(events) {
			l.Apply(p, events, t0)
			events = events[:0]
		}
	}
	l.Apply(p, events, t0)
}

// memory is that of Go's heap and of a ledger's file.
func memory(l *Ledger) uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapInuse + uint64(l.arena.used*unit)
}

// TestBytesPerBuffer holds the ledger to its promise of at most 64 bytes per
// live buffer, everything included, at sizes around the points where tables
// usually double.
func TestBytesPerBuffer(t *testing.T) {
	hermetic.Long(t)
	sizes := []uint64{100_000, 1_000_000, 1 << 20, 1<<20 + 1, 1_500_000}
	if raceDetector {
		sizes = sizes[:1] // it makes no difference to the result, only to the time
	}
	for _, n := range sizes {
		t.Run(fmt.Sprint(n, " buffers"), func(t *testing.T) {
			l := New(Options{})
			before := memory(l)
			p := l.Open(Info{}, t0)
			fill(l, p, n)
			per := float64(memory(l)-before) / float64(n)
			t.Logf("%d buffers: %.1f bytes each", n, per)
			if per > 64 {
				t.Errorf("%d buffers take %.1f bytes each, want at most 64", n, per)
			}
			runtime.KeepAlive(l)
		})
	}
}

// No event allocates, once a process has its size.
func TestApplyAllocatesNothing(t *testing.T) {
	l := New(Options{})
	p := l.Open(Info{}, t0)
	fill(l, p, 5000)
	events := []Event{alloc(0, 1, 64, dram), free(0, 1), alloc(1, 7, 64, l1), free(0, 7), free(0, 99)}
	l.Apply(p, events, t0)
	if n := testing.AllocsPerRun(100, func() { l.Apply(p, events, t0) }); n != 0 {
		t.Errorf("a batch allocates %v times", n)
	}
}

// BenchmarkQuery is one device's sums among a million buffers.
func BenchmarkQuery(b *testing.B) {
	l := New(Options{})
	fill(l, l.Open(Info{}, t0), 1<<20)
	for b.Loop() {
		l.Device(0)
	}
}

// BenchmarkEnd is how long a process with 64k buffers holds up everybody else
// when it dies. It does not depend on how many there are.
func BenchmarkEnd(b *testing.B) {
	l := New(Options{})
	var held time.Duration
	for b.Loop() {
		p := l.Open(Info{}, t0)
		fill(l, p, 1<<16)
		start := time.Now()
		l.End(p, "exited", t0, nil)
		held += time.Since(start)
		l.Wait()
	}
	b.ReportMetric(float64(held.Nanoseconds())/float64(b.N), "ns/end")
}

// BenchmarkState hands four million buffers on: no client is served meanwhile.
func BenchmarkState(b *testing.B) {
	l := New(Options{})
	fill(l, l.Open(Info{}, t0), 4<<20)
	for b.Loop() {
		next, err := restored(l)
		if err != nil {
			b.Fatal(err)
		}
		next.arena.close()
	}
}
