package uprobe

import (
	"maps"
	"os/exec"
	"testing"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// claimOf is what a source says of a process.
func claimOf(s *Source, pid int) (held []claim.Held, silent *claim.Silent) {
	set := s.Claims()
	for _, h := range set.Held {
		if h.Process.PID == pid {
			held = append(held, h)
		}
	}
	for i := range set.Silent {
		if set.Silent[i].Process.PID == pid {
			silent = &set.Silent[i]
		}
	}
	return held, silent
}

func TestClaims(t *testing.T) {
	program, library := fake(t)
	before := startFake(t, exec.Command(program, library))
	before.do("make %d 9", 1<<20)
	before.do("take 4096")
	s := watch(t, Options{})
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the process is known", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	w.do("take 64")
	w.do("take 128")

	held, _ := claimOf(s, w.pid)
	if len(held) != 1 || held[0].Partial || held[0].Chip.ID != 5 || len(held[0].Doubts) != 0 {
		t.Fatalf("%+v", held)
	}
	pool := held[0].Pools[model.DRAM]
	if !held[0].Bytes[model.DRAM].Exactly(64*8+128*8-2) || !pool.Occupied.Exactly(192*8) ||
		pool.Capacity.V != 8<<20 || pool.Free.V != 8<<20-192*8 || pool.LargestFree.V != 8<<20-192*8 {
		t.Errorf("%+v %+v", held[0].Bytes, pool)
	}

	before.do("take 64")
	held, _ = claimOf(s, before.pid)
	if len(held) != 1 || !held[0].Partial || held[0].Chip.ID != 9 || held[0].Doubts[0].Kind != model.NoticedLate {
		t.Errorf("of one that was there before: %+v", held)
	}
	// It opens its chip again, and nothing is missed any more.
	before.do("make %d 9", 1<<20)
	before.do("take 64")
	held, _ = claimOf(s, before.pid)
	if len(held) != 1 || held[0].Partial || !held[0].Pools[model.DRAM].Occupied.Exactly(64*8) || len(held[0].Doubts) > 0 {
		t.Errorf("after it opened its chip again: %+v", held)
	}
}

// A process without figures has the reason, each kind by itself.
func TestSilence(t *testing.T) {
	s := newSource(Options{}, nil)
	s.eventReading.served.Store(^uint64(0))
	for i, kind := range []model.DoubtKind{"", model.TooFast, model.AllocatorUnknown, model.TooManyBlocks, model.LibraryUnwatched} {
		p := page(made(aList, anAllocator, 0))
		p.PID, p.Start = i+1, 1
		if kind != "" {
			s.accounts.giveUp(p, 0, model.Doubt{Kind: kind})
		}
		s.accounts.processes[uint32(i+1)] = p
	}
	got := map[int]model.DoubtKind{}
	for _, q := range s.claims().Silent {
		got[q.Process.PID] = q.Why.Kind
		if q.Why.PID != q.Process.PID {
			t.Errorf("%+v", q)
		}
	}
	want := map[int]model.DoubtKind{2: model.TooFast, 3: model.AllocatorUnknown, 4: model.TooManyBlocks, 5: model.LibraryUnwatched}
	if !maps.Equal(got, want) {
		t.Errorf("silent: %v, want %v", got, want)
	}
}

func TestGuessChips(t *testing.T) {
	provider := event{kind: providerMade, word: [6]uint64{0x5000, 42, 0}}
	p := page(provider, made(aList, anAllocator, 0), took(aList, 0, 64, capacity))
	p.Late = false
	newAccounts(1, budget.Limit{}).guessChips(p)
	if c := p.Allocators[0].Chips; len(c) != 1 || c[0] != 42 {
		t.Errorf("the only chip: %v", c)
	}
	provider.word = [6]uint64{0x6000, 43, 1}
	q := page(event{kind: providerMade, word: [6]uint64{0x5000, 42, 0}}, provider, made(aList, anAllocator, 0), took(aList, 0, 64, capacity))
	q.Late = false
	newAccounts(1, budget.Limit{}).guessChips(q)
	if c := q.Allocators[0].Chips; len(c) != 0 {
		t.Errorf("one of two chips: %v", c)
	}
}
