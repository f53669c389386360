package uprobe

import (
	"os"
	"testing"
	"time"
)

// TestRetiredFirst: a file whose probes are being taken out gets no new ones before
// they are out, also where another goroutine takes them out.
func TestRetiredFirst(t *testing.T) {
	for _, begun := range []bool{false, true} {
		r, id := newRetired(), fileID{1, 2}
		entered, leave, out := make(chan struct{}), make(chan struct{}), make(chan struct{})
		r.add(fileID{3, 4}, func() {})
		r.add(id, func() { close(entered); <-leave; close(out) })
		finished := make(chan struct{})
		if begun {
			go func() {
				for r.closeNext() {
				}
			}()
			<-entered
		}
		go func() {
			r.finish(id)
			close(finished)
		}()
		<-entered
		select {
		case <-finished:
			t.Error("finished while probes are taken out")
		case <-time.After(20 * time.Millisecond): // nothing must happen: there is nothing to wait for
		}
		close(leave)
		<-finished
		select {
		case <-out:
		default:
			t.Error("finished, and the probes are there")
		}
	}
}

// TestMappedAgain: a library that was dropped and is mapped again has no probes of
// before when it gets new ones.
func TestMappedAgain(t *testing.T) {
	s, err := Open(Options{})
	if err != nil {
		t.Skipf("the kernel does not let us watch: %v", err)
	}
	defer s.close()
	_, path := fake(t)
	begin := func() (fileID, *library) {
		t.Helper()
		f, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		id, l, err := s.library(f, path, 0, os.Getpid())
		if err != nil || l.err != nil {
			t.Fatal(err, l.err)
		}
		return id, l
	}
	id, old := begin()
	s.mu.Lock()
	s.forget(os.Getpid())
	s.drop(id)
	s.mu.Unlock()
	if len(old.links[groupAllocators]) == 0 {
		t.Fatal("it was closed at once")
	}
	if _, l := begin(); l == old || len(l.links[groupAllocators]) == 0 || len(old.links[groupAllocators]) != 0 {
		t.Errorf("%d probes, beside %d of before", len(l.links[groupAllocators]), len(old.links[groupAllocators]))
	}
}
