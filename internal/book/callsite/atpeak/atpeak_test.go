package atpeak

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

func sum(bytes uint64) ledgerfile.Sum { return ledgerfile.Sum{Bytes: bytes, Blocks: min(bytes, 1)} }

// site is a tagged site of a list. Ledgers made by hand have no stacks; those of
// libttmon are read in the end-to-end tests.
func site(list int, tag string, peak, live uint64) ledgerfile.Site {
	return ledgerfile.Site{List: list, Tag: tag, Peak: sum(peak), Live: sum(live), Total: ledgerfile.Sum{Bytes: peak, Blocks: 2}}
}

func line(pool, tag string, peak, held, allocs uint64) PeakLine {
	return PeakLine{Line: Line{Pool: pool, Tag: tag}, AtPeak: peak, Held: held, Allocs: allocs}
}

func TestOf(t *testing.T) {
	list := func(pool ledgerfile.Pool, banks uint32, peak uint64, chips ...int) ledgerfile.List {
		return ledgerfile.List{State: ledgerfile.Open, Pool: pool, Banks: banks, Peak: sum(peak), Chips: chips}
	}
	tests := []struct {
		name   string
		ledger ledgerfile.Ledger
		want   []PeakLine
		ok     bool
	}{
		{"banks and chips", ledgerfile.Ledger{
			Lists: []ledgerfile.List{{}, list(ledgerfile.DRAM, 8, 30, 0, 1)},
			Sites: []ledgerfile.Site{{}, site(1, "weights", 20, 20), site(1, "cache", 10, 0)},
		}, []PeakLine{line("dram", "weights", 320, 320, 2), line("dram", "cache", 160, 0, 2)}, true},
		{"a device that was opened again counts at its highest peak", ledgerfile.Ledger{
			Lists: []ledgerfile.List{{}, list(ledgerfile.DRAM, 1, 30, 0), list(ledgerfile.DRAM, 1, 50, 0)},
			Sites: []ledgerfile.Site{{}, site(1, "weights", 30, 0), site(2, "weights", 50, 0)},
		}, []PeakLine{line("dram", "weights", 50, 0, 4)}, true},
		{"two devices count both", ledgerfile.Ledger{
			Lists: []ledgerfile.List{{}, list(ledgerfile.L1, 1, 30, 0), list(ledgerfile.L1, 1, 50, 1)},
			Sites: []ledgerfile.Site{{}, site(1, "act", 30, 0), site(2, "act", 50, 0)},
		}, []PeakLine{line("l1", "act", 80, 0, 4)}, true},
		{"chips that are not known", ledgerfile.Ledger{
			Lists: []ledgerfile.List{{}, list(ledgerfile.DRAM, 0, 30)},
			Sites: []ledgerfile.Site{{}, site(1, "x", 30, 0)},
		}, []PeakLine{line("dram", "x", 30, 0, 2)}, true},
		{"no line is named", ledgerfile.Ledger{
			Lists: []ledgerfile.List{{}, list(ledgerfile.DRAM, 1, 30, 0)},
			Sites: []ledgerfile.Site{{}, site(1, "", 30, 0)},
		}, []PeakLine{line("dram", "", 30, 0, 2)}, false},
		{"a ledger that lies", ledgerfile.Ledger{
			Lists: []ledgerfile.List{{}, list(ledgerfile.DRAM, 1<<31, 1<<63, 0, 1)},
			Sites: []ledgerfile.Site{{}, site(1, strings.Repeat("x", 1000), 1<<63, 1<<63), site(99, "y", 1, 1)},
		}, []PeakLine{line("dram", strings.Repeat("x", maxName), 0, 0, 2)}, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := Of(&tt.ledger)
			if diff := cmp.Diff(tt.want, got.Lines); diff != "" || ok != tt.ok || got.Cut {
				t.Errorf("%v, cut %v: %s", ok, got.Cut, diff)
			}
		})
	}
}

