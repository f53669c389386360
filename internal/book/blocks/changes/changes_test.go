package changes

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

func sample() *Batch {
	l := List{ID: 2, Allocator: 1, Pool: "l1", Chips: []uint64{7}, Geometry: blocks.Geometry{Pool: model.L1, Banks: 130, Capacity: 1 << 20}}
	return &Batch{
		UpTo: 99,
		States: []*State{{
			PID: 42, Start: 5, Name: "python3", N: 9, Missed: 3,
			Lists: []Held{{List: l, Blocks: []blocks.Block{{Addr: 64, Size: 128, Asked: 1024, Born: 77}}}},
		}},
		Changes: []Change{
			{N: 10, PID: 42, Time: 1000, Kind: Alloc, List: 2, Addr: 4096, Size: 64, Asked: 512},
			{N: 11, PID: 42, Time: 1500, Kind: Free, List: 2, Addr: 4096},
			{N: 12, PID: 42, Time: 1500, Kind: Defined, List: 2, Def: &l},
			{N: 13, PID: 42, Time: 1600, Kind: Lost, Size: 4},
			{N: 1, PID: 43, Time: 1400, Kind: Cleared, List: 1},
			{N: 2, PID: 43, Time: 1700, Kind: Ended, Why: "it has ended"},
		},
	}
}

// lines reads what Append wrote.
func lines(t *testing.T, text []byte) (out Batch, n int) {
	t.Helper()
	for line := range bytes.Lines(text) {
		b, err := Parse(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		out.States, out.Changes, out.UpTo = append(out.States, b.States...), append(out.Changes, b.Changes...), max(out.UpTo, b.UpTo)
		n++
	}
	return out, n
}

func TestLines(t *testing.T) {
	text, err := Append(nil, sample())
	if err != nil {
		t.Fatal(err)
	}
	got, n := lines(t, text)
	if diff := cmp.Diff(sample(), &got); diff != "" {
		t.Errorf("told (-) and understood (+):\n%s", diff)
	}
	if n != 5 { // the state; two changes and a definition; a loss; the other process; up to
		t.Errorf("%d lines:\n%s", n, text)
	}
}

func TestForeignLines(t *testing.T) {
	for _, line := range []string{
		``, `[]`, `{"changes":[[1]]}x`, `{"state":{"lists":[{"pool":"attic"}]}}`, `{"list":{"pool":""}}`,
		`{"changes":[[5,0,1,0,0,0]]}`, `{"changes":[[300,0,1,0,0,0]]}`, `{"changes":[[1,0,4294967296,0,0,0]]}`, `{"changes":[[1,9223372036854775808,1,0,0,0]]}`,
	} {
		if b, err := Parse([]byte(line)); err == nil {
			t.Errorf("%s is parsed as %+v", line, b)
		}
	}
	if _, err := Parse([]byte(`{"something":"new"}`)); err != nil {
		t.Errorf("what a newer ttmond adds: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	text, err := Append(nil, sample())
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.Lines(text) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line []byte) {
		b, err := Parse(line)
		if err != nil {
			return
		}
		again, err := Append(nil, &b)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := lines(t, again)
		if len(got.Changes) != len(b.Changes) || len(got.States) != len(b.States) {
			t.Errorf("%s became %s", line, again)
		}
	})
}
