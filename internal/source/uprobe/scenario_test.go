package uprobe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// addresses lists the blocks of a list.
func addresses(l *blocks.List) (all []uint64) {
	for b := range l.All() {
		all = append(all, b.Addr)
	}
	return all
}

func TestFromTheFirstAllocation(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	a, b := w.number("take 64"), w.number("take 128")
	p := find(t, s, w.pid)
	if !p.Exact() {
		t.Errorf("not exact: %+v", p)
	}
	l := dram(t, p)
	if got := addresses(l); !slices.Equal(got, []uint64{a, b}) || l.Usage() != (blocks.Usage{Blocks: 2, BankBytes: 192, Asked: 64*8 + 128*8 - 2}) {
		t.Errorf("%v, %+v", got, l.Usage())
	}
	if !slices.Equal(p.Allocators[0].Chips, []uint64{5}) || l.Banks != 8 || l.Capacity != 1<<20 || l.Base != 4096 {
		t.Errorf("%+v %+v", p.Allocators[0], l.Geometry)
	}
	w.do("free %d", a)
	if got := addresses(dram(t, find(t, s, w.pid))); !slices.Equal(got, []uint64{b}) {
		t.Errorf("after the free: %v", got)
	}
	w.do("clear")
	if got := addresses(dram(t, find(t, s, w.pid))); len(got) != 0 {
		t.Errorf("after the clear: %v", got)
	}
}

// TestLate: of a process that was there before, the next allocation tells all
// that its list holds.
func TestLate(t *testing.T) {
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	w.do("make %d 5", 1<<20)
	a, b, c := w.number("take 64"), w.number("take 128"), w.number("take 64")
	w.do("free %d", b)
	s := watch(t, Options{})
	p := find(t, s, w.pid)
	if !p.Late || p.Exact() || p.Blocks() != 0 {
		t.Errorf("noticed late, and yet %+v", p)
	}
	w.do("free %d", a)
	d := w.number("take 256")
	p = find(t, s, w.pid)
	l := dram(t, p)
	if got := addresses(l); !slices.Equal(got, []uint64{c, d}) || !l.Exact() || l.Banks != 8 || l.Capacity != 1<<20 {
		t.Errorf("%v of %+v, exact %v", got, l.Geometry, l.Exact())
	}
	if u := l.Usage(); u.AskedUnknown != 1 || u.Asked != 256*8-1 {
		t.Errorf("%+v", u)
	}
	if !p.Late {
		t.Error("it may have other lists that were not seen")
	}
}

func TestKilledInTheMiddle(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("take 64")
	find(t, s, w.pid)
	_ = w.cmd.Process.Kill()
	_ = w.cmd.Wait()
	eventually(t, "it is forgotten", func() bool { _, ok := s.Find(w.pid); return !ok })
}

func TestExec(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("take 64")
	w.do("exec")
	if p := find(t, s, w.pid); p.Blocks() != 0 || len(p.Allocators) != 0 {
		t.Errorf("the new program has the blocks of the old: %+v", p)
	}
	w.do("make %d 6", 1<<21)
	w.do("take 64")
	p := find(t, s, w.pid)
	if l := dram(t, p); !p.Exact() || l.Usage().Blocks != 1 || l.Capacity != 1<<21 {
		t.Errorf("%+v", p)
	}
}

// TestFork: a child has a copy of its parent's accounts, not of its memory.
func TestFork(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	a := w.number("take 64")
	child := int(w.number("fork 4096"))
	t.Cleanup(func() {
		if p, err := os.FindProcess(child); err == nil {
			_ = p.Kill()
		}
	})
	eventually(t, "the child has taken its block", func() bool {
		p, ok := s.Find(child)
		if !ok || len(p.Allocators) == 0 || p.Blocks() != 1 {
			return false
		}
		_, taken := p.Allocators[len(p.Allocators)-1].Lists[0].At(4096) // not that of the allocator that it inherited
		return taken
	})
	if got := addresses(dram(t, find(t, s, w.pid))); !slices.Equal(got, []uint64{a}) {
		t.Errorf("the parent has %v", got)
	}
	p := find(t, s, child)
	l := p.Allocators[len(p.Allocators)-1].Lists[0]
	if b, ok := l.At(4096); !ok || b.Size != 4096 || p.Late {
		t.Errorf("the child: %+v late %v", b, p.Late)
	}
}

