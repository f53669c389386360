package ledgerfile

import (
	"math"
	"testing"
	"time"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// image is a ledger with one chip's programs, written by hand.
type image struct {
	*header
	chip *workRecord
	op   *opRecord
	name *nameRecord
	gaps []gapRecord
}

func workImage(change func(*image)) []byte {
	const work, ops, names = 4096, 8192, 32768
	gaps := names + 2*unsafe.Sizeof(nameRecord{})
	b := make([]byte, gaps+chipGaps*unsafe.Sizeof(gapRecord{}))
	x := &image{&recordsIn[header](b)[0], &recordsIn[workRecord](b[work:])[0], &recordsIn[opRecord](b[ops:])[0], &recordsIn[nameRecord](b[names:])[1], recordsIn[gapRecord](b[gaps:])}
	*x.header = header{
		Magic: [8]byte([]byte(magic)), Version: Version, Header: uint32(workHeader), Clock: clock{1_700_000_000_000_000_000, 1000},
		Work: [workSections]section{
			{Offset: work, Size: uint32(unsafe.Sizeof(workRecord{})), Used: 1},
			{Offset: ops, Size: uint32(unsafe.Sizeof(opRecord{})), Used: chipOps},
			{Offset: names, Size: uint32(unsafe.Sizeof(nameRecord{})), Used: 2},
		},
		Host: hostRecord{Enqueued: 8, Wait: [8]waitRecord{{Since: 1500, Kind: WaitFinish}}},
	}
	*x.chip = workRecord{Logical: 3, State: WorkOn, TicksPerNS: 1.35, Programs: 7, Busy: 1350, LastName: 1, LastRecord: 2000}
	*x.op = opRecord{Calls: 7, Ticks: 1350, Longest: 270, Name: 1}
	x.name.Length = uint32(copy(x.name.Text[:], "matmul"))
	x.Gaps = section{Offset: uint64(gaps), Size: uint32(unsafe.Sizeof(gapRecord{})), Used: chipGaps} // which this header is too short for
	if change != nil {
		change(x)
	}
	return b
}

func TestWork(t *testing.T) {
	fd := memoryFile(t, workImage(nil))
	defer unix.Close(fd)
	got, err := new(WorkReader).Read(fd)
	if err != nil {
		t.Fatal(err)
	}
	at := func(ns int64) time.Time { return time.Unix(0, 1_700_000_000_000_000_000+ns-1000) }
	want := &Work{
		Host: HostWork{Enqueued: 8, Waiting: []Wait{{Since: at(1500), Kind: WaitFinish}}},
		Chips: []ChipWork{{
			Logical: 3, State: WorkOn, Programs: 7, Busy: 1000, LastName: "matmul", LastRecord: at(2000),
			Ops: []Op{{Name: "matmul", Calls: 7, Time: 1000, Longest: 200}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// What a process enqueued and waits for is known of chips that report nothing, too;
// a libttmon that counts nothing then has counted nothing.
func TestWorkWithoutRecords(t *testing.T) {
	for _, enqueued := range []uint64{0, 8} {
		fd := memoryFile(t, workImage(func(x *image) {
			x.Work[secWork].Used, x.Work[secOps].Used = 0, 0
			x.Host.Enqueued, x.Host.Wait[0].Since = enqueued, int64(enqueued)
		}))
		defer unix.Close(fd)
		got, err := new(WorkReader).Read(fd)
		if err != nil || (got != nil) != (enqueued > 0) || got != nil && (got.Host.Enqueued != 8 || len(got.Host.Waiting) != 1 || len(got.Chips) != 0) {
			t.Errorf("%d enqueued: %+v, %v", enqueued, got, err)
		}
	}
}

// withGaps adds the longest gaps of the chip to a ledger.
func withGaps(change func(*image)) []byte {
	return workImage(func(x *image) {
		x.Header, x.chip.LongestGap = uint32(sizeOfHeader), 13500
		x.gaps[0], x.gaps[1] = gapRecord{Ticks: 1350, End: 1700}, gapRecord{Ticks: 13500, End: 1900, After: 1}
		if change != nil {
			change(x)
		}
	})
}

// TestGaps: gaps are listed by their length; what cannot be one is left out, and
// a ledger that has no room for them says so.
func TestGaps(t *testing.T) {
	at := func(ns int64) time.Time { return time.Unix(0, 1_700_000_000_000_000_000+ns-1000) }
	long, short := Gap{10000, at(1900), "matmul"}, Gap{1000, at(1700), ""}
	for name, c := range map[string]struct {
		change func(*image)
		want   []Gap
		kept   bool
		fails  bool
	}{
		"two":                   {nil, []Gap{long, short}, true, false},
		"an older ledger":       {func(x *image) { x.Header = uint32(failuresHeader) }, nil, false, false},
		"longer than the limit": {func(x *image) { x.gaps[0].Ticks = 13501 }, []Gap{long}, true, false},
		"ended after the end":   {func(x *image) { x.gaps[0].End = 2001 }, []Gap{long}, true, false},
		"room for none":         {func(x *image) { x.Gaps.Used = 0 }, nil, false, true},
		"cut off":               {func(x *image) { x.Gaps.Offset = 1 << 30 }, nil, false, true},
		"another size":          {func(x *image) { x.Gaps.Size = 25 }, nil, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			fd := memoryFile(t, withGaps(c.change))
			defer unix.Close(fd)
			w, err := new(WorkReader).Read(fd)
			if (err != nil) != c.fails {
				t.Fatal(err)
			}
			if err != nil {
				return
			}
			if diff := cmp.Diff(c.want, w.Chips[0].LongestGaps); diff != "" || w.Chips[0].GapsKept != c.kept {
				t.Errorf("kept %v\n%s", w.Chips[0].GapsKept, diff)
			}
		})
	}
}

// TestDamagedWork: what cannot be is refused, or said not to be readable.
func TestDamagedWork(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*image)
		want   func(*Work, error) bool
	}{
		"an older ledger": {
			func(x *image) { x.Header = uint32(eventsHeader) },
			func(w *Work, err error) bool { return w == nil && err == nil },
		},
		"too many chips": {
			func(x *image) { x.Work[secWork].Used = 1000 },
			func(w *Work, err error) bool { return err != nil },
		},
		"cut off": {
			func(x *image) { x.Work[secWork].Offset = 1 << 30 },
			func(w *Work, err error) bool { return err != nil },
		},
		"no clock": {
			func(x *image) { x.chip.TicksPerNS = math.NaN() },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Loss == WorkUnreadable },
		},
		"more time than there is": {
			func(x *image) { x.chip.Busy = math.MaxUint64 },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Busy > 0 },
		},
		"a name that is too long": {
			func(x *image) { x.name.Length = 5000 },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Ops[0].Name == "" },
		},
		"always being changed": {
			func(x *image) { x.chip.Sequence = 7 },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Moving && w.Chips[0].Programs == 7 },
		},
	} {
		t.Run(name, func(t *testing.T) {
			fd := memoryFile(t, workImage(c.change))
			defer unix.Close(fd)
			if w, err := new(WorkReader).Read(fd); !c.want(w, err) {
				t.Errorf("%+v, %v", w, err)
			}
		})
	}
}

func FuzzWork(f *testing.F) {
	f.Add(workImage(nil))
	f.Add(withGaps(nil))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 1<<20 {
			return
		}
		fd := memoryFile(t, b)
		defer unix.Close(fd)
		w, err := new(WorkReader).Read(fd)
		if err != nil || w == nil {
			return
		}
		for i := range w.Chips {
			c := &w.Chips[i]
			if c.Busy < 0 || c.Gap < 0 || c.Longest < 0 || len(c.Ops) > chipOps || len(c.LongestGaps) > chipGaps {
				t.Errorf("%+v", c)
			}
		}
	})
}
