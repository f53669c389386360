package disk

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sync/atomic"
	"time"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/util/annotations"
)

// Blocks are files that are mapped. One that was damaged since it was opened
// shows when a question comes to it: as a wrong checksum, or, where the disk
// does not give a page at all, as a fault of memory. Either fails the question,
// never the daemon, and makes the store look through its blocks: the next
// question is answered without the damaged one.

type blockOf = *tsdb.Block

// millis is a time, as the database has it. (go vet takes a Seek of int64 for an
// io.Seeker that was written wrongly.)
type millis = int64

// caught turns a fault of memory into an error. The goroutine that reads calls
// it, deferred.
func (s *Store) caught(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("reading the history: %v", p)
		s.suspect()
	}
}

// checkEvery is how often blocks are verified at most: that reads all of them.
const checkEvery = time.Minute

// checks is the state of looking through blocks.
type checks struct {
	busy atomic.Bool
	last atomic.Int64 // when the last one began, in ns after the start of the store
}

// suspect verifies the blocks, in the background.
func (s *Store) suspect() {
	since := time.Since(s.begun).Nanoseconds()
	if last := s.checks.last.Load(); last != 0 && since-last < checkEvery.Nanoseconds() || !s.checks.busy.CompareAndSwap(false, true) {
		return
	}
	s.checks.last.Store(max(since, 1))
	s.background.Go(func() {
		defer s.checks.busy.Store(false)
		s.checkBlocks()
	})
}

// checkBlocks takes damaged blocks out of use, and out of the way.
func (s *Store) checkBlocks() {
	s.mu.RLock()
	list := []*database{s.fine, s.coarse}
	s.mu.RUnlock()
	for _, d := range list {
		if d == nil {
			continue
		}
		for _, b := range d.db.Blocks() {
			if err := verify(b.Dir()); err != nil && damaged(err) {
				s.retireBlock(d, b, err)
			}
		}
	}
}

// retireBlock takes a block out of use. The database still has it open, so its time
// is left out of questions from now on.
func (s *Store) retireBlock(d *database, b blockOf, why error) {
	m := b.Meta()
	part := span{m.MinTime, m.MaxTime - 1}
	s.mu.Lock()
	known := slices.Contains(d.holes, part)
	if !known {
		d.holes = append(d.holes, part)
	}
	holes := slices.Clone(d.holes)
	s.mu.Unlock()
	if known {
		return
	}
	_ = saveHoles(d.dir, holes)
	where, err := moveAside(b.Dir(), d.dir+".damaged-block")
	if err != nil {
		where = "nowhere" // it stays where it is, and is not read
	}
	s.opt.Notify("part of the history is damaged; keeping the rest", "from", time.UnixMilli(m.MinTime).UTC().Format(time.RFC3339),
		"to", time.UnixMilli(m.MaxTime).UTC().Format(time.RFC3339), "moved_to", where, "err", why)
}

// guarded is a querier whose errors make the store suspicious.
type guarded struct {
	storage.Querier
	s *Store
}

func (q guarded) Select(ctx context.Context, sorted bool, hints *storage.SelectHints, m ...*labels.Matcher) (set storage.SeriesSet) {
	debug.SetPanicOnFault(true) // of this goroutine, which reads what it selects
	var err error
	defer func() {
		if err != nil {
			set = storage.ErrSeriesSet(err)
		}
	}()
	defer q.s.caught(&err)
	return &guardedSet{SeriesSet: q.Querier.Select(ctx, sorted, hints, m...), s: q.s}
}

func (q guarded) LabelValues(ctx context.Context, name string, h *storage.LabelHints, m ...*labels.Matcher) (v []string, w annotations.Annotations, err error) {
	debug.SetPanicOnFault(true)
	defer q.s.caught(&err)
	v, w, err = q.Querier.LabelValues(ctx, name, h, m...)
	return v, w, q.s.blame(err)
}

func (q guarded) LabelNames(ctx context.Context, h *storage.LabelHints, m ...*labels.Matcher) (v []string, w annotations.Annotations, err error) {
	debug.SetPanicOnFault(true)
	defer q.s.caught(&err)
	v, w, err = q.Querier.LabelNames(ctx, h, m...)
	return v, w, q.s.blame(err)
}

// blame passes an error on; one that is not the end of the question makes the
// store suspicious.
func (s *Store) blame(err error) error {
	if err == nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	s.suspect()
	return fmt.Errorf("a part of the history cannot be read; if it is damaged it is left out from now on: ask again: %w", err)
}

type guardedSet struct {
	storage.SeriesSet
	s   *Store
	err error
}

func (g *guardedSet) Next() (more bool) {
	defer func() { more = more && g.err == nil }()
	defer g.s.caught(&g.err)
	return g.SeriesSet.Next()
}

func (g *guardedSet) Err() error {
	if g.err != nil {
		return g.err
	}
	return g.s.blame(g.SeriesSet.Err())
}

func (g *guardedSet) At() storage.Series { return guardedSeries{g.SeriesSet.At(), g.s} }

type guardedSeries struct {
	storage.Series
	s *Store
}

func (g guardedSeries) Iterator(reuse chunkenc.Iterator) chunkenc.Iterator {
	it, ok := reuse.(*guardedIterator)
	if !ok {
		return &guardedIterator{Iterator: g.Series.Iterator(nil), s: g.s}
	}
	*it = guardedIterator{Iterator: g.Series.Iterator(it.Iterator), s: g.s}
	return it
}

type guardedIterator struct {
	chunkenc.Iterator
	s   *Store
	err error
}

func (g *guardedIterator) Next() (t chunkenc.ValueType) {
	defer g.s.caught(&g.err)
	return g.Iterator.Next()
}

func (g *guardedIterator) Seek(at millis) (t chunkenc.ValueType) {
	defer g.s.caught(&g.err)
	return g.Iterator.Seek(at)
}

func (g *guardedIterator) Err() error {
	if g.err != nil {
		return g.err
	}
	return g.s.blame(g.Iterator.Err())
}
