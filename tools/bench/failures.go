package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/preload"
	"github.com/ttmon/ttmon/internal/source/uprobe"
	"github.com/ttmon/ttmon/lib/libtest"
)

// benchFailures measures what a storm of failures costs a program that catches
// them, with a thousand blocks in the pool that is asked, and what it costs us.
func benchFailures(l *lab) error {
	library, err := preload.Install()
	if err != nil {
		return err
	}
	defer library.Close()
	if err := l.fastStorm(); err != nil {
		return err
	}
	if err := l.fastStormInside(); err != nil {
		return err
	}
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
		for _, step := range []ttnn.Step{{"do": "open"}, {"do": "churn", "seed": 1, "steps": 2000, "ops": false}, {"do": "storm", "rounds": 100}} {
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

// gather takes failures every tenth of a second, as ttmond does, until it is
// stopped.
func (s *stormed) gather(source *uprobe.Source) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	take := func() {
		for _, r := range source.Failures() {
			r.Judge()
			s.failures += r.Count
			s.records++
			if len(r.Stack) > 0 {
				s.lines++
			}
		}
	}
	go func() {
		defer close(ended)
		for source != nil {
			take()
			select {
			case <-done:
				take()
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// measure times storms, and takes their failures meanwhile.
func (s *stormed) measure(j *ttnn.Job, source *uprobe.Source) error {
	stop := s.gather(source)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	began, used := time.Now(), ourCPU()
	round, err := medianOf(5, func() (float64, error) {
		r, err := j.Do(ttnn.Step{"do": "storm", "rounds": 1000})
		return r.Round, err
	})
	s.round, s.cpu = round, float64(ourCPU()-used)/float64(time.Since(began))
	stop()
	runtime.GC()
	runtime.ReadMemStats(&after)
	s.bytes = after.HeapAlloc - min(before.HeapAlloc, after.HeapAlloc)
	return err
}

// fastStorm is a program that fails 10,000 times a second, which tt-metal itself
// cannot: its exception takes a millisecond.
func (l *lab) fastStorm() error {
	const rate, n = 10_000, 50_000
	w, err := l.startFake()
	if err != nil {
		return err
	}
	defer w.close()
	plain, err := w.do("fail %d %d", n, rate)
	if err != nil {
		return err
	}
	return watching(func(source *uprobe.Source) error {
		if _, err := w.do("make %d 5", 1<<30); err != nil {
			return err
		}
		if _, err := w.do("fill %d 64", 1000); err != nil {
			return err
		}
		source.Sync()
		source.Failures()
		var s stormed
		stop := s.gather(source)
		began, used := time.Now(), ourCPU()
		watched, err := w.do("fail %d %d", n, rate)
		spent := time.Since(began)
		s.cpu = float64(ourCPU()-used) / float64(spent)
		source.Sync()
		stop()
		fmt.Printf("%d failures a second, uprobes:  %.1f µs each, which is %.1f %% of the program's time (aim: 5 %%); we took %.1f %% of a CPU; %d of %d in %d records\n",
			rate, (watched-plain)/1000, (watched-plain)*rate/1e7, s.cpu*100, s.failures, n, s.records)
		return err
	})
}

// fastStormInside is the same with libttmon in the program.
func (l *lab) fastStormInside() error {
	const rate, n = 10_000, 50_000
	if err := libtest.Build(l.dir, "plain"); err != nil {
		return err
	}
	program := filepath.Join(l.dir, "buffers")
	if out, err := exec.Command("cc", "-O2", "-w", "-o", program, "tools/bench/c/buffers.c", "-ldl").CombinedOutput(); err != nil {
		return fmt.Errorf("compiling buffers.c: %w\n%s", err, out)
	}
	var took [2]float64
	for i, preload := range []string{"", filepath.Join(l.dir, "libttmon.so")} {
		cmd := exec.Command(program, filepath.Join(l.dir, "libtt_metal.so"), strconv.Itoa(n), "fail")
		cmd.Env = append(os.Environ(), "TTMON_DIR="+l.dir, "LD_PRELOAD="+preload)
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("buffers: %w", err)
		}
		if took[i], err = strconv.ParseFloat(strings.TrimSpace(string(out)), 64); err != nil {
			return err
		}
	}
	fmt.Printf("%d failures a second, libttmon:  %.1f µs each, which is %.1f %% of the program's time (aim: 5 %%)\n", rate, (took[1]-took[0])/1000, (took[1]-took[0])*rate/1e7)
	return nil
}
