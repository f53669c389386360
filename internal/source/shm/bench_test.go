package shm

import (
	"fmt"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim/metal"
)

// BenchmarkSweep reads 32 regions with 64 slots each, all of live processes,
// and compares with a loop that does no more than read the bytes. "idle" is a
// sweep in which nothing changed, "busy" one in which every region did.
func BenchmarkSweep(b *testing.B) {
	const chips, processes = 32, 64
	hermetic.Need(b)
	for range processes {
		p, err := metal.Start(metal.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = p.End() })
		for id := range chips {
			for _, c := range []string{fmt.Sprintf("open %d", 1000+id), fmt.Sprintf("alloc %d dram 1M", 1000+id)} {
				if _, err := p.Do(c); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	r := NewReader(Options{})
	b.Cleanup(r.Close)
	sweep := r.Read(nil)
	if len(sweep.Regions) != chips || len(sweep.Regions[0].Uses) != processes {
		b.Fatalf("%d regions with %d uses", len(sweep.Regions), len(sweep.Regions[0].Uses))
	}

	var floor float64
	b.Run("floor", func(b *testing.B) {
		var fds []int
		for _, reg := range sweep.Regions {
			fd, err := unix.Open(reg.Path, unix.O_RDONLY|unix.O_CLOEXEC, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(fd)
			fds = append(fds, fd)
		}
		buf := make([]byte, Size)
		for b.Loop() {
			for _, fd := range fds {
				if n, err := unix.Pread(fd, buf, 0); n != Size || err != nil {
					b.Fatal(n, err)
				}
			}
		}
		floor = perOp(b)
	})
	report := func(b *testing.B) {
		if floor > 0 {
			b.ReportMetric(perOp(b)/floor, "x-floor")
		}
		// At ten sweeps a second.
		b.ReportMetric(100*10*perOp(b)/1e9, "%core-at-10Hz")
	}
	b.Run("idle", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r.Read(nil)
		}
		report(b)
	})
	b.Run("busy", func(b *testing.B) {
		b.ReportAllocs()
		fds := make([]int, 0, chips)
		for _, reg := range sweep.Regions {
			fd, err := unix.Open(reg.Path, unix.O_RDWR|unix.O_CLOEXEC, 0)
			if err != nil {
				b.Fatal(err)
			}
			defer unix.Close(fd)
			fds = append(fds, fd)
		}
		counter := byte(0)
		for b.Loop() {
			counter++
			for _, fd := range fds { // the test is the writer here
				if _, err := unix.Pwrite(fd, []byte{counter}, offSlots+slotBytes); err != nil {
					b.Fatal(err)
				}
			}
			r.Read(nil)
		}
		report(b)
	})
}

func perOp(b *testing.B) float64 { return float64(b.Elapsed().Nanoseconds()) / float64(b.N) }
