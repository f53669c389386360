package server

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/past/journal"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
)

// minutes feeds so many seconds of a host, and fires an alert at some of them.
func minutes(t *testing.T, j *journal.Journal, k *alertRecordings, from, to int, alerts map[int]string) {
	t.Helper()
	for s := from; s < to; s += 2 {
		if name := alerts[s]; name != "" {
			k.fire(name)
		}
		snap := tuitest.Host(2, s)
		if err := j.Snapshot(snap.Time, wire.Append(nil, snap)); err != nil {
			t.Fatal(err)
		}
		k.follow(j, snap)
	}
}

func openJournal(t *testing.T) *journal.Journal {
	t.Helper()
	j, err := journal.Open(journal.Options{Dir: t.TempDir(), Keep: 24 * time.Hour, MaxBytes: 1 << 30})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	return j
}

func kept(t *testing.T, dir string) []string {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(dir, keepDir, "*"))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// When an alert fires, the ten minutes before it and the one after are kept.
func TestWhatLedToAnAlertIsKept(t *testing.T) {
	cfg := Default(DefaultPaths())
	if newAlertRecordings(cfg, slog.Default()) != nil {
		t.Error("something is kept though it is not configured")
	}
	cfg.StateDir, cfg.Alerts.Record.Duration, cfg.Alerts.RecordMB = t.TempDir(), 10*time.Minute, 16
	j, k := openJournal(t), newAlertRecordings(cfg, slog.New(slog.DiscardHandler))
	minutes(t, j, k, 0, 3000, map[int]string{1500: "Chip/../Hung", 1530: "TooHot"})
	list := kept(t, cfg.StateDir)
	if len(list) != 1 || filepath.Base(list[0]) != "20261115T122500.000Z-Chip____Hung.ttrec" {
		t.Fatalf("kept: %v", list)
	}
	if k.copy != nil {
		t.Error("it is still written to")
	}
	r, err := recording.Open(list[0])
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	first, last, _ := r.Span()
	if before := tuitest.Start.Add(1500 * time.Second).Sub(first); before < 10*time.Minute || before > 12*time.Minute {
		t.Errorf("it begins %v before the alert", before)
	}
	// The second alert made it go on.
	if after := last.Sub(tuitest.Start.Add(1530 * time.Second)); after < time.Minute || after > 90*time.Second {
		t.Errorf("it ends %v after the last alert", after)
	}
	c, err := r.Seek(tuitest.Start.Add(1400 * time.Second))
	if err != nil {
		t.Fatal(err)
	}
	s, err := c.Snapshot()
	if err != nil || !s.Time.Equal(tuitest.Start.Add(1400*time.Second)) || len(s.Devices) != 2 {
		t.Errorf("a snapshot in it: %+v, %v", s, err)
	}
}

// However many alerts fire, the recordings stay within their share of the disk.
func TestKeptRecordingsAreBounded(t *testing.T) {
	cfg := Default(DefaultPaths())
	cfg.StateDir, cfg.Alerts.Record.Duration, cfg.Alerts.RecordMB = t.TempDir(), time.Minute, 16
	j, k := openJournal(t), newAlertRecordings(cfg, slog.New(slog.DiscardHandler))
	minutes(t, j, k, 0, 200, nil)
	dir := filepath.Join(cfg.StateDir, keepDir)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"20200101T000000.000Z-old.ttrec", "20210101T000000.000Z-newer.ttrec"} {
		f, err := os.Create(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Truncate(7 << 20); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	minutes(t, j, k, 200, 400, map[int]string{210: "A"})
	list := kept(t, cfg.StateDir)
	if len(list) != 2 || filepath.Base(list[0]) != "20210101T000000.000Z-newer.ttrec" {
		t.Errorf("kept: %v", list)
	}
}
