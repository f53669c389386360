package disk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// Options of a Store.
type Options struct {
	Dir string // where the databases are
	// MemoryDir is a place in a tmpfs for a history that the disk does not
	// take; it is emptied at the start. Empty: then there is none.
	MemoryDir string
	// FineFor and CoarseFor are how long every sample, and one every 15 s,
	// are kept.
	FineFor, CoarseFor time.Duration
	MaxBytes           int64 // of both databases
	MaxSeries          int
	Log                *slog.Logger
	// Notify reports a problem of the history itself: a constant message, and
	// keys and values as for slog.
	Notify func(message string, args ...any)
	// Changed is called when samples cannot be written to the disk, with the reason,
	// and with nil when they can again.
	Changed func(error)
}

// CoarseEvery is the distance of samples in the coarse database, and of those
// that have not changed of families that hardly do in the fine one.
const CoarseEvery = 15 * time.Second

// clockBack is how far the clock may be set back without setting a database
// aside: so long the database takes samples that are older than its newest.
const clockBack = time.Hour

// Stats are figures about a Store.
type Stats struct {
	Series    int    // that are live
	MaxSeries int    // that are taken
	Samples   uint64 // stored
	Refused   uint64 // not stored: the disk did not take them, or they were out of order
	Dropped   uint64 // of series over the bound
	InMemory  bool   // the disk takes nothing now
	Bytes     int64  // on the disk, a while ago
	MaxBytes  int64
}

// Store is a history. Append is for one goroutine; all else for any.
type Store struct {
	opt        Options
	series     seriesSet
	batch      []sample
	gen        uint64
	lastMS     int64     // time of the last row
	apartMS    int64     // how far apart rows usually are
	endedSince []*series // since the last row of the coarse database

	begun      time.Time
	checks     checks
	background sync.WaitGroup // checks that are running

	mu     sync.RWMutex // over the databases and stats
	fine   *database
	coarse *database
	memory *database // while, or after, the disk takes nothing
	stats  Stats
	closed bool
}

// sample is one of the row being appended.
type sample struct {
	x     *series
	v     float64
	often bool // belongs into every row of the fine database
	began bool // its series was not in the row before
}

// Open opens the databases below o.Dir, or one in memory. Reading what a
// crash left in the write-ahead logs takes up to a few seconds. It fails only
// where neither disk nor memory can be had.
func Open(o Options) (*Store, error) {
	o = o.complete()
	s := &Store{opt: o, begun: time.Now(), series: newSeriesSet(o.MaxSeries)}
	s.stats.MaxSeries, s.stats.MaxBytes = o.MaxSeries, o.MaxBytes
	err := s.openDisk()
	if err == nil {
		s.endUnfinished()
		return s, nil
	}
	s.closeAll()
	o.Notify("history is in memory only", "err", err)
	o.Changed(err)
	if s.memory, err = s.openMemory(); err != nil {
		return nil, err
	}
	s.stats.InMemory = true
	return s, nil
}

// complete is with what may be left out.
func (o Options) complete() Options {
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	if o.Notify == nil {
		o.Notify = func(string, ...any) {}
	}
	if o.Changed == nil {
		o.Changed = func(error) {}
	}
	return o
}

func (s *Store) openDisk() error {
	if err := statedir.Probe(s.opt.Dir); err != nil {
		return err
	}
	var err error
	if s.fine, err = s.open("fine", fineOptions(&s.opt)); err != nil {
		return err
	}
	s.coarse, err = s.open("coarse", coarseOptions(&s.opt))
	return err
}

func (s *Store) openMemory() (*database, error) {
	if s.opt.MemoryDir == "" {
		return nil, errors.New("there is no place for a history in memory")
	}
	if err := os.RemoveAll(s.opt.MemoryDir); err != nil {
		return nil, fmt.Errorf("opening a history in memory: %w", err)
	}
	return s.openDatabase(s.opt.MemoryDir, memoryOptions(&s.opt))
}

