package uprobe

import (
	"errors"
	"os/exec"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// slowLink takes until the test allows it to close, as the kernel does that waits
// for all processors.
type slowLink struct {
	link.Link
	closing, release chan struct{}
}

func (l slowLink) Close() error {
	close(l.closing)
	<-l.release
	return nil
}

// TestNothingIsClosedUnderTheLock: when a process that ttmond has detached from
// exits, the probes of the others are changed. Events are read meanwhile.
func TestNothingIsClosedUnderTheLock(t *testing.T) {
	const detached, other = 7, 8
	slow := slowLink{closing: make(chan struct{}), release: make(chan struct{})}
	s := opened(t, Options{})
	defer s.kernel.Close()
	l := emptyLibrary(nil, "libtt_metal.so", 0)
	id := fileID{1, 2}
	s.libraries[id] = l
	s.use(detached, id)
	s.use(other, id)
	l.left[groupAllocators][detached] = true
	l.links[groupAllocators][other] = slow
	done := make(chan struct{})
	go func() {
		s.mu.Lock()
		s.forget(detached)
		s.mu.Unlock()
		close(done)
	}()
	<-slow.closing
	if !s.mu.TryLock() {
		t.Error("a probe is closed while events wait for the lock")
	} else {
		s.mu.Unlock()
	}
	close(slow.release)
	<-done
}

// TestSwitchMissesNothing: while the probes of all processes are replaced by those
// of single ones, and back, what a process allocates, runs and enqueues is counted,
// and once.
func TestSwitchMissesNothing(t *testing.T) {
	s := watch(t, Options{Limit: 1e9, Waits: true})
	program, library := fake(t)
	other, w := startFake(t, exec.Command(program, library)), startFake(t, exec.Command(program, library))
	for _, x := range []*workload{other, w} {
		eventually(t, "the library is watched", func() bool { _, ok := s.Find(x.pid); return ok })
	}
	w.do("make %d 5", 1<<30)
	w.do("queue 100")
	all := uint64(0)
	s.mu.Lock()
	l := s.libraries[s.known[w.pid][0]]
	s.mu.Unlock()
	for i := range 6 {
		s.mu.Lock()
		l.left[groupAllocators] = map[int]bool{}
		if i%2 == 0 {
			l.left[groupAllocators][other.pid] = true
		}
		s.mu.Unlock()
		switched := make(chan struct{})
		go func() {
			s.arm(l)
			close(switched)
		}()
		taken := uint64(0)
		for done := false; !done && taken < 30_000; taken++ {
			w.do("take 64")
			w.do("report 1 0 1")
			w.do("enqueue 1 100")
			select {
			case <-switched:
				done = true
			default:
			}
		}
		<-switched
		p := find(t, s, w.pid)
		if l := dram(t, p); !p.Exact() || l.Usage().Blocks != taken {
			t.Errorf("switch %d: %d blocks of %d, %d contradictions, %d lost", i, l.Usage().Blocks, taken, l.Contradictions, p.Lost)
		}
		all += taken
		if x := workOf(s, w.pid); x == nil || x.Programs != all || x.Lost != 0 {
			t.Errorf("switch %d: %+v of %d programs", i, x, all)
		}
		w.do("finish 1 100")
		if h := hostOf(s, w.pid); h == nil || h.Enqueued != all || !h.Settled() {
			t.Errorf("switch %d: %+v of %d calls", i, h, all)
		}
		w.do("clear")
	}
}

// TestDetachAfterTheEnd: a process that has ended meanwhile leaves no row, which
// would make the next process with its number unwatched.
func TestDetachAfterTheEnd(t *testing.T) {
	s := opened(t, Options{})
	defer s.kernel.Close()
	const number = 1 << 21
	s.mu.Lock()
	s.detach(7, number, watchProcess{Pid: 7}, 1e6)
	s.mu.Unlock()
	var row watchProcess
	if err := s.kernel.Processes.Lookup(uint32(number), &row); !errors.Is(err, ebpf.ErrKeyNotExist) {
		t.Errorf("there is a row again: %+v, %v", row, err)
	}
}
