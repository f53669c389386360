package uprobe

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os/exec"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
)

// mirror is what a follower makes of what it is told, after a way as lines.
type mirror struct {
	t         *testing.T
	processes map[int]*mirrored
	missed    uint64
	told      int
}

type mirrored struct {
	n     uint64
	late  bool
	lost  uint64
	lists map[uint32]*mirroredList
}

type mirroredList struct {
	def    changes.List
	blocks map[uint64]uint64 // bytes by address
}

func newMirror(t *testing.T) *mirror { return &mirror{t: t, processes: map[int]*mirrored{}} }

func (m *mirror) take(b changes.Batch) {
	m.t.Helper()
	text, err := changes.Append(nil, &b)
	if err != nil {
		m.t.Fatal(err)
	}
	for len(text) > 0 {
		i := slices.Index(text, '\n')
		parsed, err := changes.Parse(text[:i])
		if err != nil {
			m.t.Fatalf("%v: %s", err, text[:i])
		}
		text = text[i+1:]
		for _, s := range parsed.States {
			m.state(s)
		}
		for _, c := range parsed.Changes {
			m.change(c)
		}
	}
}

func (m *mirror) state(s *changes.State) {
	p := &mirrored{n: s.N, late: s.Late, lost: s.Lost, lists: map[uint32]*mirroredList{}}
	for _, l := range s.Lists {
		x := &mirroredList{def: l.List, blocks: map[uint64]uint64{}}
		for _, b := range l.Blocks {
			x.blocks[b.Addr] = b.Size
		}
		p.lists[l.ID] = x
	}
	m.processes[s.PID] = p
	m.missed += s.Missed
}

func (m *mirror) change(c changes.Change) {
	m.t.Helper()
	m.told++
	p := m.processes[c.PID]
	if p == nil || c.N != p.n+1 {
		m.t.Fatalf("change %d of process %d, of which %+v is known", c.N, c.PID, p)
	}
	p.n = c.N
	l := p.lists[c.List]
	switch c.Kind {
	case changes.Alloc:
		l.blocks[c.Addr] = c.Size
	case changes.Free:
		delete(l.blocks, c.Addr)
	case changes.Cleared:
		clear(l.blocks)
	case changes.Closed:
		delete(p.lists, c.List)
	case changes.Defined:
		if l == nil {
			l = &mirroredList{blocks: map[uint64]uint64{}}
			p.lists[c.List] = l
		}
		l.def = *c.Def
	case changes.Lost:
		p.lost = c.Size
	case changes.Watched:
		p.late = c.Size != 0
	case changes.Ended:
		delete(m.processes, c.PID)
	}
}

// compare holds the mirror against the accounts.
func (m *mirror) compare(s *Source) {
	m.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	want := map[int]*mirrored{}
	for _, p := range s.accounts.processes {
		if p.changes == 0 || p.trouble.Kind != "" {
			continue
		}
		x := &mirrored{n: p.changes, late: p.Late, lost: p.Lost, lists: map[uint32]*mirroredList{}}
		for _, l := range p.lists {
			y := &mirroredList{def: l.define(), blocks: map[uint64]uint64{}}
			for b := range l.All() {
				y.blocks[b.Addr] = b.Size
			}
			x.lists[l.id] = y
		}
		want[p.PID] = x
	}
	if diff := cmp.Diff(want, m.processes, cmp.AllowUnexported(mirrored{}, mirroredList{})); diff != "" {
		m.t.Fatalf("the accounts (-) and what was sent (+):\n%s", diff)
	}
}

// quiet is a source without a kernel, whose accounts are filled by hand.
func quietSource() *Source {
	s := newSource(Options{}, nil)
	s.eventReading.served.Store(^uint64(0))
	return s
}

func (s *Source) enterAll(list ...event) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range list {
		s.accounts.apply(&list[i])
	}
	if t := s.accounts.tap; t != nil {
		t.wake = time.Time{}
		t.caughtUp(len(list), time.Now())
	}
}