// TestOfMany: of more lines than are kept the largest are, and the rest is known to
// be missing.
func TestOfMany(t *testing.T) {
	l := &ledgerfile.Ledger{Lists: []ledgerfile.List{{}, {State: ledgerfile.Open, Pool: ledgerfile.DRAM, Banks: 1, Chips: []int{0}}}, Sites: []ledgerfile.Site{{}}}
	for i := range 2 * maxLines {
		l.Sites = append(l.Sites, site(1, fmt.Sprint("t", i), uint64(i+1), 0))
	}
	got, ok := Of(l)
	if !ok || !got.Cut || len(got.Lines) != maxLines || got.Lines[0].AtPeak != 2*maxLines || got.Lines[maxLines-1].AtPeak != maxLines+1 {
		t.Errorf("%d lines, cut %v: %+v", len(got.Lines), got.Cut, got.Lines[:1])
	}
}

// run lets a store write all that waits.
func run(s *Store) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	s.Run(ctx)
}

func ledgerOf(tag string) *ledgerfile.Ledger {
	return &ledgerfile.Ledger{
		Lists: []ledgerfile.List{{}, {State: ledgerfile.Open, Pool: ledgerfile.DRAM, Banks: 1, Chips: []int{0}, Peak: sum(7)}},
		Sites: []ledgerfile.Site{{}, site(1, tag, 7, 0)},
	}
}

func TestStore(t *testing.T) {
	dir := t.TempDir() + "/lines"
	limits := DefaultLimits
	limits.OfUser, limits.All = 3, 5
	s := Open(dir, limits, slog.New(slog.DiscardHandler))
	began := time.Now().Add(-time.Hour)
	for pid := 1; pid <= 10; pid++ {
		s.Exited(model.ProcessID{PID: pid, StartTicks: 5}, 1000, ledgerOf(fmt.Sprint("a", pid)))
	}
	s.Exited(model.ProcessID{PID: 77, StartTicks: 5}, 1001, ledgerOf("b"))
	s.Exited(model.ProcessID{}, 1001, ledgerOf("no process"))
	run(s)
	for name, s := range map[string]*Store{"as it was": s, "after a restart": Open(dir, DefaultLimits, slog.New(slog.DiscardHandler))} {
		t.Run(name, func(t *testing.T) {
			kept := map[int]string{}
			for _, pid := range []int{1, 7, 8, 9, 10, 77} {
				if got, uid, ok := s.Find(model.ProcessID{PID: pid, StartTicks: 5}, began); ok {
					kept[pid] = fmt.Sprint(uid, got.Lines[0].Tag)
				}
			}
			if diff := cmp.Diff(map[int]string{8: "1000a8", 9: "1000a9", 10: "1000a10", 77: "1001b"}, kept); diff != "" {
				t.Error(diff)
			}
			if _, _, ok := s.Find(model.ProcessID{PID: 77, StartTicks: 6}, began); ok {
				t.Error("another process with the same pid is found")
			}
			if _, _, ok := s.Find(model.ProcessID{PID: 77, StartTicks: 5}, time.Now().Add(time.Hour)); ok {
				t.Error("a process of an earlier boot is found")
			}
		})
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 4 {
		t.Errorf("%d files, %v", len(files), err)
	}
}

// TestStoreBytes: names as long as they may be take no more than their share.
func TestStoreBytes(t *testing.T) {
	dir := t.TempDir()
	limits := DefaultLimits
	limits.OfUserBytes = 3 * maxEncoded
	s := Open(dir, limits, slog.New(slog.DiscardHandler))
	lines := ProcessLines{Schema: Schema}
	for i := range 4 * maxLines {
		lines.Lines = append(lines.Lines, PeakLine{Line: Line{Pool: fmt.Sprint(i % 4), File: strings.Repeat("f", maxFile), Tag: fmt.Sprint(i) + strings.Repeat("t", maxName)}})
	}
	for pid := 1; pid < 20; pid++ {
		s.add(exited{newItem(time.Now().UnixMilli(), 1, model.ProcessID{PID: pid}), lines})
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) < 2 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	var size int64
	for _, f := range files {
		info, err := f.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
	}
	if size > 3*maxEncoded {
		t.Errorf("%d bytes", size)
	}
	if got, _, ok := s.Find(model.ProcessID{PID: 19}, time.Time{}); !ok || !got.Cut || len(got.Lines) == 0 {
		t.Errorf("%v, cut %v, %d lines", ok, got.Cut, len(got.Lines))
	}
}
