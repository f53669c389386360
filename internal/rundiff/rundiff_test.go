package rundiff

import (
	"encoding/json"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/hermetic"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/internal/wire"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func at(s int) time.Time { return tuitest.Start.Add(time.Duration(s) * time.Second) }

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// run records a program that allocates blocks of 1000 bytes in each of two
// banks: line 10 once, line 20 so many times, and frees the first at 5 s.
func run(t *testing.T, caches int) *recording.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test", Command: []string{"python", "x.py"}}))
	ok(t, w.Snapshot(at(0), wire.Append(nil, tuitest.Host(1, 0))))
	ok(t, w.Process(at(0), recording.Process{ID: 1, PID: 42, Method: recording.ByLedger}))
	list := recording.List{ID: 2, Process: 1, Pool: "dram", Geometry: blocks.Geometry{Banks: 2}}
	ok(t, w.List(at(0), list))
	for id, line := range map[uint32]int{1: 10, 2: 20} {
		ok(t, w.Site(at(0), recording.Site{ID: id, Stack: []ledgerfile.Frame{{File: "x.py", Line: line, Function: "f"}}}))
	}
	ok(t, w.Alloc(at(1), 2, blocks.Block{Addr: 0, Size: 1000, Site: 1}))
	list.Chips = []uint64{7} // which is known from then on
	ok(t, w.List(at(1), list))
	for i := range caches {
		ok(t, w.Alloc(at(2), 2, blocks.Block{Addr: uint64(i+1) * 4096, Size: 1000, Site: 2}))
	}
	ok(t, w.Free(at(5), 2, 0))
	ok(t, w.Snapshot(at(9), wire.Append(nil, tuitest.Host(1, 9))))
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func sum(t *testing.T, r *recording.Reader, o Options) *Side {
	t.Helper()
	s, err := Sum(r, o)
	ok(t, err)
	return s
}

func TestTwoRuns(t *testing.T) {
	d := Compare(sum(t, run(t, 2), Options{Name: "a"}), sum(t, run(t, 5), Options{Name: "b"}))
	want := []PoolDiff{{Chip: "chip 7", Pool: "dram", PeakA: new(uint64(6000)), PeakB: new(uint64(12000)), PeakAtA: 2, PeakAtB: 2, HeldA: new(uint64(4000)), HeldB: new(uint64(10000))}}
	if diff := cmp.Diff(want, d.Pools); diff != "" {
		t.Error(diff)
	}
	place := Place{Pool: "dram", File: "x.py", Line: 20, Function: "f"}
	if diff := cmp.Diff([]PlaceDiff{{place, 4000, 10000, 4000, 10000, 2, 5}}, d.Places); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]BlockGroup{{place, 2000, 3}}, d.Blocks); diff != "" {
		t.Error(diff)
	}
	if !d.A.Exact || len(d.Users) == 0 {
		t.Errorf("%+v", d)
	}
	for _, u := range d.Users {
		if u.Name == "" || u.HeldA != nil && u.BoundA == "" {
			t.Errorf("a figure without a name, or that does not say how to read it: %+v", u)
		}
	}
	if b, err := json.Marshal(d); err != nil || !json.Valid(b) {
		t.Error(err)
	}
}

// Of two moments of one run the blocks themselves are compared: one that was
// freed and one in its place are two.
func TestTwoMoments(t *testing.T) {
	r := run(t, 3)
	d := Compare(sum(t, r, Options{At: at(1), Same: true}), sum(t, r, Options{At: at(3), Same: true}))
	if len(d.Blocks) != 1 || d.Blocks[0].Count != 3 || d.Blocks[0].Line != 20 {
		t.Errorf("new from 1 s to 3 s: %+v", d.Blocks)
	}
	d = Compare(sum(t, r, Options{At: at(3), Same: true}), sum(t, r, Options{At: at(9), Same: true}))
	if len(d.Blocks) != 0 || *d.Pools[0].HeldA != 8000 || *d.Pools[0].HeldB != 6000 || len(d.Places) != 1 || d.Places[0].Line != 10 {
		t.Errorf("from 3 s to 9 s: %+v", d)
	}
	if d := Compare(sum(t, r, Options{Same: true}), sum(t, r, Options{Same: true})); len(d.Places)+len(d.Blocks) != 0 {
		t.Errorf("a run differs from itself: %+v", d)
	}
}

// What was not told is not nothing: of a run without libttmon neither lines nor
// the memory of single chips are known.
func TestOnlyOneIsExact(t *testing.T) {
	r := run(t, 2)
	d := Compare(sum(t, r, Options{At: at(0)}), sum(t, r, Options{}))
	if d.Exact || len(d.Places)+len(d.Blocks) != 0 || len(d.Pools) == 0 {
		t.Errorf("%+v", d)
	}
	for _, p := range d.Pools {
		if (p.HeldA == nil) == (p.HeldB == nil) || (p.PeakA == nil) != (p.HeldA == nil) {
			t.Errorf("%+v: known of one side only", p)
		}
	}
	d = Compare(sum(t, r, Options{At: at(0), Same: true}), sum(t, r, Options{Same: true}))
	if !d.Exact || len(d.Pools) != 1 || *d.Pools[0].HeldA != 0 || *d.Pools[0].HeldB != 4000 || len(d.Blocks) != 1 {
		t.Errorf("from the beginning of a run: %+v", d)
	}
}

// A recording begins before its first snapshot; its beginning can be compared
// all the same.
func TestFromTheBeginning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test"}))
	ok(t, w.Process(at(0), recording.Process{ID: 1, PID: 42, Method: recording.ByLedger}))
	ok(t, w.Snapshot(at(1), wire.Append(nil, tuitest.Host(1, 0))))
	ok(t, w.Snapshot(at(9), wire.Append(nil, tuitest.Host(1, 9))))
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	defer r.Close()
	first, _, _ := r.Span()
	if s := sum(t, r, Options{At: first}); !s.At.Equal(at(1)) {
		t.Errorf("the beginning is %v, not the first snapshot at %v", s.At, at(1))
	}
}