// play makes up events of three processes that make sense.
func play(rng *rand.Rand, n int, now *uint64) (list []event) {
	for range n {
		*now += uint64(rng.IntN(1000))
		pid := uint32(rng.IntN(3) + 1)
		a := uint64(rng.IntN(2))
		listAt, allocatorAt := aList+a*0x100+uint64(pid)<<20, anAllocator+a*0x100
		e := event{pid: pid, time: *now}
		switch rng.IntN(40) {
		case 0:
			e.kind, e.word = exited, [6]uint64{}
		case 1:
			e.kind = execed
		case 2, 3, 4:
			m := made(listAt, allocatorAt, 0)
			e.kind, e.word = m.kind, m.word
		case 5:
			e.kind, e.word[0] = allocatorGone, allocatorAt
		case 6:
			e.kind, e.word = recorded, [6]uint64{0, listAt, uint64(rng.IntN(3))}
		case 7:
			e.kind, e.word[0] = cleared, listAt
		case 8:
			e.kind, e.word = shrunk, [6]uint64{listAt, 64}
		case 9:
			e.kind, e.word[0] = resized, listAt
		case 10, 11, 12, 13, 14, 15, 16, 17, 18, 19:
			e.kind, e.word = freed, [6]uint64{listAt, base + 64*uint64(rng.IntN(50))}
		default:
			m := took(listAt, 64*uint64(rng.IntN(50)), 64, capacity)
			e.kind, e.word = m.kind, m.word
		}
		list = append(list, e)
	}
	return list
}

// A follower that is always behind receives every process all the same, and of
// nothing twice.
func TestFollowBehind(t *testing.T) {
	s := quietSource()
	var now uint64
	busy := func(n int) (list []event) {
		for range n {
			for pid := range uint32(2) {
				now++
				e := took(aList, 64, 64, capacity)
				e.pid, e.time = pid+1, now
				free := event{pid: pid + 1, time: now, kind: freed, word: [6]uint64{aList, base + 64}}
				list = append(list, e, free)
			}
		}
		return list
	}
	for pid := range uint32(2) {
		e := made(aList, anAllocator, 0)
		e.pid = pid + 1
		s.enterAll(e)
	}
	s.enterAll(busy(3 * maxBatch)...)
	f := s.Follow(func(int) bool { return true })
	defer f.Close()
	m := newMirror(t)
	s.enterAll(busy(2 * maxBatch)...)
	for round := 0; len(m.processes) < 2; round++ {
		if round == 10 {
			t.Fatalf("received %d processes only", len(m.processes))
		}
		s.enterAll(busy(maxBatch * 3 / 4)...) // more than it takes
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.take(b)
	}
	for range 30 {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.take(b)
		if b.UpTo > 0 {
			break
		}
	}
	m.compare(s)
}

// What a follower receives adds up to the accounts, whenever it starts.
func TestFollow(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s, now := quietSource(), uint64(0)
		s.enterAll(play(rng, rng.IntN(200), &now)...)
		f := s.Follow(func(int) bool { return true })
		m := newMirror(t)
		for range 30 {
			s.enterAll(play(rng, rng.IntN(100), &now)...)
			for range 5 { // states come one by one; a number that has become another's is asked about first
				b, err := f.Next(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				m.take(b)
				s.enterAll()
			}
			m.compare(s)
		}
		if m.missed != 0 || m.told == 0 {
			t.Errorf("%d missed, %d told", m.missed, m.told)
		}
		f.Close()
		if s.accounts.tap != nil {
			t.Error("the ring stays without a follower")
		}
	}
}

// Who is too slow learns what holds, and how much it missed.
func TestFollowTooSlowly(t *testing.T) {
	s := quietSource()
	s.enterAll(made(aList, anAllocator, 0), took(aList, 0, 64, capacity))
	f := s.Follow(func(int) bool { return true })
	defer f.Close()
	m := newMirror(t)
	next := func() {
		t.Helper()
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m.take(b)
	}
	next()
	storm := make([]event, 0, 2*tapSize)
	for range tapSize {
		storm = append(storm, took(aList, 64, 64, capacity), event{kind: freed, pid: 0, word: [6]uint64{aList, base + 64}})
	}
	s.enterAll(storm...)
	s.enterAll(took(aList, 256, 64, capacity))
	next()
	m.compare(s)
	if want := uint64(2*tapSize + 1); m.missed != want || m.told != 0 {
		t.Errorf("%d missed and %d told, want %d and none", m.missed, m.told, want)
	}
}

