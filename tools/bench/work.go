package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/ttmon/ttmon/internal/source/uprobe"
	"github.com/ttmon/ttmon/lib/libtest"
)

// benchWork measures what it costs to see every program that runs on a chip: the
// thread that receives what the chip reports, and us.
func benchWork(l *lab) error {
	if err := libtest.Build(l.dir, "plain"); err != nil {
		return err
	}
	if err := l.programs(); err != nil {
		return err
	}
	if err := l.waits(); err != nil {
		return err
	}
	return l.programPace()
}

// batches are how many programs the receiver gets at a time: a few where they
// are slow, the most where they are fast.
var batches = []int{1, 32, 1024}

// programCost is the CPU time of the receiver for a program, by batch; watched by
// a source, if there is one.
func (l *lab) programCost(s *uprobe.Source, env ...string) (cost map[int]float64, err error) {
	w, err := l.startFake(env...)
	if err != nil {
		return nil, err
	}
	defer w.close()
	if _, err := w.do("make %d 5", 1<<20); err != nil {
		return nil, err
	}
	for end := time.Now().Add(time.Minute); s != nil; time.Sleep(10 * time.Millisecond) {
		if _, ok := s.Find(w.cmd.Process.Pid); ok || time.Now().After(end) {
			break
		}
	}
	cost = map[int]float64{}
	for _, n := range batches {
		cost[n], err = medianOf(7, func() (float64, error) { return w.do("report %d 0 %d", 200_000/n, n) })
		if err != nil {
			return nil, err
		}
	}
	return cost, nil
}

// programs compares the receiver's cost without us, with libttmon and with the probe.
func (l *lab) programs() error {
	plain, err := l.programCost(nil)
	if err != nil {
		return err
	}
	inside, err := l.programCost(nil, "LD_PRELOAD="+filepath.Join(l.dir, "libttmon.so"), "TTMON_DIR="+l.dir)
	if err != nil {
		return err
	}
	var outside map[int]float64
	if err := watching(func(s *uprobe.Source) error {
		outside, err = l.programCost(s)
		return err
	}); err != nil {
		return err
	}
	for _, n := range batches {
		fmt.Printf("a program, %d at a time:  %.1f ns without, libttmon %+.1f ns (aim: 15), probe %+.1f ns\n",
			n, plain[n], inside[n]-plain[n], outside[n]-plain[n])
	}
	return nil
}

// callCost is the CPU time of a call that enqueues, and of one that waits.
func (l *lab) callCost(s *uprobe.Source, env ...string) (enqueue, finish float64, err error) {
	w, err := l.startFake(env...)
	if err != nil {
		return 0, 0, err
	}
	defer w.close()
	for end := time.Now().Add(time.Minute); s != nil; time.Sleep(10 * time.Millisecond) {
		if _, ok := s.Find(w.cmd.Process.Pid); ok || time.Now().After(end) {
			break
		}
	}
	for _, step := range []string{"make 1048576 5", "report 1 0 1", "queue 100"} {
		if _, err := w.do(step); err != nil {
			return 0, 0, err
		}
	}
	if enqueue, err = medianOf(7, func() (float64, error) { return w.do("enqueue 50000 100") }); err != nil {
		return 0, 0, err
	}
	finish, err = medianOf(7, func() (float64, error) { return w.do("finish 50000 100") })
	return enqueue, finish, err
}

// waits compares what calls that enqueue and wait cost without us, with libttmon,
// and with the probes of uprobe.waits.
func (l *lab) waits() error {
	enqueue, finish, err := l.callCost(nil)
	if err != nil {
		return err
	}
	inEnqueue, inFinish, err := l.callCost(nil, "LD_PRELOAD="+filepath.Join(l.dir, "libttmon.so"), "TTMON_DIR="+l.dir)
	if err != nil {
		return err
	}
	var outEnqueue, outFinish float64
	if err := watchingWith(uprobe.Options{Limit: 1e9, Waits: true}, func(s *uprobe.Source) error {
		outEnqueue, outFinish, err = l.callCost(s)
		return err
	}); err != nil {
		return err
	}
	fmt.Printf("a call that enqueues:  %.0f ns without, libttmon %+.0f ns, uprobe.waits %+.0f ns\n", enqueue, inEnqueue-enqueue, outEnqueue-enqueue)
	fmt.Printf("a call that waits:  %.0f ns without, libttmon %+.0f ns, uprobe.waits %+.0f ns\n", finish, inFinish-finish, outFinish-finish)
	return nil
}

// programPace measures our own CPU time while a chip reports at a pace.
func (l *lab) programPace() error {
	w, err := l.startFake()
	if err != nil {
		return err
	}
	defer w.close()
	return watching(func(s *uprobe.Source) error {
		if _, err := w.do("make %d 5", 1<<20); err != nil {
			return err
		}
		for _, rate := range []int{0, 1000, 10_000, 100_000, 1_000_000} {
			before, from := ourCPU(), time.Now()
			if _, err := w.do("stream %d 5", rate); err != nil {
				return err
			}
			share := (ourCPU() - before).Seconds() / time.Since(from).Seconds()
			time.Sleep(time.Second) // the next sweep counts what was lost
			var programs, lost uint64
			for _, x := range s.Claims().Work {
				if x.Process.PID == w.cmd.Process.Pid { // others may run on this machine
					programs, lost = x.Programs, x.Lost
				}
			}
			fmt.Printf("%d programs/s:  %.2f %% of a core (aim: 5 %% at 100,000); so far %d seen, %d lost\n", rate, share*100, programs, lost)
		}
		return nil
	})
}
