package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/journal"
	"github.com/ttmon/ttmon/internal/past/runs/keep"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// running is a host on which a program runs for ten seconds, every half a minute.
func running(second int) *model.Snapshot {
	s := tuitest.Host(2, second)
	s.Processes = nil
	if second%30 < 10 {
		p := sample.Serve(100+second/30, sample.Use(&s.Devices[0], uint64(second%30+1)<<20, 0))
		p.StartTicks, p.StartTime = uint64(p.PID), tuitest.Start.Add(time.Duration(second/30*30)*time.Second)
		s.Processes = []model.Process{p}
	}
	return s
}

// The runs on the disk are an index of the journal: what they lack after a crash is
// read from it, and so is all of it where they were deleted.
func TestRunsFromTheJournal(t *testing.T) {
	state := t.TempDir()
	dir := filepath.Join(state, "runs")
	j, err := journal.Open(journal.Options{Dir: filepath.Join(state, "journal"), Keep: 24 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	a := &archive{logOpen: make(chan struct{}), journal: j}
	close(a.logOpen)
	start := func() *Server {
		s := &Server{log: slog.New(slog.DiscardHandler), archive: a, runs: keep.New(keep.Options{Dir: dir})}
		s.runs.Restore()
		s.catchUpRuns(t.Context())
		return s
	}
	find := func(s *Server) []runs.Run {
		list, _, err := s.runs.Find(runs.Query{})
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	see := func(s *Server, from, to int) {
		for second := from; second < to; second++ {
			snap := running(second)
			if err := j.Snapshot(snap.Time, wire.Append(nil, snap)); err != nil {
				t.Fatal(err)
			}
			if s != nil {
				s.runs.Observe(snap)
			}
		}
	}
	first := start()
	see(first, 0, 95) // the last of four runs has not ended
	want := find(first)
	if len(want) != 4 || want[0].Pools["dram"].Peak != 10<<20 || want[3].End.Kind != runs.Running {
		t.Fatalf("%d runs: %+v", len(want), want)
	}
	for name, lose := range map[string]func() error{
		"nothing is lost":      func() error { return nil },
		"the last half minute": func() error { return os.Remove(filepath.Join(dir, "live.json")) },
		"all":                  func() error { return os.RemoveAll(dir) },
	} {
		t.Run(name, func(t *testing.T) {
			first.runs.Close()
			if err := lose(); err != nil {
				t.Fatal(err)
			}
			first = start()
			if diff := cmp.Diff(want, find(first)); diff != "" {
				t.Errorf("runs are another after a restart (-before +after):\n%s", diff)
			}
		})
	}
	see(nil, 95, 110) // while no server ran
	if last := find(start()); len(last) != 4 || last[3].End.Kind == runs.Running {
		t.Errorf("%d runs, the last %+v", len(last), last[len(last)-1].End)
	}
}