// A follower gets no changes of other users' processes, nor of those that become
// another user's.
func TestFollowOwnOnly(t *testing.T) {
	s := quietSource()
	mine := map[int]bool{0: true}
	other := made(aList, anAllocator, 0)
	other.pid = 9
	s.enterAll(made(aList, anAllocator, 0), other)
	f := s.Follow(func(pid int) bool { return mine[pid] })
	defer f.Close()
	m := newMirror(t)
	b, err := f.Next(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.take(b)
	if len(m.processes) != 1 || m.processes[0] == nil {
		t.Fatalf("received %v", m.processes)
	}
	mine[0] = false
	f.next = time.Time{} // a second has passed
	s.enterAll(took(aList, 0, 64, capacity))
	if b, err = f.Next(t.Context()); err != nil {
		t.Fatal(err)
	}
	m.take(b)
	if len(m.processes) != 0 || len(b.Changes) != 1 || b.Changes[0].Kind != changes.Ended {
		t.Errorf("received another's: %+v", b)
	}
}

// Every allocation of a real process is told, also those that are gone before
// anybody could look, in the order of time.
func TestFollowProgram(t *testing.T) {
	s := watch(t, Options{})
	f := s.Follow(func(int) bool { return true })
	defer f.Close()
	program, library := fake(t)
	w := startFake(t, exec.Command(program, library))
	eventually(t, "the library is watched", func() bool { _, ok := s.Find(w.pid); return ok })
	w.do("make %d 5", 1<<20)
	var want []string
	for i := range 300 {
		a := w.number("take %d", 64*(i%5+1))
		w.do("free %d", a)
		want = append(want, fmt.Sprint("took ", a), fmt.Sprint("gave ", a))
	}
	last := w.number("take 64")
	before := time.Now().UnixNano()
	m := newMirror(t)
	var got []string
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for at, upTo := int64(0), int64(0); upTo < before; {
		b, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m.take(b)
		upTo = max(upTo, b.UpTo)
		for _, c := range b.Changes {
			if c.PID != w.pid {
				continue
			}
			if c.Time < at {
				t.Errorf("change %d is before the one before it", c.N)
			}
			at = c.Time
			switch c.Kind {
			case changes.Alloc:
				got = append(got, fmt.Sprint("took ", c.Addr))
			case changes.Free:
				got = append(got, fmt.Sprint("gave ", c.Addr))
			}
		}
	}
	if want = append(want, fmt.Sprint("took ", last)); !slices.Equal(got, want) {
		t.Errorf("told %d, happened %d:\n%s", len(got), len(want), cmp.Diff(want, got))
	}
	p := m.processes[w.pid]
	if p == nil || p.late || len(p.lists) != 1 || m.missed != 0 {
		t.Fatalf("%+v", p)
	}
	for _, l := range p.lists {
		if l.blocks[last] != 64 || len(l.blocks) != 1 || !slices.Equal(l.def.Chips, []uint64{5}) || l.def.Geometry.Banks != 8 {
			t.Errorf("%+v", l)
		}
	}
	w.end()
	for m.processes[w.pid] != nil {
		b, err := f.Next(ctx)
		if err != nil {
			t.Fatal(err)
		}
		m.take(b)
	}
}

// BenchmarkAccounts is what an allocation and its free cost in the accounts: alone,
// and with a follower.
func BenchmarkAccounts(b *testing.B) {
	for _, followed := range []bool{false, true} {
		b.Run(fmt.Sprintf("followed=%v", followed), func(b *testing.B) {
			s := quietSource()
			s.enterAll(made(aList, anAllocator, 0))
			if followed {
				f := s.Follow(func(int) bool { return true })
				defer f.Close()
			}
			take, free := took(aList, 64, 64, capacity), event{kind: freed, word: [6]uint64{aList, base + 64}}
			for b.Loop() {
				s.accounts.apply(&take)
				s.accounts.apply(&free)
			}
		})
	}
}

// Before the first library is known no probe is set: a follower is told that
// nothing has happened, now and then, and need not wait for it.
func TestFollowWithoutProbes(t *testing.T) {
	s := newSource(Options{}, nil)
	f := s.Follow(func(int) bool { return true })
	defer f.Close()
	begun := time.Now().UnixNano()
	last := int64(0)
	for range 3 {
		b, err := f.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(b.States)+len(b.Changes) > 0 || b.UpTo < begun || b.UpTo-last < int64(notifyIdle) {
			t.Fatalf("%+v after %d", b, last)
		}
		last = b.UpTo
	}
}
