package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/past/history/held"
	"github.com/ttmon/ttmon/internal/past/journal"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// archive keeps what the recorder sees: snapshots and events in the journal,
// numbers in the database. It waits for the disk; the page and the API do not wait
// for it.
type archive struct {
	cfg      Config
	log      *slog.Logger
	recorder *recorder
	// ready is closed when there is a history to ask, logOpen when there is a
	// journal.
	ready, logOpen chan struct{}

	mu            sync.Mutex
	journal       *journal.Journal
	store         *disk.Store
	journalFailed error      // why the journal is in memory only
	numbers       loopStatus // of the loop that keeps numbers; before that, of opening
	writing       loopStatus // of writing the journal
	failed        error      // why there is no history
	diskFailed    error      // why figures are not written to the disk

	// recordings are made of alerts; nil: none are.
	recordings *alertRecordings

	lastRow time.Time // what one loop alone uses
}

// loopStatus is what a loop of the archive is doing.
type loopStatus struct {
	doing string    // "": nothing
	since time.Time // since when
	took  time.Duration
}

func newArchive(cfg Config, log *slog.Logger, r *recorder) *archive {
	return &archive{cfg: cfg, log: log, recorder: r, ready: make(chan struct{}), logOpen: make(chan struct{}), recordings: newAlertRecordings(cfg, log)}
}

// run opens the history, once no other process has it open, and fills it.
func (a *archive) run(ctx context.Context, feed *api.Feed) error {
	a.startTask(&a.numbers, "waiting for another ttmon-server to leave it takes")
	_ = os.MkdirAll(a.cfg.StateDir, 0o755) // what is below it is the user's alone; one that cannot be made cannot be locked
	unlock, err := statedir.Wait(ctx, a.cfg.StateDir, "history.lock", func() {
		a.log.Warn("history is locked by another ttmon-server; waiting", "state_dir", a.cfg.StateDir)
	})
	if err != nil {
		return nil // ctx is done
	}
	defer unlock()
	defer a.close()
	a.startTask(&a.numbers, "opening the history takes")
	a.open()
	a.end(&a.numbers)
	var both sync.WaitGroup
	both.Go(func() { a.recorder.recorded.Follow(ctx, a.storeSamples) })
	both.Go(func() { feed.FollowEncoded(ctx, a.writeSnapshot) })
	both.Wait()
	return nil
}

// startTask notes what a loop of the archive is at work on.
func (a *archive) startTask(e *loopStatus, doing string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.doing, e.since = doing, time.Now()
}

func (a *archive) end(e *loopStatus) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e.doing, e.took = "", time.Since(e.since)
}

// check adds what the loop is at work on, or how long it was the last time.
func (e *loopStatus) check(h *api.Health, name string, now time.Time, limit time.Duration) {
	if e.doing == "" {
		h.AddSource(name, e.took, limit, "the last time it took")
		return
	}
	h.AddSource(name, max(now.Sub(e.since), 0), limit, e.doing)
}

// openTimeout is how long it may take until the history is open: that of a
// month is read, and a predecessor may be slow to release it. diskTimeout is how
// long a disk may take.
const (
	openTimeout = time.Minute
	diskTimeout = 20 * time.Second
)

// check adds to the health of the daemon how its memory is doing.
func (a *archive) check(h *api.Health, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.failed != nil {
		h.Warnings = append(h.Warnings, api.Problem{Part: "history", Reason: "there is none: " + a.failed.Error()})
	}
	if a.failed == nil && a.diskFailed != nil {
		h.Warnings = append(h.Warnings, api.Problem{Part: "history", Reason: "figures are not written to disk: " + a.diskFailed.Error()})
	}
	if a.journalFailed != nil {
		h.Warnings = append(h.Warnings, api.Problem{Part: "journal", Reason: "snapshots and events are kept in memory only: " + a.journalFailed.Error()})
	}
	limit := diskTimeout
	if a.store == nil {
		limit = openTimeout
	}
	a.numbers.check(h, "history", now, limit)
	a.writing.check(h, "journal", now, diskTimeout)
}

func (a *archive) open() {
	dir := a.cfg.StateDir
	j, err := journal.Open(journal.Options{
		Dir: filepath.Join(dir, "journal"), MemoryDir: filepath.Join(filepath.Dir(a.cfg.Socket), "journal-in-memory"),
		Keep: a.cfg.History.Snapshots.Duration, MaxBytes: int64(a.cfg.History.MaxMB) << 20 / 4, Changed: a.journalChanged,
	})
	if err != nil {
		a.journalChanged(err)
	}
	a.mu.Lock()
	a.journal = j
	a.mu.Unlock()
	close(a.logOpen)
	begun := time.Now()
	store, err := disk.Open(disk.Options{
		Dir: filepath.Join(dir, "history"), MemoryDir: filepath.Join(filepath.Dir(a.cfg.Socket), "history-in-memory"),
		FineFor: a.cfg.History.Fine.Duration, CoarseFor: a.cfg.History.Coarse.Duration,
		MaxBytes: int64(a.cfg.History.MaxMB) << 20 * 3 / 4, MaxSeries: a.cfg.History.MaxSeries, Log: a.log, Notify: a.notify, Changed: a.historyChanged,
	})
	if err != nil {
		a.mu.Lock()
		a.failed = err
		a.mu.Unlock()
		a.notify("cannot open history", "err", err)
		return
	}
	a.log.Info("history is open", "took", time.Since(begun).Round(time.Millisecond))
	a.mu.Lock()
	a.store = store
	a.mu.Unlock()
	close(a.ready)
}

