package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/e2e/ttnn"
	"github.com/ttmon/ttmon/internal/source/uprobe"
)

// benchUprobe measures what watching costs the watched, and what it costs us.
func benchUprobe(l *lab) error {
	if err := l.hits(); err != nil {
		return err
	}
	if err := l.realHits(); err != nil {
		fmt.Println("the real ttnn:", err)
	}
	if err := l.pace(); err != nil {
		return err
	}
	return blockBytes()
}

// fakeMetal is the program of source/uprobe's tests, with its library.
type fakeMetal struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func (l *lab) startFake(env ...string) (*fakeMetal, error) {
	from := "internal/source/uprobe/testdata/fake"
	program, library := filepath.Join(l.dir, "fake"), filepath.Join(l.dir, "libtt_metal.so")
	for _, args := range [][]string{
		{"-O2", "-w", "-shared", "-fPIC", "-fno-omit-frame-pointer", "-mno-omit-leaf-frame-pointer", "-fno-schedule-insns2", "-fno-shrink-wrap", "-fno-optimize-sibling-calls", "-o", library, filepath.Join(from, "libtt_metal.c")},
		{"-O2", "-w", "-o", program, filepath.Join(from, "program.c"), "-ldl"},
	} {
		if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
			return nil, fmt.Errorf("compiling: %w\n%s", err, out)
		}
	}
	f := &fakeMetal{cmd: exec.Command(program, library)}
	f.cmd.Env = append(os.Environ(), env...)
	var err error
	if f.in, err = f.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := f.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	f.out = bufio.NewReader(out)
	if err := f.cmd.Start(); err != nil {
		return nil, err
	}
	_, err = f.out.ReadString('\n')
	return f, err
}

func (f *fakeMetal) do(format string, args ...any) (answer float64, err error) {
	if _, err := fmt.Fprintf(f.in, format+"\n", args...); err != nil {
		return 0, err
	}
	line, err := f.out.ReadString('\n')
	if err != nil {
		return 0, err
	}
	_, _ = fmt.Sscan(strings.TrimSpace(line), &answer)
	return answer, nil
}

func (f *fakeMetal) close() {
	f.in.Close()
	_ = f.cmd.Wait()
}

// watching runs f while allocators are watched.
func watching(f func(*uprobe.Source) error) error {
	return watchingWith(uprobe.Options{Limit: 1e9}, f)
}

func watchingWith(o uprobe.Options, f func(*uprobe.Source) error) error {
	s, err := uprobe.Open(o)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()
	<-s.Ready()
	err = f(s)
	cancel()
	if end := <-done; err == nil {
		err = end
	}
	return err
}

// medianOf several tries.
func medianOf(tries int, f func() (float64, error)) (float64, error) {
	var all []float64
	for range tries {
		v, err := f()
		if err != nil {
			return 0, err
		}
		all = append(all, v)
	}
	slices.Sort(all)
	return all[len(all)/2], nil
}

const hitsPerRound = 4 // the buffer, asked, taken, freed

// hits compares a bare loop of an allocation and a free with and without.
func (l *lab) hits() error {
	w, err := l.startFake()
	if err != nil {
		return err
	}
	defer w.close()
	if _, err := w.do("make %d 5", 1<<20); err != nil {
		return err
	}
	plain, err := medianOf(5, func() (float64, error) { return w.do("loop 1000000 0") })
	if err != nil {
		return err
	}
	var watched float64
	err = watching(func(*uprobe.Source) error {
		watched, err = medianOf(5, func() (float64, error) { return w.do("loop 100000 0") })
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("bare C loop, allocation + free:  %.0f ns unwatched, %.0f ns watched: %.0f ns a hit (aim: 2000)\n",
		plain, watched, (watched-plain)/hitsPerRound)
	return nil
}

// realHits does the same with ttnn.
func (l *lab) realHits() error {
	descriptor, err := ttnn.Descriptor("blackhole_P150")
	if err != nil {
		return err
	}
	j, err := ttnn.Start(ttnn.Options{Descriptor: descriptor, Dir: l.dir})
	if err != nil {
		return err
	}
	defer func() { _ = j.End() }()
	if _, err := j.Do(ttnn.Step{"do": "open"}); err != nil {
		return err
	}
	round := func() (float64, error) {
		r, err := j.Do(ttnn.Step{"do": "spin", "rounds": 5000})
		return r.Round, err
	}
	plain, err := medianOf(5, round)
	if err != nil {
		return err
	}
	var watched float64
	err = watching(func(*uprobe.Source) error {
		if _, err := medianOf(3, round); err != nil { // until it is known which chip it is on
			return err
		}
		time.Sleep(time.Second)
		watched, err = medianOf(5, round)
		return err
	})
	if err != nil {
		return err
	}
	fmt.Printf("ttnn %s, empty + deallocate:  %.1f µs unwatched, %.1f µs watched: %.0f ns a hit\n",
		ttnn.Newest, plain/1000, watched/1000, (watched-plain)/hitsPerRound)
	return nil
}

// pace measures our own CPU time at 10,000 events a second, and how many a
// second come through without a loss.
func (l *lab) pace() error {
	w, err := l.startFake()
	if err != nil {
		return err
	}
	defer w.close()
	return watching(func(s *uprobe.Source) error {
		if _, err := w.do("make %d 5", 1<<20); err != nil {
			return err
		}
		const eventsPerRound = 2
		before, from := ourCPU(), time.Now()
		if _, err := w.do("loop %d %d", 25_000, 5000); err != nil {
			return err
		}
		s.Sync()
		share := (ourCPU() - before).Seconds() / time.Since(from).Seconds()
		fmt.Printf("at 10,000 events/s:  %.1f %% of a core (aim: 5 %%)\n", share*100)
		for _, rate := range []int{50_000, 100_000, 0} {
			events, from := s.Stats().Events, time.Now()
			if _, err := w.do("loop %d %d", 150_000, rate/eventsPerRound); err != nil {
				return err
			}
			spent := time.Since(from).Seconds()
			s.Sync()
			time.Sleep(time.Second) // the next sweep counts what was lost
			st := s.Stats()
			fmt.Printf("asked for %s events/s:  %.0f events/s came, %d lost\n", pace(rate), float64(st.Events-events)/spent, st.Lost)
		}
		return nil
	})
}

func pace(rate int) string {
	if rate == 0 {
		return "all possible"
	}
	return fmt.Sprint(rate)
}

// blockBytes measures what a live block takes.
func blockBytes() error {
	const n = 500_000
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := blocks.NewList(blocks.Geometry{}, blocks.FromStart)
	for i := range n {
		l.Alloc(blocks.Block{Addr: uint64(i) * 77_773 % n * 64, Size: 64, Asked: 64})
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	fmt.Printf("a live block:  %.1f bytes in scattered order (aim: 64)\n", float64(after.HeapAlloc-before.HeapAlloc)/n)
	runtime.KeepAlive(l)
	return nil
}

// ourCPU is the processor time of this process.
func ourCPU() time.Duration {
	var u unix.Rusage
	_ = unix.Getrusage(unix.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
