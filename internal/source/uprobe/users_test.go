package uprobe

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"unsafe"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/model"
)

// TestEventTypes: what an event is about fits into its words.
func TestEventTypes(t *testing.T) {
	for name, size := range map[string]uintptr{
		"object": unsafe.Sizeof(objectEvent{}), "list": unsafe.Sizeof(listEvent{}), "take": unsafe.Sizeof(takeEvent{}),
		"change": unsafe.Sizeof(changeEvent{}), "block": unsafe.Sizeof(blockEvent{}), "whole": unsafe.Sizeof(wholeEvent{}),
		"provider": unsafe.Sizeof(providerEvent{}), "record": unsafe.Sizeof(recordEvent{}), "layout": unsafe.Sizeof(layoutEvent{}),
		"work": unsafe.Sizeof(workEvent{}), "exit": unsafe.Sizeof(exitEvent{}), "fork": unsafe.Sizeof(forkEvent{}),
	} {
		t.Run(name, func(t *testing.T) {
			if size > unsafe.Sizeof(words{}) {
				t.Errorf("%d bytes", size)
			}
		})
	}
	e := made(aList, anAllocator, 1)
	if l := about[listEvent](&e); l.List != aList || l.Capacity != capacity || l.Base != base || l.Alignment != 64 || l.Smallest != 32 || l.Allocator != anAllocator || l.Pool != 1 || l.Banks != 8 {
		t.Errorf("%+v", l)
	}
}

// TestBlocksOfAUser: a user has a share of all blocks, however many processes it
// has them in; others have theirs.
func TestBlocksOfAUser(t *testing.T) {
	b := newAccounts(1000, budget.Limit{PerUID: 3000, All: 5000, Reserve: 1000})
	fill := func(pid uint32, uid int) *process {
		p := b.process(pid)
		b.setOwner(p, uid)
		e := made(aList, anAllocator, 0)
		e.pid = pid
		about[listEvent](&e).Capacity = 1 << 30
		b.apply(&e)
		for i := range uint64(900) {
			e := took(aList, i*64, 64, 1<<30)
			e.pid = pid
			b.apply(&e)
		}
		return p
	}
	given := 0
	for pid := range uint32(10) {
		if p := fill(100+pid, 60000); p.trouble.Kind == model.TooManyBlocks {
			given++
		} else if p.trouble.Kind != "" {
			t.Fatalf("%+v", p.trouble)
		}
	}
	if of := b.shares.Of(60000); given < 6 || of > 3000 || b.shares.Used() != of || b.shares.State().Refused != uint64(given) {
		t.Errorf("%d of 10 processes were given up; %d blocks are charged: %+v", given, of, b.shares.State())
	}
	if p := fill(200, 60001); p.trouble.Kind != "" || p.Blocks() != 900 {
		t.Errorf("another user: %+v", p.trouble)
	}
	if p := fill(300, 0); p.trouble.Kind != "" || p.Blocks() != 900 {
		t.Errorf("root: %+v", p.trouble)
	}
	for pid := range b.processes {
		b.apply(&event{pid: pid, kind: exited})
	}
	if b.shares.Used() != 0 {
		t.Errorf("blocks are booked, and all processes have ended: %+v", b.shares.State())
	}
}

// startAs starts a fake program as a user.
func startAs(t *testing.T, program, library string, uid int) *workload {
	t.Helper()
	return startWith(t, program, uid, []string{library})
}

// TestProcessesOfAUser: a user whose processes fill the table of those that hit
// probes loses its own events, and no other user's.
func TestProcessesOfAUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	s := watch(t, Options{MaxProcesses: 32})
	program, library := fake(t)
	forAll(filepath.Dir(program))
	own := startFake(t, exec.Command(program, library))
	eventually(t, "root's program is watched", func() bool { _, ok := s.Find(own.pid); return ok })
	own.do("make %d 5", 1<<20)
	crowd := startAs(t, program, library, 60000)
	eventually(t, "the user's program is watched", func() bool { _, ok := s.Find(crowd.pid); return ok })
	crowd.do("make %d 5", 1<<20)
	crowd.do("writers 40 64")
	eventually(t, "events without a place are noticed", func() bool { return s.nameless.Load() > 0 })
	var users uint32
	var row watchProcess
	var number uint32
	for rows := s.kernel.Processes.Iterate(); rows.Next(&number, &row); {
		if row.Uid == 60000 {
			users++
		}
	}
	if users != 32/4 {
		t.Errorf("%d processes of the user are in the table, want %d", users, 32/4)
	}
	late := startFake(t, exec.Command(program, library))
	eventually(t, "root's next program is watched", func() bool { _, ok := s.Find(late.pid); return ok })
	for _, w := range []*workload{own, late} {
		if w == late {
			w.do("make %d 6", 1<<20)
		}
		at := w.number("take 64")
		p := find(t, s, w.pid)
		if got := addresses(dram(t, p)); !p.Exact() || p.Lost != 0 || len(got) != 1 || got[0] != at {
			t.Errorf("root's program %d: %v, %+v", w.pid, got, p)
		}
	}
	crowd.end()
	eventually(t, "the places are free again", func() bool {
		var u watchUser
		return s.kernel.Users.Lookup(uint32(60000), &u) != nil || u.Processes == 0
	})
}

// TestRingOfAUser: a user that fills the ring loses its own events.
func TestRingOfAUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	s := watch(t, Options{RingBytes: 64 << 10, Limit: 1e9})
	program, library := fake(t)
	forAll(filepath.Dir(program))
	own := startFake(t, exec.Command(program, library))
	var flood []*workload
	for range 3 {
		w := startAs(t, program, library, 60000)
		eventually(t, "the user's program is watched", func() bool { _, ok := s.Find(w.pid); return ok })
		w.do("make %d 5", 1<<20)
		fmt.Fprintln(w.in, "loop 1000000000 0")
		flood = append(flood, w)
	}
	own.do("make %d 5", 1<<20)
	lost := func() (n uint64) {
		for _, w := range flood {
			if p, ok := s.Find(w.pid); ok {
				n += p.Lost
			}
		}
		return n
	}
	eventually(t, "the user loses events", func() bool { return lost() > 0 })
	for range 200 {
		own.do("free %d", own.number("take 64"))
	}
	at := own.number("take 64")
	p := find(t, s, own.pid)
	if got := addresses(dram(t, p)); p.Lost != 0 || len(got) != 1 || got[0] != at {
		t.Errorf("root's program: %v, %d lost", got, p.Lost)
	}
}
