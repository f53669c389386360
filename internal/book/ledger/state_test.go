package ledger

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/model"
)

// handedOn is a ledger as a successor has it.
func handedOn(t testing.TB, l *Ledger) *Ledger {
	t.Helper()
	next, err := restored(l)
	if err != nil {
		t.Fatal(err)
	}
	return next
}

func restored(l *Ledger) (*Ledger, error) {
	st, fd := l.Save()
	b, err := json.Marshal(st)
	if err != nil {
		return nil, err
	}
	st = State{}
	if err := json.Unmarshal(b, &st); err != nil {
		return nil, err
	}
	if fd >= 0 {
		if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			return nil, err
		}
	}
	return Restore(Options{}, st, fd)
}

func filled(t testing.TB) *Ledger {
	t.Helper()
	l := New(Options{})
	p := l.Open(Info{ProcessID: model.ProcessID{PID: 1, StartTicks: 5}, UID: 1000, Name: "a b\n"}, t0)
	l.Apply(p, []Event{alloc(0, 32, 100, dram), alloc(9, 64, 7, l1), free(9, 64), {Op: CBAlloc, ID: 3, Size: 4}}, t0)
	dead := l.Open(Info{ProcessID: model.ProcessID{PID: 2, StartTicks: 6}}, t0)
	l.Apply(dead, []Event{alloc(0, 32, 1000, dram)}, t0)
	l.End(dead, "exited", t0, nil)
	l.Open(Info{ProcessID: model.ProcessID{PID: 3}}, t0)
	return l
}

func TestStateKeepsEverything(t *testing.T) {
	l := filled(t)
	next := handedOn(t, l)
	for what, pair := range map[string][2]any{
		"processes": {l.Processes(), next.Processes()},
		"devices":   {l.Devices(), next.Devices()}, // with peaks above the live sum
		"leaks":     {l.Leaks(), next.Leaks()},
		"stats":     {l.Stats(), next.Stats()},
		"budget":    {l.Budget(), next.Budget()},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s (-old +new):\n%s", what, diff)
			}
		})
	}
	if peak := next.Device(0).Peak[dram]; peak != 1100 {
		t.Errorf("peak of device 0 is %d, want 1100", peak)
	}
}

// The layout of the file of buffers is a contract between releases: one who changes
// it raises layout, and reads the old one as well or says in CHANGELOG.md that an
// upgrade forgets what is held.
func TestLayout(t *testing.T) {
	var e entry
	got := []uintptr{
		unsafe.Sizeof(e), unsafe.Offsetof(e.id), unsafe.Offsetof(e.size), unsafe.Offsetof(e.next),
		unsafe.Offsetof(e.born), unsafe.Offsetof(e.dev), unsafe.Offsetof(e.kind), unsafe.Offsetof(e.pool),
	}
	if diff := cmp.Diff([]uintptr{32, 0, 8, 16, 20, 24, 26, 27}, got); diff != "" || layout != 1 {
		t.Errorf("layout %d (-want +got):\n%s", layout, diff)
	}
	table := table{seed: 7}
	if h := table.hash(l1Buffer, 3, 0x12345); h != 0x3306dca4335 {
		t.Errorf("the hash of a buffer is %#x", h)
	}
}

