package uprobe

import (
	"fmt"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/e2e/ttnn"
)

// hitsPerRound are those of an allocation with its free: the buffer, asked, taken, freed.
const hitsPerRound = 4

// BenchmarkHits is what an allocation and its free cost the program, unwatched and
// watched, in C alone and with ttnn. Aim: 2 µs a hit, of which there are four.
func BenchmarkHits(b *testing.B) {
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("bare,watched=%v", watched), func(b *testing.B) {
			w := startFake(b, exec.Command(fake(b)))
			if watched {
				isWatched(b, watch(b, Options{Limit: 1e9}), w)
			}
			w.do("make %d 5", 1<<20)
			b.ResetTimer()
			ns, err := strconv.ParseFloat(w.do("loop %d 0", b.N), 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(ns, "ns/op")
			b.ReportMetric(hitsPerRound, "hits/op")
		})
	}
	for _, watched := range []bool{false, true} {
		b.Run(fmt.Sprintf("ttnn,watched=%v", watched), func(b *testing.B) {
			descriptor, err := ttnn.Descriptor("blackhole_P150")
			if err != nil {
				b.Skip(err)
			}
			o, spin := ttnn.Options{Descriptor: descriptor, Dir: b.TempDir()}, ttnn.Step{"do": "spin", "rounds": 5000}
			var j *ttnn.Job
			if watched {
				s := watch(b, Options{Limit: 1e9})
				j = start(b, s, o)
				do(b, j, ttnn.Step{"do": "open"})
				eventually(b, "it is known which chip the buffers are on", func() bool { do(b, j, spin); return !s.learns(j.PID) })
			} else {
				if j, err = ttnn.Start(o); err != nil {
					b.Skip(err)
				}
				defer func() { _ = j.End() }()
				do(b, j, ttnn.Step{"do": "open"})
				do(b, j, spin)
			}
			b.ResetTimer()
			r := do(b, j, ttnn.Step{"do": "spin", "rounds": b.N})
			b.StopTimer()
			b.ReportMetric(r.Round, "ns/op")
			b.ReportMetric(hitsPerRound, "hits/op")
		})
	}
}

func isWatched(b *testing.B, s *Source, w *workload) {
	b.Helper()
	eventually(b, "the program is watched", func() bool { _, ok := s.Find(w.pid); return ok })
}

// BenchmarkPace is what watching costs us at 10,000 events a second (aim: 5 % of a core),
// and how many a second come through, and how many are lost, when there are more.
func BenchmarkPace(b *testing.B) {
	for _, rate := range []int{10_000, 50_000, 100_000, 0} {
		b.Run(fmt.Sprintf("rate=%d", rate), func(b *testing.B) {
			s := watch(b, Options{Limit: 1e9})
			w := startFake(b, exec.Command(fake(b)))
			isWatched(b, s, w)
			w.do("make %d 5", 1<<20)
			const eventsPerRound = 2
			before, cpu := s.Stats(), ourCPU()
			b.ResetTimer()
			w.do("loop %d %d", b.N, rate/eventsPerRound)
			s.Sync()
			b.StopTimer()
			seconds := b.Elapsed().Seconds()
			b.ReportMetric((ourCPU()-cpu).Seconds()/seconds*100, "%core")
			b.ReportMetric(float64(s.Stats().Events-before.Events)/seconds, "events/s")
			time.Sleep(time.Second) // the next sweep counts what was lost
			b.ReportMetric(float64(s.Stats().Lost-before.Lost), "lost")
		})
	}
}

// ourCPU is the processor time of this process.
func ourCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