// TestWriters: forked children that go on with what they inherited hold what
// they took themselves and nothing else, whatever is known of their parent.
func TestWriters(t *testing.T) {
	const writers = 5
	for name, late := range map[string]bool{"a parent that is known": false, "a parent from before, that has hit nothing": true} {
		t.Run(name, func(t *testing.T) {
			program, library := fake(t)
			var s *Source
			if !late {
				s = watch(t, Options{Libraries: []string{library}})
			}
			w := startFake(t, exec.Command(program, library))
			w.do("make %d 5", 1<<20)
			for range 3 {
				w.do("take 64")
			}
			if late {
				s = watch(t, Options{})
			}
			w.do("writers %d 4096", writers)
			s.Sync()
			eventually(t, "all children are claimed", func() bool {
				n := 0
				for _, h := range s.Claims().Held {
					if h.Process.PID == w.pid {
						continue
					}
					n++
					got, bound, _ := h.Pools[model.DRAM].Occupied.Best()
					if h.Chip.ID != 5 || got != 4096*8 || !late && (bound != model.Exact || h.Partial) {
						t.Fatalf("a child: %+v %+v", h, h.Pools[model.DRAM])
					}
					if h.Pools[model.DRAM].Free.Known() {
						t.Fatal("what is free in a copy is told")
					}
				}
				return n == writers
			})
		})
	}
}

// watched lists the processes in the accounts.
func watched(s *Source) (pids []int) {
	s.Sync()
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.accounts.processes {
		pids = append(pids, int(pid))
	}
	return pids
}

// TestContainer: a process with its own pids, mounts and library.
func TestContainer(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	script := fmt.Sprintf("mount -t tmpfs none /mnt && cp %s /mnt/libtt_metal.so && exec %s /mnt/libtt_metal.so", library, program)
	w := startFake(t, exec.Command("unshare", "-m", "-p", "-f", "--kill-child", "--mount-proc", "sh", "-c", script))
	var inside []int
	eventually(t, "the container's process is watched", func() bool { inside = watched(s); return len(inside) == 1 })
	w.do("make %d 5", 1<<20)
	a := w.number("take 64")
	p := find(t, s, inside[0])
	if got := addresses(dram(t, p)); !slices.Equal(got, []uint64{a}) || !p.Exact() {
		t.Errorf("%v, exact %v", got, p.Exact())
	}
	w.end()
	eventually(t, "the container's file is closed", func() bool {
		s.Sync()
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.libraries) == 0 && len(s.accounts.processes) == 0
	})
}

// TestReplacedLibrary: an update puts a new file in the place of one that runs.
func TestReplacedLibrary(t *testing.T) {
	program, library := fake(t)
	_, other := fake(t)
	old := startFake(t, exec.Command(program, library))
	old.do("make %d 5", 1<<20)
	if err := os.Rename(other, library); err != nil {
		t.Fatal(err)
	}
	s := watch(t, Options{})
	old.do("take 64")
	if p := find(t, s, old.pid); dram(t, p).Usage().Blocks != 1 {
		t.Errorf("the process with the old file: %+v", p)
	}
	fresh := startFake(t, exec.Command(program, library))
	eventually(t, "the new file is watched", func() bool { _, ok := s.Find(fresh.pid); return ok })
	fresh.do("make %d 6", 1<<20)
	fresh.do("take 64")
	if p := find(t, s, fresh.pid); dram(t, p).Usage().Blocks != 1 || !p.Exact() {
		t.Errorf("the process with the new file: %+v", p)
	}
	old.end()
	eventually(t, "the old file is closed", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.libraries) == 1
	})
}