func (a *archive) close() {
	a.recordings.close()
	a.mu.Lock()
	j, store := a.journal, a.store
	a.store = nil
	a.mu.Unlock()
	if store != nil {
		store.Close()
	}
	if j != nil {
		if err := j.Close(); err != nil {
			a.log.Warn("cannot write the journal", "err", err)
		}
	}
}

// journalChanged notes why the journal is in memory only; nil: it is on the disk.
func (a *archive) journalChanged(err error) {
	a.mu.Lock()
	a.journalFailed = err
	a.mu.Unlock()
	if err != nil {
		a.log.Warn("journal is in memory only; will retry", "err", err)
	} else {
		a.log.Info("journal is on disk again")
	}
}

// historyChanged notes why figures are not written to the disk; nil: they are. notify
// logs it.
func (a *archive) historyChanged(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.diskFailed = err
}

// notify logs a problem of the history itself, and adds it to the events.
func (a *archive) notify(message string, args ...any) {
	a.log.Warn(message, args...)
	text := message
	for i := 0; i+1 < len(args); i += 2 {
		if key := fmt.Sprint(args[i]); key == "err" {
			text += fmt.Sprintf(": %v", args[i+1])
		} else {
			text += fmt.Sprintf(", %s %v", strings.ReplaceAll(key, "_", " "), args[i+1])
		}
	}
	a.appendEvents(model.Event{Time: time.Now(), Kind: model.EventTTMond, Level: model.Warning, Text: text})
}

// appendEvents appends events to the journal. journalChanged is told where it cannot be
// written.
func (a *archive) appendEvents(list ...model.Event) {
	if j := a.opened(); j != nil {
		_ = j.Append(list...)
	}
}

// opened is the journal; nil until it is open.
func (a *archive) opened() *journal.Journal {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.journal
}

// eventLog is the journal for the API; nil until it is open.
func (a *archive) eventLog() past.EventLog {
	if j := a.opened(); j != nil {
		return j
	}
	return nil
}

// storeSamples takes the samples of the latest snapshot in.
func (a *archive) storeSamples(*model.Snapshot) {
	a.mu.Lock()
	store := a.store
	a.mu.Unlock()
	if store == nil {
		return
	}
	a.startTask(&a.numbers, "writing the figures of a snapshot takes")
	defer a.end(&a.numbers)
	fresh := false
	a.recorder.readLatest(func(at time.Time, walk func(prom.Emit)) {
		if fresh = !at.Equal(a.lastRow); fresh {
			a.lastRow = at
			store.AddSnapshot(walk)
		}
	})
	if fresh {
		store.Append(a.lastRow)
	}
}

// writeEvents writes events that happened on the host. It waits for the disk.
func (a *archive) writeEvents(list []model.Event) {
	a.startTask(&a.writing, "writing events takes")
	defer a.end(&a.writing)
	a.appendEvents(list...)
}

// writeSnapshot writes a snapshot into the journal. It waits for the disk.
func (a *archive) writeSnapshot(s *model.Snapshot, body []byte) {
	j := a.opened()
	if j == nil {
		return
	}
	a.startTask(&a.writing, "writing the journal takes")
	defer a.end(&a.writing)
	_ = j.Snapshot(s.Time, body) // journalChanged is told
	a.recordings.follow(j, s)
}

// at is a snapshot of the past.
func (a *archive) at(t time.Time) (time.Time, []byte, error) {
	if j := a.opened(); j != nil {
		return j.At(t)
	}
	return t, nil, errNotOpen
}

// held is what a process held over time.
func (a *archive) held(ctx context.Context, pid int, ticks uint64, from, to time.Time, n int) (list []held.Point, since time.Time, step time.Duration) {
	if j := a.opened(); j != nil {
		return j.Held(ctx, pid, ticks, from, to, n)
	}
	return nil, since, 0
}

var errNotOpen = errors.New("the history is being opened; try again")

// Querier implements storage.Queryable.
func (a *archive) Querier(mint, maxt int64) (storage.Querier, error) {
	a.mu.Lock()
	s := a.store
	a.mu.Unlock()
	if s == nil {
		return nil, errNotOpen
	}
	return s.Querier(mint, maxt)
}

// stats is empty until the history is open.
func (a *archive) stats() (st disk.Stats) {
	a.mu.Lock()
	s := a.store
	a.mu.Unlock()
	if s != nil {
		st = s.Stats()
	}
	return st
}
