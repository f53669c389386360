package lines

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
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

// record records a program that allocates blocks of 1000 bytes in each of two
// banks: line 10 once, line 20 three times, frees the first at 5 s, and those of
// line 20 at 6 s, after which it allocates on the other chip of the device; and
// another program, which does the same once.
func record(t *testing.T) *recording.Reader {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok(t, err)
	ok(t, w.Meta(at(0), recording.Meta{Version: "test"}))
	ok(t, w.Snapshot(at(0), wire.Append(nil, tuitest.Host(1, 0))))
	lists := map[int]recording.List{}
	for i, pid := range []int{42, 43} {
		ok(t, w.Process(at(0), recording.Process{ID: uint32(i + 1), PID: pid, Start: 7, Method: recording.ByLedger}))
		lists[pid] = recording.List{ID: uint32(10 + i), Process: uint32(i + 1), Pool: "dram", Geometry: blocks.Geometry{Banks: 2}}
		ok(t, w.List(at(0), lists[pid]))
	}
	for id, line := range map[uint32]int{1: 10, 2: 20} {
		ok(t, w.Site(at(0), recording.Site{ID: id, Stack: []ledgerfile.Frame{{File: "x.py", Line: line, Function: "f"}}}))
	}
	ok(t, w.Alloc(at(1), 10, blocks.Block{Addr: 0, Size: 1000, Site: 1}))
	ok(t, w.Alloc(at(1), 11, blocks.Block{Addr: 0, Size: 1000, Site: 1}))
	l := lists[42]
	l.Chips = []uint64{7} // which is known from then on
	ok(t, w.List(at(1), l))
	for i := range 3 {
		ok(t, w.Alloc(at(2), 10, blocks.Block{Addr: uint64(i+1) * 4096, Size: 1000, Site: 2}))
	}
	ok(t, w.Free(at(5), 10, 0))
	for i := range 3 {
		ok(t, w.Free(at(6), 10, uint64(i+1)*4096))
	}
	ok(t, w.List(at(6), recording.List{ID: 12, Process: 1, Pool: "dram", Chips: []uint64{8}, Geometry: blocks.Geometry{Banks: 2}}))
	ok(t, w.Alloc(at(6), 12, blocks.Block{Addr: 0, Size: 500, Site: 1}))
	ok(t, w.Alloc(at(7), 10, blocks.Block{Addr: 0, Size: 1500, Site: 1}))
	ok(t, w.Snapshot(at(9), wire.Append(nil, tuitest.Host(1, 9))))
	ok(t, w.Close())
	r, err := recording.Open(path)
	ok(t, err)
	t.Cleanup(func() { r.Close() })
	return r
}

func runOf(pid int) *runs.Run {
	return &runs.Run{Processes: []runs.Process{{PID: pid, StartTicks: 7}}}
}

// A line's own peak is one thing, what it held at that of the run another.
func TestOf(t *testing.T) {
	r := record(t)
	first, second := runs.Line{Pool: "dram", File: "x.py", Line: 10, Function: "f"}, runs.Line{Pool: "dram", File: "x.py", Line: 20, Function: "f"}
	for _, tt := range []struct {
		name  string
		pid   int
		until int
		want  *runs.Lines
	}{
		{"all of it", 42, 9, &runs.Lines{
			Used:  map[runs.Line]runs.LineUse{first: {Peak: 4000, AtPeak: 2000, Held: 4000, Allocs: 3}, second: {Peak: 6000, AtPeak: 6000, Allocs: 3}},
			Peaks: map[string]uint64{"dram": 8000}, Chips: map[uint64]map[string]uint64{7: {"dram": 8000}, 8: {"dram": 1000}}, Devices: map[int]map[string]uint64{3: {"dram": 8000}},
		}},
		{"up to a moment", 42, 1, &runs.Lines{
			Used:  map[runs.Line]runs.LineUse{first: {Peak: 2000, AtPeak: 2000, Held: 2000, Allocs: 1}},
			Peaks: map[string]uint64{"dram": 2000}, Chips: map[uint64]map[string]uint64{7: {"dram": 2000}}, Devices: map[int]map[string]uint64{3: {"dram": 2000}},
		}},
		{"another program", 43, 9, &runs.Lines{
			Used:  map[runs.Line]runs.LineUse{first: {Peak: 2000, AtPeak: 2000, Held: 2000, Allocs: 1}},
			Peaks: map[string]uint64{"dram": 2000}, Chips: map[uint64]map[string]uint64{}, Devices: map[int]map[string]uint64{},
		}},
		{"before it allocated", 42, 0, nil},
		{"not recorded", 44, 9, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := Of(r, at(tt.until), runOf(tt.pid), map[uint64]int{7: 3, 8: 3})
			ok(t, err)
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Peaks between two snapshots are those of the allocations, and so are those that no
// snapshot has.
func TestRaise(t *testing.T) {
	pool := func(n uint64) map[string]runs.Pool {
		return map[string]runs.Pool{"dram": {Peak: n, PeakBound: "unsure"}}
	}
	r := &runs.Run{Pools: pool(100), Devices: []runs.Device{
		{Index: 0, Pools: pool(100), Chips: []runs.Chip{{ID: "7", Pools: pool(900)}, {ID: "8", Pools: pool(1)}}},
		{Index: 1, Pools: pool(100)},
		{Index: 2},
	}}
	Raise(r, &runs.Lines{Peaks: map[string]uint64{"dram": 800, "l1": 5}, Chips: map[uint64]map[string]uint64{7: {"dram": 500}, 8: {"dram": 400}, 9: {"dram": 300}, 99: {}}, Devices: map[int]map[string]uint64{0: {"dram": 700}, 1: {"dram": 300}, 2: {"dram": 1}}})
	got := []uint64{r.Pools["dram"].Peak, r.Devices[0].Pools["dram"].Peak, r.Devices[0].Chips[0].Pools["dram"].Peak, r.Devices[0].Chips[1].Pools["dram"].Peak, r.Devices[1].Pools["dram"].Peak}
	if diff := cmp.Diff([]uint64{800, 700, 900, 400, 300}, got); diff != "" {
		t.Error(diff)
	}
	if p := r.Pools["l1"]; p.Peak != 5 || p.PeakBound != "at_least" || r.Pools["dram"].PeakBound != "at_least" {
		t.Errorf("%+v", r.Pools)
	}
}
