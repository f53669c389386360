package keep

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/base/shelf"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

var noon = time.Date(2026, 11, 16, 12, 0, 0, 0, time.UTC)

func failed(pid, uid int, at time.Time) *failure.Record {
	l := blocks.NewList(blocks.Geometry{Pool: model.L1, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: 4032})
	r := &failure.Record{
		Schema: failure.Schema, Kind: failure.NoRoom, Time: at, First: at, Last: at, Count: 1, Source: "uprobe", Pool: "l1", State: l,
		Process: failure.Process{PID: pid, Start: 1, UID: uid}, Request: failure.Request{BankBytes: 128},
	}
	r.Judge()
	return r
}

func everybody(int) bool { return true }

func open(t *testing.T, dir string, l shelf.Limits) *Store {
	t.Helper()
	return Open(dir, l, slog.New(slog.DiscardHandler))
}

func TestSurvivesARestart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "failures")
	s := open(t, dir, DefaultLimits)
	if a := s.Add(failed(7, 1000, noon)); a != (Added{ID: "f1", New: true, Count: 1}) {
		t.Fatalf("%+v", a)
	}
	s = open(t, dir, DefaultLimits)
	r, ok := s.Get("f1")
	if !ok || r.Process.PID != 7 || r.Verdict.Cause != failure.Full {
		t.Fatalf("%+v, %v", r, ok)
	}
	if a := s.Add(failed(8, 1000, noon)); a.ID != "f2" {
		t.Errorf("the next one is %s", a.ID)
	}
	for _, path := range []string{dir, filepath.Join(dir, "f1.json.gz")} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s: %v, %v", path, st.Mode(), err)
		}
	}
}

func TestRepetitionsAreOne(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, DefaultLimits)
	s.Add(failed(7, 1000, noon))
	for i := range 999 {
		if a := s.Add(failed(7, 1000, noon.Add(time.Duration(i)*time.Millisecond))); a != (Added{ID: "f1", Count: 1}) {
			t.Fatal("a record of its own")
		}
	}
	s.Flush()
	for _, s := range []*Store{s, open(t, dir, DefaultLimits)} {
		list := s.List(everybody)
		if len(list) != 1 || list[0].Count != 1000 {
			t.Errorf("%+v", list)
		}
	}
	if !s.Add(failed(7, 1000, noon.Add(time.Hour))).New {
		t.Error("an hour later it is the same")
	}
}

// TestTwoSources: what the probes and libttmon saw is one failure, and the one
// that knows the lines is kept.
func TestTwoSources(t *testing.T) {
	for _, first := range []string{"uprobe", "track"} {
		t.Run(first, func(t *testing.T) {
			s := open(t, t.TempDir(), DefaultLimits)
			outside, inside := failed(7, 1000, noon), failed(7, 1000, noon.Add(time.Millisecond))
			inside.Source, inside.Stack = "track", []ledgerfile.Frame{{File: "a.py", Line: 3}}
			list := []*failure.Record{outside, inside}
			if first == "track" {
				list[0], list[1] = list[1], list[0]
			}
			for i, r := range list {
				if n := s.Add(r).Count; n != uint64(1-i) {
					t.Errorf("source %d counts %d", i, n)
				}
			}
			all := s.List(everybody)
			if len(all) != 1 || all[0].Count != 1 {
				t.Fatalf("%+v", all)
			}
			if r, ok := s.Get(all[0].ID); !ok || len(r.Stack) != 1 {
				t.Errorf("%+v, %v", r, ok)
			}
		})
	}
}

func TestBounds(t *testing.T) {
	dir := t.TempDir()
	limits := DefaultLimits
	limits.OfUser, limits.All = 3, 5
	s := open(t, dir, limits)
	for i := range 10 {
		s.Add(failed(100+i, 1000, noon.Add(time.Duration(i)*time.Second)))
	}
	s.Add(failed(7, 0, noon))
	list := s.List(everybody)
	if len(list) != 4 {
		t.Errorf("%d are kept", len(list))
	}
	if own := s.List(func(uid int) bool { return uid == 1000 }); len(own) != 3 || own[0].Process.PID != 109 {
		t.Errorf("of one user: %+v", own)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 4 {
		t.Errorf("%d files, %v", len(files), err)
	}
	for uid := range 4 {
		s.Add(failed(200+uid, 2000+uid, noon))
	}
	if n := len(s.List(everybody)); n != 5 {
		t.Errorf("%d are kept in all", n)
	}
}

func TestDamagedFiles(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"f1.json.gz": "no gzip", "f2.json.gz": "", "notes.txt": "mine"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := open(t, dir, DefaultLimits)
	if list := s.List(everybody); len(list) != 0 {
		t.Errorf("%+v", list)
	}
	if a := s.Add(failed(7, 0, noon)); a.ID != "f3" {
		t.Errorf("the next one is %s", a.ID)
	}
	if _, err := os.Stat(filepath.Join(dir, "notes.txt")); err != nil {
		t.Error(err)
	}
}

// TestDiskRefuses: where nothing can be written, records are kept in memory.
func TestDiskRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, filepath.Join(file, "failures"), DefaultLimits)
	a := s.Add(failed(7, 0, noon))
	if r, ok := s.Get(a.ID); !ok || r.Process.PID != 7 {
		t.Errorf("%+v, %v", r, ok)
	}
}

// TestChange: a record that is changed is so in lists, on disk, and for who reads it.
func TestChange(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir, DefaultLimits)
	s.Add(failed(7, 1000, noon))
	device := 3
	if r := s.Change("f1", func(r *failure.Record) { r.Chips = []failure.Chip{{ID: 5, Device: &device}} }); r == nil || !r.ChipsResolved() {
		t.Fatalf("%+v", r)
	}
	for _, s := range []*Store{s, open(t, dir, DefaultLimits)} {
		if list := s.List(everybody); len(list) != 1 || len(list[0].Chips) != 1 || *list[0].Chips[0].Device != 3 {
			t.Errorf("%+v", list)
		}
	}
	if s.Change("f2", func(*failure.Record) { t.Error("it is changed") }) != nil {
		t.Error("there is none")
	}
}
