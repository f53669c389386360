package ledgerfile

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
)

// workImage is a ledger with one chip's programs, written by hand.
func workImage(change func(header, chip, op, name []byte)) []byte {
	const work, ops, names = 4096, 8192, 32768
	b := make([]byte, names+2*nameSize)
	copy(b, magic)
	le.PutUint32(b[offVersion:], Version)
	le.PutUint32(b[offHeader:], workHeader)
	le.PutUint64(b[offReal:], 1_700_000_000_000_000_000)
	le.PutUint64(b[offMonotonic:], 1000)
	for i, s := range [workSections][3]uint64{{work, workSize, 1}, {ops, opSize, chipOps}, {names, nameSize, 2}} {
		x := b[offWorkSections+i*sectionSize:]
		le.PutUint64(x, s[0])
		le.PutUint32(x[8:], uint32(s[1]))
		le.PutUint32(x[16:], uint32(s[2]))
	}
	chip, op, name := b[work:], b[ops:], b[names+nameSize:]
	le.PutUint32(chip[workLogical:], 3)
	chip[workState] = byte(WorkOn)
	le.PutUint64(chip[workTicks:], math.Float64bits(1.35))
	le.PutUint64(chip[workPrograms:], 7)
	le.PutUint64(chip[workBusy:], 1350)
	le.PutUint32(chip[workLastName:], 1)
	le.PutUint64(chip[workLastRecord:], 2000)
	le.PutUint64(op[opCalls:], 7)
	le.PutUint64(op[opTicks:], 1350)
	le.PutUint64(op[opLongest:], 270)
	le.PutUint32(op[opName:], 1)
	le.PutUint32(name, 6)
	copy(name[nameText:], "matmul")
	h := b[offHost:]
	le.PutUint64(h[hostEnqueued:], 8)
	le.PutUint64(h[hostWait:], 1500)
	le.PutUint32(h[hostWait+8:], uint32(WaitFinish))
	if change != nil {
		change(b, chip, op, name)
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
		fd := memoryFile(t, workImage(func(h, _, _, _ []byte) {
			le.PutUint32(h[offWorkSections+16:], 0)
			le.PutUint32(h[offWorkSections+sectionSize+16:], 0)
			le.PutUint64(h[offHost+hostEnqueued:], enqueued)
			le.PutUint64(h[offHost+hostWait:], enqueued)
		}))
		defer unix.Close(fd)
		got, err := new(WorkReader).Read(fd)
		if err != nil || (got != nil) != (enqueued > 0) || got != nil && (got.Host.Enqueued != 8 || len(got.Host.Waiting) != 1 || len(got.Chips) != 0) {
			t.Errorf("%d enqueued: %+v, %v", enqueued, got, err)
		}
	}
}

// withGaps adds the longest gaps of the chip to a ledger.
func withGaps(change func(header, gaps []byte)) []byte {
	b := workImage(func(h, chip, _, _ []byte) {
		le.PutUint32(h[offHeader:], gapsHeader)
		le.PutUint64(chip[workLongestGap:], 13500)
		x := h[offGaps:]
		le.PutUint64(x, uint64(len(h)))
		le.PutUint32(x[8:], gapSize)
		le.PutUint32(x[16:], chipGaps)
	})
	gaps := make([]byte, chipGaps*gapSize)
	for i, g := range [][3]uint64{{1350, 1700, 0}, {13500, 1900, 1}} {
		x := gaps[i*gapSize:]
		le.PutUint64(x[gapTicks:], g[0])
		le.PutUint64(x[gapEnd:], g[1])
		le.PutUint32(x[gapAfter:], uint32(g[2]))
	}
	if change != nil {
		change(b, gaps)
	}
	return append(b, gaps...)
}

// TestGaps: gaps are listed by their length; what cannot be one is left out, and
// a ledger that has no room for them says so.
func TestGaps(t *testing.T) {
	at := func(ns int64) time.Time { return time.Unix(0, 1_700_000_000_000_000_000+ns-1000) }
	long, short := Gap{10000, at(1900), "matmul"}, Gap{1000, at(1700), ""}
	for name, c := range map[string]struct {
		change func(header, gaps []byte)
		want   []Gap
		kept   bool
		fails  bool
	}{
		"two":                   {nil, []Gap{long, short}, true, false},
		"an older ledger":       {func(h, _ []byte) { le.PutUint32(h[offHeader:], failuresHeader) }, nil, false, false},
		"longer than the limit": {func(_, g []byte) { le.PutUint64(g[gapTicks:], 13501) }, []Gap{long}, true, false},
		"ended after the end":   {func(_, g []byte) { le.PutUint64(g[gapEnd:], 2001) }, []Gap{long}, true, false},
		"room for none":         {func(h, _ []byte) { le.PutUint32(h[offGaps+16:], 0) }, nil, false, true},
		"cut off":               {func(h, _ []byte) { le.PutUint64(h[offGaps:], 1<<30) }, nil, false, true},
		"another size":          {func(h, _ []byte) { le.PutUint32(h[offGaps+8:], 25) }, nil, false, true},
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
		change func(header, chip, op, name []byte)
		want   func(*Work, error) bool
	}{
		"an older ledger": {
			func(h, _, _, _ []byte) { le.PutUint32(h[offHeader:], fullHeader) },
			func(w *Work, err error) bool { return w == nil && err == nil },
		},
		"too many chips": {
			func(h, _, _, _ []byte) { le.PutUint32(h[offWorkSections+16:], 1000) },
			func(w *Work, err error) bool { return err != nil },
		},
		"cut off": {
			func(h, _, _, _ []byte) { le.PutUint64(h[offWorkSections:], 1<<30) },
			func(w *Work, err error) bool { return err != nil },
		},
		"no clock": {
			func(_, chip, _, _ []byte) { le.PutUint64(chip[workTicks:], math.Float64bits(math.NaN())) },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Loss == WorkUnreadable },
		},
		"more time than there is": {
			func(_, chip, _, _ []byte) { le.PutUint64(chip[workBusy:], math.MaxUint64) },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Busy > 0 },
		},
		"a name that is too long": {
			func(_, _, _, name []byte) { le.PutUint32(name, 5000) },
			func(w *Work, err error) bool { return err == nil && w.Chips[0].Ops[0].Name == "" },
		},
		"always being changed": {
			func(_, chip, _, _ []byte) { le.PutUint32(chip[workSequence:], 7) },
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
