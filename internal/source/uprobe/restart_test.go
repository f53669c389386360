package uprobe

import (
	"context"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// readEvents reads the rings of a source that does not run, until the test ends.
func readEvents(t *testing.T, s *Source) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{}, 2)
	go func() { _ = s.readEvents(ctx); done <- struct{}{} }()
	go func() { _ = s.readWork(ctx); done <- struct{}{} }()
	t.Cleanup(func() {
		cancel()
		<-done
		<-done
		close(s.ended)
		s.close()
	})
}

// TestHitBeforeTheScan: the probes of remembered libraries are set before the
// running processes are scanned. One that allocates in between holds what its
// lists had before, too: it is no fork.
func TestHitBeforeTheScan(t *testing.T) {
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	w.do("make %d 5", 1<<20)
	a, b := w.number("take 65536"), w.number("take 128")

	s := opened(t, Options{Libraries: []string{library}})
	readEvents(t, s)
	s.prepare()
	c := w.number("take 256")
	s.Sync()
	s.sweepOnce(time.Now())
	for _, h := range s.claims().Held {
		t.Errorf("claimed before it is known whose the lists are: %+v", h)
	}
	s.scan()
	s.watchAll(0)

	p := find(t, s, w.pid)
	l := dram(t, p)
	if got := addresses(l); !slices.Equal(got, []uint64{a, b, c}) || l.Inherited || !l.Exact() {
		t.Errorf("%v of %v, inherited %v, exact %v", got, []uint64{a, b, c}, l.Inherited, l.Exact())
	}
	s.sweepOnce(time.Now())
	held := s.claims().Held
	if len(held) != 1 || !held[0].Pools[model.DRAM].Whole {
		t.Fatalf("%+v", held)
	}
	if got, _, _ := held[0].Pools[model.DRAM].Occupied.Best(); got != (65536+128+256)*8 {
		t.Errorf("%d bytes", got)
	}
}

// TestForkHitBeforeTheScan: the same of a fork. What its lists had before is its
// parent's, and so is what is free in them.
func TestForkHitBeforeTheScan(t *testing.T) {
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	w.do("make %d 5", 1<<20)
	w.do("take 65536")

	s := opened(t, Options{Libraries: []string{library}})
	readEvents(t, s)
	s.prepare()
	w.do("writers 1 4096")
	s.Sync()
	s.scan()
	s.watchAll(0)
	s.sweepOnce(time.Now())
	n := 0
	for _, h := range s.claims().Held {
		if h.Process.PID == w.pid {
			continue
		}
		n++
		dram := h.Pools[model.DRAM]
		if got, _, _ := dram.Occupied.Best(); got != 4096*8 || dram.Whole || dram.Free.Known() {
			t.Errorf("%+v", dram)
		}
	}
	if n != 1 {
		t.Errorf("%d children are claimed", n)
	}
}