// AddSnapshot collects the samples of a snapshot. walk calls emit for each.
func (s *Store) AddSnapshot(walk func(emit prom.Emit)) {
	s.gen++
	s.batch = s.batch[:0]
	dropped := uint64(0)
	walk(func(f *prom.Family, labels prom.Labels, v float64) {
		x, fresh := s.series.find(f, labels)
		if x == nil {
			dropped++
			return
		}
		x.gen, x.ended = s.gen, false
		s.batch = append(s.batch, sample{x, v, !f.Static || fresh || v != x.last, fresh})
		x.last = v
	})
	// A series that is gone ends here, for later queries.
	s.series.sweep(s.gen, func(x *series) {
		s.batch = append(s.batch, sample{x: x, v: stale, often: true})
		s.endedSince = append(s.endedSince, x)
	})
	s.mu.Lock()
	s.stats.Series, s.stats.Dropped = s.series.len(), s.stats.Dropped+dropped
	s.mu.Unlock()
}

// Append stores what Take collected, as of a time. It waits for the disk.
func (s *Store) Append(at time.Time) {
	ms := at.UnixMilli()
	every := CoarseEvery.Milliseconds()
	full := ms/every != s.lastMS/every
	if ms == s.lastMS {
		return
	}
	gap := s.isGap(ms)
	s.checkClock(ms)
	s.renewBroken()
	if gap {
		s.appendEnds(s.endedRow())
	}
	s.lastMS = ms
	s.mu.RLock()
	fine, coarse, memory, inMemory := s.fine, s.coarse, s.memory, s.stats.InMemory
	s.mu.RUnlock()
	var count tally
	var failure error
	if fine != nil && (!inMemory || full) { // a disk that took nothing is tried again now and then
		failure = fine.append(ms, s.batch, 0, full, &count)
		if failure == nil && full && coarse != nil {
			failure = coarse.append(ms, s.coarseRow(), 1, true, &count)
		}
	} else if fine == nil {
		failure = errNoDisk
	}
	if inMemory && memory != nil {
		count = tally{}
		_ = memory.append(ms, s.batch, 2, full, &count)
	}
	s.account(count, failure, inMemory && fine != nil && !full)
	if full {
		s.measure(fine, coarse)
	}
}

var errNoDisk = errors.New("it could not be opened")

// account notes how an append went, and goes to memory or back.
func (s *Store) account(count tally, failure error, untried bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Samples += count.stored
	s.stats.Refused += count.refused
	switch {
	case untried:
	case failure == nil && s.stats.InMemory:
		s.stats.InMemory = false
		s.opt.Changed(nil)
		s.opt.Notify("history is on disk again")
	case failure != nil && !s.stats.InMemory:
		s.stats.InMemory = true
		s.opt.Changed(failure)
		s.opt.Notify("history is in memory only", "err", failure)
		if s.memory == nil {
			var err error
			if s.memory, err = s.openMemory(); err != nil {
				s.opt.Changed(fmt.Errorf("%w; nor are they kept in memory: %w", failure, err))
				s.opt.Notify("cannot keep history", "err", err)
			}
		}
	}
}

// tier is where one of the databases on the disk is kept.
type tier struct {
	db   **database
	name string
}

func (s *Store) onDisk() []tier { return []tier{{&s.fine, "fine"}, {&s.coarse, "coarse"}} }

// checkClock sets databases aside that are from the future.
func (s *Store) checkClock(ms int64) {
	for _, at := range s.onDisk() {
		s.mu.RLock()
		db := *at.db
		s.mu.RUnlock()
		if db == nil || !db.ahead(ms) {
			continue
		}
		s.mu.Lock()
		db.close()
		s.series.forget()
		s.opt.Notify("clock was set back; starting a new history", "resolution", at.name, "by_more_than", clockBack)
		_, err := setAside(db.dir, "future")
		var fresh *database
		if err == nil {
			fresh, err = s.openDatabase(db.dir, db.options)
		}
		if err != nil {
			s.opt.Notify("cannot keep history on disk", "err", err)
		}
		*at.db = fresh
		s.mu.Unlock()
	}
}