// A state that does not belong to its file is not taken.
func TestStateDamage(t *testing.T) {
	for what, spoil := range map[string]func(*State){
		"another layout":         func(st *State) { st.Layout++ },
		"a slab outside":         func(st *State) { st.Processes[0].Table.Slabs[0] = 1 << 30 },
		"a slab across the end":  func(st *State) { copy(st.Processes[0].Table.Slabs, []uint32{8, slabLen}) },
		"a slab of odd length":   func(st *State) { st.Processes[0].Table.Slabs[1] = 9 },
		"more used than there":   func(st *State) { st.Processes[0].Table.Slabs[2] = 9 },
		"half a slab":            func(st *State) { st.Processes[0].Table.Slabs = st.Processes[0].Table.Slabs[:3] },
		"heads outside":          func(st *State) { st.Processes[0].Table.Heads[0] = 1 << 30 },
		"more buckets":           func(st *State) { st.Processes[0].Table.Buckets = 1 << 20 },
		"no buckets":             func(st *State) { st.Processes[0].Table.Buckets = 0 },
		"another current slab":   func(st *State) { st.Processes[0].Table.Current = 7 },
		"a hole that is none":    func(st *State) { st.Processes[0].Table.Holes = []int{-1} },
		"a free piece outside":   func(st *State) { st.Arena.Free[0] = []place{1 << 30} },
		"more used than mapped":  func(st *State) { st.Arena.Used = 1 << 40 },
		"no free pieces":         func(st *State) { st.Arena.Free = nil },
		"a process twice":        func(st *State) { st.Processes = append(st.Processes, st.Processes[0]) },
		"an impossible device":   func(st *State) { st.Processes[0].Devices[0].Device = -1 },
		"a device without peaks": func(st *State) { st.Peaks = nil },
	} {
		t.Run(what, func(t *testing.T) {
			l := New(Options{})
			l.Apply(l.Open(Info{}, t0), []Event{alloc(0, 32, 100, dram)}, t0)
			st, fd := l.Save()
			spoil(&st)
			if fd, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
				t.Fatal(err)
			} else if _, err = Restore(Options{}, st, fd); err == nil {
				t.Error("it was taken")
			}
		})
	}
}

func FuzzRestore(f *testing.F) {
	for _, l := range []*Ledger{filled(f), New(Options{})} {
		st, _ := l.Save()
		b, err := json.Marshal(st)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var st State
		if json.Unmarshal(b, &st) != nil {
			return
		}
		fd, err := unix.MemfdCreate("fuzz", unix.MFD_CLOEXEC)
		if err != nil {
			t.Fatal(err)
		}
		if l, err := Restore(Options{}, st, fd); err == nil {
			for _, h := range l.Processes() {
				l.Walk(h.ProcessID, func(Buffer) bool { return true })
			}
			l.Save()
		}
	})
}

// What one user frees is there for others: no user fills the file by keeping one
// buffer of each slab.
func TestFragments(t *testing.T) {
	l := New(Options{MaxBuffers: 64 << 10})
	kept := 0
	for n := range 40 {
		p := l.Open(Info{ProcessID: model.ProcessID{PID: n + 1}, UID: 1000}, t0)
		fill(l, p, 8<<10)
		for id := range uint64(8 << 10) {
			if id%slabLen != 0 {
				l.Apply(p, []Event{free(0, id*32)}, t0)
			}
		}
		kept += p.table.live
	}
	others := l.Open(Info{ProcessID: model.ProcessID{PID: 99}, UID: 1001}, t0)
	fill(l, others, 8<<10)
	if refused := l.Budget().Refused; refused == 0 || others.counters.OverLimit > 0 || others.table.live != 8<<10 {
		t.Errorf("%d refused, %d of them of another user, who has %d buffers; %d are kept", refused, others.counters.OverLimit, others.table.live, kept)
	}
	if most := 2*l.limit.PerUser + 41*slabLen; l.owners[1000].slots > most+slabLen {
		t.Errorf("%d slots of one user, at most %d", l.owners[1000].slots, most)
	}
}

// Memory that was given back is used again, and empty.
func TestArena(t *testing.T) {
	a := newArena(1 << 10)
	defer a.close()
	type piece struct {
		at    place
		units int
	}
	var held []piece
	rnd := rand.New(rand.NewPCG(1, 2))
	owner := map[int]int{} // by unit
	for round := range 20_000 {
		if len(held) > 0 && rnd.IntN(2) == 0 {
			i := rnd.IntN(len(held))
			p := held[i]
			held[i] = held[len(held)-1]
			held = held[:len(held)-1]
			for u := range p.units {
				delete(owner, int(p.at)+u)
			}
			a.give(p.at, p.units)
			continue
		}
		units := 1 << rnd.IntN(pieceSizes)
		at, ok := a.take(units)
		if !ok {
			continue
		}
		b := a.bytes(at, units)
		for _, x := range b {
			if x != 0 {
				t.Fatalf("round %d: a piece is not empty", round)
			}
		}
		b[0], b[len(b)-1] = 1, 1
		for u := range units {
			if other, taken := owner[int(at)+u]; taken {
				t.Fatalf("round %d: unit %d is of round %d too", round, int(at)+u, other)
			}
			owner[int(at)+u] = round
		}
		held = append(held, piece{at, units})
	}
}
