package ledgerfile

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// reportVar makes this test binary a program that reports: a process cannot
// read its own ledger.
const reportVar = "TTMON_TEST_REPORT"

func ExampleReporter() {
	r, err := NewReporter("", 1000)
	if err != nil {
		return // no room, or no permission: reporting must never stop a program
	}
	defer r.Close()
	dram, err := r.List(Geometry{Chip: 4476187513037, Pool: DRAM, Banks: 8, Capacity: 1 << 30})
	if err != nil {
		return
	}
	_ = dram.Allocated(0, 64<<20, "weights")
	_ = dram.Freed(0)
}

func TestReporter(t *testing.T) {
	if dir := os.Getenv(reportVar); dir != "" {
		report(t, dir)
		return
	}
	dir := t.TempDir()
	cmd := exec.Command(os.Args[0], "-test.run=^TestReporter$")
	cmd.Env = append(os.Environ(), reportVar+"="+dir, "TTMON_RUN=1.1.1")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	list, err := os.ReadDir(dir)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d files, %v", len(list), err)
	}
	l, err := ReadFile(dir + "/" + list[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	if l.Flags&Ended == 0 || l.Flags&Full == 0 || l.Lost != 1 || l.Chips[0].ID != 77 || l.Moving || l.Cut {
		t.Errorf("ledger: flags %b, lost %d, chips %+v", l.Flags, l.Lost, l.Chips)
	}
	x := l.Lists[1]
	if x.Live != (Sum{200, 2}) || x.Peak != (Sum{450, 3}) || x.Total != (Sum{651, 6}) || x.Banks != 8 || x.Pool != L1 {
		t.Errorf("list: %+v", x)
	}
	held := map[string]Sum{}
	for _, s := range l.Sites {
		if s.List == 1 {
			held[s.Tag] = s.Peak
		}
	}
	if held["a"] != (Sum{100, 1}) || held["b"] != (Sum{350, 2}) {
		t.Errorf("at the peak: %+v", held)
	}
	if len(l.Blocks) != 2 {
		t.Errorf("blocks: %+v", l.Blocks)
	}
}

func report(t *testing.T, dir string) {
	r, err := NewReporter(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	l, err := r.List(Geometry{Chip: 77, Pool: L1, Banks: 8, Capacity: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i, step := range []error{
		l.Allocated(0, 100, "a"), l.Allocated(1000, 300, "b"), l.Allocated(2000, 50, "b"),
		l.Freed(1000), l.Allocated(3000, 100, "a"), l.Freed(2000), l.Allocated(4000, 100, "a"), l.Freed(0),
	} {
		if step != nil {
			t.Errorf("step %d: %v", i, step)
		}
	}
	if err := l.Freed(5000); err == nil {
		t.Error("a block that is not there was freed")
	}
	if err := l.Allocated(6000, 1, ""); err != nil {
		t.Error(err)
	}
	if err := l.Allocated(7000, 1, ""); !errors.Is(err, ErrFull) {
		t.Errorf("beyond its room: %v", err)
	}
	if err := l.Freed(6000); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

// A tag that is cut off takes its room once, however often it is used.
func TestLongTag(t *testing.T) {
	r, err := NewReporter(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	l, err := r.List(Geometry{Chip: 77, Pool: L1, Banks: 8, Capacity: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 2 * reporterText / 255 {
		if err := l.Allocated(0, 64, strings.Repeat("long ", 100)); err != nil {
			t.Fatalf("use %d: %v", i, err)
		}
		if err := l.Freed(0); err != nil {
			t.Fatal(err)
		}
	}
}
