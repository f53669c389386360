package main

import (
	"fmt"
	"os"
	"runtime"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/preload"
	"github.com/ttmon/ttmon/internal/source/uprobe"
)

// benchFailures measures what a storm of failures costs a program that catches
// them, with a thousand blocks in the pool that is asked, and what it costs us.
func benchFailures(l *lab) error {
	library, err := preload.Place()
	if err != nil {
		return err
	}
	defer library.Close()
	inside := []string{"LD_PRELOAD=" + library.Path, "TTMON_DIR=" + l.dir}
	var plain float64
	for _, c := range []struct {
		name    string
		env     []string
		watched bool
	}{{"neither", nil, false}, {"libttmon", inside, false}, {"uprobes", nil, true}, {"both", inside, true}} {
		s, err := l.storm(c.env, c.watched)
		if err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		if plain == 0 {
			plain = s.round
		}
		fmt.Printf("ttnn %s, %-8s  %6.1f µs a failure (%.0f a second): %+.1f %%", ttnn.Newest, c.name, s.round/1000, 1e9/s.round, (s.round/plain-1)*100)
		if c.watched {
			fmt.Printf("; we took %.1f %% of a CPU, %.1f MB, %d failures in %d records, %d of them with lines", s.cpu*100, float64(s.bytes)/1e6, s.failures, s.records, s.lines)
		}
		fmt.Println()
	}
	return nil
}

// stormed is what a storm took.
type stormed struct {
	round    float64 // ns, of the program's thread
	cpu      float64 // of ours
	bytes    uint64  // of our heap, more than before
	failures uint64
	records  int
	lines    int
}

// storm lets a program fail, and takes its failures as ttmond does.
func (l *lab) storm(env []string, watched bool) (s stormed, err error) {
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		return s, err
	}
	dir, err := os.MkdirTemp(l.dir, "storm")
	if err != nil {
		return s, err
	}
	run := func(source *uprobe.Source) error {
		j, err := ttnn.Start(ttnn.Options{Descriptor: descriptor, Dir: dir, Env: env})
		if err != nil {
			return err
		}
		defer func() { _ = j.Kill() }()
		for _, step := range []ttnn.Step{{"do": "open"}, {"do": "churn", "seed": 1, "steps": 2000, "ops": false}, {"do": "storm", "rounds": 500}} {
			if _, err := j.Do(step); err != nil {
				return err
			}
		}
		return s.measure(j, source)
	}
	if !watched {
		return s, run(nil)
	}
	return s, watching(run)
}

// measure times storms, and takes their failures every tenth of a second.
func (s *stormed) measure(j *ttnn.Job, source *uprobe.Source) error {
	done := make(chan struct{})
	gathered := make(chan struct{})
	go func() {
		defer close(gathered)
		for source != nil {
			for _, r := range source.Failures() {
				r.Judge()
				s.failures += r.Count
				s.records++
				if len(r.Stack) > 0 {
					s.lines++
				}
			}
			select {
			case <-done:
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, used := time.Now(), ownCPU()
	round, err := medianOf(5, func() (float64, error) {
		r, err := j.Do(ttnn.Step{"do": "storm", "rounds": 4000})
		return r.Round, err
	})
	s.round, s.cpu = round, float64(ownCPU()-used)/float64(time.Since(began))
	close(done)
	<-gathered
	runtime.GC()
	runtime.ReadMemStats(&after)
	s.bytes = after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
	return err
}

// ownCPU is what this process has used.
func ownCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