// renewBroken reopens databases whose newest samples can no longer be read.
// Their write-ahead logs have them all. Queries do without them meanwhile.
func (s *Store) renewBroken() {
	for _, at := range s.onDisk() {
		s.mu.RLock()
		db := *at.db
		s.mu.RUnlock()
		if db == nil || !db.renew.Load() {
			continue
		}
		s.mu.Lock()
		*at.db = nil
		s.mu.Unlock()
		db.close()
		s.series.forget()
		s.opt.Notify("newest history is damaged; reading its write-ahead log again", "resolution", at.name)
		fresh, err := s.open(at.name, db.options)
		if err != nil {
			s.opt.Notify("cannot keep history on disk", "err", err)
		}
		s.mu.Lock()
		*at.db = fresh
		s.mu.Unlock()
	}
}

// open opens a database, setting aside what it cannot be opened with: the files
// of the newest samples, which are in the write-ahead log as well, or all of it.
func (s *Store) open(name string, o *tsdb.Options) (*database, error) {
	dir := filepath.Join(s.opt.Dir, name)
	s.setBadBlocksAside(name)
	db, err := s.openDatabase(dir, o)
	if err == nil || errors.Is(err, tsdb.ErrClosing) || !damaged(err) {
		return db, err
	}
	if _, moved := moveAside(filepath.Join(dir, "chunks_head"), dir+".damaged-newest"); moved == nil {
		if db, again := s.openDatabase(dir, o); again == nil {
			s.opt.Notify("newest history is damaged; rebuilt from its write-ahead log", "dir", dir, "err", err)
			return db, nil
		}
	}
	where, moved := setAside(dir, "damaged")
	if moved != nil {
		return nil, err
	}
	s.opt.Notify("history is damaged; starting a new one", "dir", dir, "moved_to", filepath.Base(where), "err", err)
	return s.openDatabase(dir, o)
}

// Stats returns figures.
func (s *Store) Stats() Stats {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.stats
}

// measure notes what the databases take on the disk. It looks at every file.
func (s *Store) measure(list ...*database) {
	var n int64
	for _, db := range list {
		if db != nil {
			n += db.size()
		}
	}
	s.mu.Lock()
	s.stats.Bytes = n
	s.mu.Unlock()
}

// Compact writes blocks of what is old enough for one. The databases do so
// themselves within a minute; this is for those who cannot wait.
func (s *Store) Compact() error {
	s.mu.RLock()
	fine, coarse := s.fine, s.coarse
	s.mu.RUnlock()
	var err error
	for _, d := range []*database{fine, coarse} {
		if d != nil {
			err = errors.Join(err, d.db.Compact(background))
		}
	}
	return err
}

// Querier implements storage.Queryable.
func (s *Store) Querier(mint, maxt int64) (storage.Querier, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, tsdb.ErrClosing
	}
	q, err := s.tiers(mint, maxt)
	if err != nil {
		return nil, err
	}
	return guarded{q, s}, nil
}

// Close closes the databases. Append must not be called any more.
func (s *Store) Close() {
	s.background.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closed {
		s.appendEnds(s.liveRow())
	}
	s.closed = true
	s.closeAll()
}

func (s *Store) closeAll() {
	for _, db := range []*database{s.fine, s.coarse, s.memory} {
		if db != nil {
			db.close()
		}
	}
	if s.memory != nil {
		_ = os.RemoveAll(s.opt.MemoryDir)
	}
	s.fine, s.coarse, s.memory = nil, nil, nil
}

var _ storage.Queryable = (*Store)(nil)

// background is for appenders: appends are not given up half-way.
var background = context.Background()
