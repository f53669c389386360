package ledger

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func stateOf(t testing.TB, l *Ledger) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := l.WriteState(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func filled(t testing.TB) *Ledger {
	t.Helper()
	l := New(Options{})
	p := l.Open(Info{Key: Key{PID: 1, Start: 5}, UID: 1000, Name: "a b\n"}, t0)
	l.Apply(p, []Event{alloc(0, 32, 100, dram), alloc(9, 64, 7, l1), free(9, 64), {Op: CBAlloc, ID: 3, Size: 4}}, t0)
	dead := l.Open(Info{Key: Key{PID: 2, Start: 6}}, t0)
	l.Apply(dead, []Event{alloc(0, 32, 1000, dram)}, t0)
	l.End(dead, "exited", t0, nil)
	l.Open(Info{Key: Key{PID: 3}}, t0)
	return l
}

func TestStateKeepsEverything(t *testing.T) {
	l := filled(t)
	next := New(Options{})
	if err := next.ReadState(bytes.NewReader(stateOf(t, l))); err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]any{
		"processes": {l.Processes(), next.Processes()},
		"devices":   {l.Devices(), next.Devices()}, // with peaks above the live sum
		"leaks":     {l.Leaks(), next.Leaks()},
		"stats":     {l.Stats(), next.Stats()},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-old +new):\n%s", what, diff)
		}
	}
	if peak := next.Device(0).Peak[dram]; peak != 1100 {
		t.Errorf("peak of device 0 is %d, want 1100", peak)
	}
}

// A state that was cut or changed is refused, never half taken.
func TestStateDamage(t *testing.T) {
	state := stateOf(t, filled(t))
	for cut := range state {
		if err := New(Options{}).ReadState(bytes.NewReader(state[:cut])); err == nil {
			t.Fatalf("state cut at %d of %d was taken", cut, len(state))
		}
	}
	for i := range state {
		bad := bytes.Clone(state)
		bad[i] ^= 0x11
		if err := New(Options{}).ReadState(bytes.NewReader(bad)); err == nil {
			t.Fatalf("state changed at %d was taken", i)
		}
	}
}

func FuzzReadState(f *testing.F) {
	f.Add(stateOf(f, filled(f)))
	f.Add(stateOf(f, New(Options{})))
	f.Fuzz(func(t *testing.T, b []byte) {
		l := New(Options{})
		if l.ReadState(bytes.NewReader(b)) == nil {
			stateOf(t, l)
		}
	})
}