// TestRingTooSmall: what is lost is counted, and nothing is exact any more.
func TestRingTooSmall(t *testing.T) {
	s := watch(t, Options{RingBytes: uint32(os.Getpagesize()), Limit: 1e9})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("take 64")
	if p := find(t, s, w.pid); !p.Exact() {
		t.Fatalf("nothing was lost yet: %+v", p)
	}
	eventually(t, "something is lost", func() bool {
		w.do("loop 20000 0")
		p := find(t, s, w.pid)
		return p.Lost > 0 && !p.Exact()
	})
}

// TestDetach: a process that allocates too often is left alone; the others with
// the same library are not.
func TestDetach(t *testing.T) {
	s := watch(t, Options{Limit: 20_000})
	program, library := fake(t)
	busy, quiet := startFake(t, exec.Command(program, library)), startFake(t, exec.Command(program, library))
	for _, w := range []*workload{busy, quiet} {
		eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
		w.do("make %d 5", 1<<20)
		w.do("take 64")
	}
	left := func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		p := s.accounts.processes[uint32(busy.pid)]
		return p != nil && p.detached()
	}
	eventually(t, "ttmond detaches from the busy one", func() bool { busy.do("loop 100000 0"); return left() })
	if p := find(t, s, busy.pid); p.Blocks() != 0 || p.Exact() {
		t.Errorf("the figures of a process that is not watched: %+v", p)
	}
	quiet.do("take 64")
	if p := find(t, s, quiet.pid); dram(t, p).Usage().Blocks != 2 || !p.Exact() {
		t.Errorf("the other one: %+v", p)
	}
	third := startFake(t, exec.Command(program, library))
	eventually(t, "a new one is watched beside it", func() bool { _, ok := s.Find(third.pid); return ok })
	third.do("make %d 5", 1<<20)
	third.do("take 64")
	if p := find(t, s, third.pid); dram(t, p).Usage().Blocks != 1 {
		t.Errorf("a new one: %+v", p)
	}
	busy.end()
	eventually(t, "one link for all is enough again", func() bool {
		defer s.lockProbes()()
		for _, l := range s.libraries {
			if len(l.links[groupAllocators]) != 1 || l.links[groupAllocators][0] == nil {
				return false
			}
		}
		return true
	})
	quiet.do("take 64")
	if p := find(t, s, quiet.pid); dram(t, p).Usage().Blocks != 3 || !p.Exact() {
		t.Errorf("the other one, later: %+v", p)
	}
}

// TestReusedPID: a new process with an old number starts with an empty page.
func TestReusedPID(t *testing.T) {
	if os.Getpid() > 1000 {
		t.Skip("numbers of processes can be chosen only in a pid namespace of one's own")
	}
	s := watch(t, Options{})
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("take 64")
	w.end()
	for range 20 { // others may be faster
		if err := os.WriteFile("/proc/sys/kernel/ns_last_pid", fmt.Append(nil, w.pid-1), 0); err != nil {
			t.Skipf("the next number cannot be chosen: %v", err)
		}
		again := startFake(t, exec.Command(program, library))
		if again.pid != w.pid {
			again.end()
			continue
		}
		again.do("make %d 9", 1<<21)
		again.do("take 128")
		p := find(t, s, again.pid)
		if l := dram(t, p); l.Usage().BankBytes != 128 || l.Capacity != 1<<21 {
			t.Errorf("%+v", p)
		}
		return
	}
	t.Skip("the number was taken by others each time")
}

// TestForeignFiles: a file with the right name and the wrong content.
func TestForeignFiles(t *testing.T) {
	s := watch(t, Options{})
	program, library := fake(t)
	code, err := os.ReadFile(library)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	other := filepath.Join(dir, "libtt_metal.so")
	// A library without one of the functions: its name is spoilt.
	spoilt := []byte(string(code))
	name := []byte("FreeListOpt17allocate_in_block")
	for i := range len(spoilt) - len(name) {
		if string(spoilt[i:i+len(name)]) == string(name) {
			spoilt[i] = 'G'
		}
	}
	if err := os.WriteFile(other, spoilt, 0o755); err != nil {
		t.Fatal(err)
	}
	w := startFake(t, exec.Command(program))
	w.do("load %s", other)
	eventually(t, "it is known that the file cannot be watched", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, l := range s.libraries {
			if l.err != nil {
				return true
			}
		}
		return false
	})
}
