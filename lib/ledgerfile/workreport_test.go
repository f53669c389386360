package ledgerfile

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// What a Reporter says of programs is what a reader reads.
func TestReportedWork(t *testing.T) {
	r, err := NewReporter(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	w, err := r.Work(2)
	if err != nil {
		t.Fatal(err)
	}
	first, err := w.Chip(3)
	if err != nil {
		t.Fatal(err)
	}
	began := Now() - 10*time.Second
	at := began
	run := func(name string, pause, took time.Duration) ReportedProgram {
		p := ReportedProgram{name, at + pause, at + pause + took}
		at = p.End
		return p
	}
	first.Report([]ReportedProgram{
		run("matmul", 0, 3*time.Millisecond), run("softmax", time.Millisecond, 2*time.Millisecond),
		run("matmul", 2*time.Second, 5*time.Millisecond),
		{"matmul", at, at - 1},
		{"softmax", at - time.Millisecond, at + time.Millisecond}, // a part of it at the same time
	})
	w.Enqueued(4, "softmax")
	w.Wait(WaitEvent)
	got := readWork(t, r.Path())
	if len(got.Chips) != 1 {
		t.Fatalf("%d chips", len(got.Chips))
	}
	c := got.Chips[0]
	ended := func(n int) time.Time { return c.LongestGaps[2-n].End }
	if d := ended(2).Sub(ended(1)); len(c.LongestGaps) != 2 || d != 2*time.Second+2*time.Millisecond {
		t.Fatalf("gaps %v apart: %+v", d, c.LongestGaps)
	}
	want := ChipWork{
		Logical: 3, State: WorkOn, Loss: WorkLossless, Programs: 4, Busy: 11 * time.Millisecond, Gaps: 1, Gap: time.Millisecond,
		LongestGap: 2 * time.Second, Longest: 5 * time.Millisecond, LongestName: "matmul", LastName: "softmax", Refused: 1,
		Since: c.Since, LastRecord: c.LastRecord, Mark: c.Mark, GapsKept: true,
		LongestGaps: []Gap{{2 * time.Second, ended(2), "softmax"}, {time.Millisecond, ended(1), "matmul"}},
		Ops:         []Op{{"matmul", 2, 8 * time.Millisecond, 5 * time.Millisecond}, {"softmax", 2, 4 * time.Millisecond, 2 * time.Millisecond}},
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if h := got.Host; h.Enqueued != 4 || h.LastName != "softmax" || len(h.Waiting) != 1 || h.Waiting[0].Kind != WaitEvent || !h.LastFinish.IsZero() {
		t.Errorf("host %+v", h)
	}
	w.Finished()
	if h := readWork(t, r.Path()).Host; len(h.Waiting) != 0 || h.LastFinish.Before(h.LastEnqueue) {
		t.Errorf("host %+v", h)
	}
}

// More operations, names and chips than there is room for cost nothing but
// their names.
func TestReportedWorkIsBounded(t *testing.T) {
	r, err := NewReporter(t.TempDir(), 1)
	if err != nil {
		t.Fatal(err)
	}
	w, err := r.Work(1)
	if err != nil {
		t.Fatal(err)
	}
	c, err := w.Chip(0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Chip(1); err == nil {
		t.Error("a second chip found room")
	}
	for i := range 2000 {
		c.Report([]ReportedProgram{{fmt.Sprint("op", i), time.Duration(i) * time.Second, time.Duration(i)*time.Second + 1000}})
	}
	got := readWork(t, r.Path()).Chips[0]
	var calls uint64
	for _, o := range got.Ops {
		calls += o.Calls
	}
	if len(got.LongestGaps) != chipGaps || got.LongestGaps[0].Length != time.Second-1000 {
		t.Errorf("gaps %+v", got.LongestGaps)
	}
	if len(got.Ops) != chipOps || calls != 2000 || got.Programs != 2000 || got.Busy != 2000*1000 {
		t.Errorf("%d operations, %d calls, %d programs, busy %v", len(got.Ops), calls, got.Programs, got.Busy)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
	c.Report([]ReportedProgram{{"late", 0, 1}}) // touches nothing that is gone
	w.Finished()
}

func readWork(t *testing.T, path string) *Work {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var r WorkReader
	w, err := r.Read(int(f.Fd()))
	if err != nil || w == nil {
		t.Fatal(w, err)
	}
	return w
}
