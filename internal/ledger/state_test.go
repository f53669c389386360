package ledger

import (
	"bytes"
	gocmp "cmp"
	"io"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

// writeState writes the whole ledger, whose sources have been stopped.
func writeState(l *Ledger, w io.Writer) error {
	c := l.StartCopy(w, nil)
	defer c.Cancel()
	if err := c.Send(); err != nil {
		return err
	}
	return c.Finish()
}

func stateOf(t testing.TB, l *Ledger) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := writeState(l, &b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
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
	next := New(Options{})
	if err := next.ReadState(bytes.NewReader(stateOf(t, l)), nil); err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"processes": {l.Processes(), next.Processes()},
		"devices":   {l.Devices(), next.Devices()}, // with peaks above the live sum
		"leaks":     {l.Leaks(), next.Leaks()},
		"stats":     {l.Stats(), next.Stats()},
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

// A ledger is copied while it is in use: whatever meets whatever, the copy is
// what the ledger is in the end.
func TestCopyInUse(t *testing.T) {
	l := New(Options{})
	procs := make([]*Process, 4)
	for i := range procs {
		procs[i] = l.Open(Info{ProcessID: model.ProcessID{PID: i + 1}, UID: i}, t0)
		fill(l, procs[i], 20_000)
	}
	stop := make(chan struct{})
	var writers sync.WaitGroup
	for i, p := range procs {
		writers.Go(func() {
			rnd := rand.New(rand.NewPCG(1, uint64(i)))
			// Not for ever: on a busy machine the copy might never catch up.
			for n := range 10_000 {
				select {
				case <-stop:
					return
				default:
				}
				id := rnd.Uint64N(30_000) * 64
				batch := []Event{alloc(0, id, 1+rnd.Uint64N(1000), dram), free(int32(rnd.IntN(3)), rnd.Uint64N(30_000)*64), alloc(2, id, 5, l1)}
				l.Apply(p, batch, t0)
				if i == 3 && n%500 == 0 { // this one ends and comes back
					l.End(p, "exited", t0, nil)
					p = l.Open(Info{ProcessID: model.ProcessID{PID: i + 1}, UID: i}, t0)
				}
			}
		})
	}
	r, w := io.Pipe()
	next := New(Options{})
	done := make(chan error, 1)
	caught := make(chan struct{})
	go func() { done <- next.ReadState(r, func() error { close(caught); return nil }) }()
	c := l.StartCopy(w, nil)
	if err := c.Send(); err != nil {
		t.Fatal(err)
	}
	<-caught
	close(stop)
	writers.Wait()
	if err := c.Finish(); err != nil {
		t.Fatal(err)
	}
	c.Cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"processes": {l.Processes(), next.Processes()},
		"devices":   {l.Devices(), next.Devices()},
		"leaks":     {l.Leaks(), next.Leaks()},
		"stats":     {l.Stats(), next.Stats()},
		"budget":    {l.Budget().Used, next.Budget().Used},
	} {
		t.Run(what, func(t *testing.T) {
			if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
				t.Errorf("%s (-old +new):\n%.2000s", what, diff)
			}
		})
	}
	if a, b := sortedBuffers(l), sortedBuffers(next); !slices.Equal(a, b) { // cmp takes seconds for so many
		t.Errorf("%d buffers and %d, or others", len(a), len(b))
	}
	if l.copy != nil {
		t.Error("a copy that has ended takes notes")
	}
}

func sortedBuffers(l *Ledger) (all []Buffer) {
	for _, h := range l.Processes() {
		from := len(all)
		l.Walk(h.ProcessID, func(b Buffer) bool { all = append(all, b); return true })
		slices.SortFunc(all[from:], func(a, b Buffer) int {
			return gocmp.Or(gocmp.Compare(a.Device, b.Device), gocmp.Compare(a.ID, b.ID), gocmp.Compare(a.Pool, b.Pool))
		})
	}
	return all
}

// A successor that is too slow does not make the notes grow: the sources are
// stopped then.
func TestCopyTooSlow(t *testing.T) {
	l := New(Options{})
	p := l.Open(Info{}, t0)
	full := make(chan struct{})
	c := l.StartCopy(io.Discard, func() { close(full) })
	defer c.Cancel()
	batch := make([]Event, 4096)
	for i := range batch {
		batch[i] = alloc(0, uint64(i)*64, 1, dram)
	}
	for range maxNotes/recordLen/len(batch) + 1 {
		l.Apply(p, batch, t0)
	}
	<-full
}

// A truncated or changed state is rejected, never half restored.
func TestStateDamage(t *testing.T) {
	state := stateOf(t, filled(t))
	for cut := range state {
		if err := New(Options{}).ReadState(bytes.NewReader(state[:cut]), nil); err == nil {
			t.Fatalf("state cut at %d of %d was taken", cut, len(state))
		}
	}
	for i := range state {
		bad := bytes.Clone(state)
		bad[i] ^= 0x11
		if err := New(Options{}).ReadState(bytes.NewReader(bad), nil); err == nil {
			t.Fatalf("state changed at %d was taken", i)
		}
	}
}

func FuzzReadState(f *testing.F) {
	f.Add(stateOf(f, filled(f)))
	f.Add(stateOf(f, New(Options{})))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := New(Options{})
		if l.ReadState(bytes.NewReader(b), nil) == nil {
			stateOf(t, l)
		}
	})
}
