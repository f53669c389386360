// Package keep keeps the last failed allocations of a host: in files, so that
// they survive a restart of ttmond and the end of the program, and bounded, by
// user and in all.
//
// Its place in the flow: ttmond adds what its sources saw, the API reads.
package keep

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/shelf"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/model"
)

// DefaultLimits are good for everybody.
var DefaultLimits = shelf.Limits{OfUser: 32, All: 256, OfUserBytes: 8 << 20, AllBytes: 64 << 20, File: maxFile}

// What one record may take.
const (
	maxFile    = 2 << 20
	maxDecoded = 64 << 20
)

// Store keeps records. Its methods may be called by any goroutine.
type Store struct {
	log *slog.Logger

	mu         sync.Mutex
	kept       *shelf.Shelf[*entry] // by number
	next       int64
	complained bool // that nothing can be written
}

type item = shelf.Item[*entry]

// entry is what is known of a record that is kept.
type entry struct {
	summary failure.Summary
	stack   string // for knowing it again
	saved   time.Time
	dirty   *failure.Record // newer than the file
	counted bool            // the summary's count and times are
}

func newItem(number int64, r *failure.Record) *item {
	return &item{Name: id(number) + suffix, Order: number, UID: r.Process.UID, Value: &entry{summary: r.Summary(), stack: stackOf(r), saved: time.Now()}}
}

// Open reads what is kept below dir. A file that cannot be read is removed.
func Open(dir string, l shelf.Limits, log *slog.Logger) *Store {
	s := &Store{log: log, next: 1}
	err := os.MkdirAll(dir, 0o700)
	if err != nil {
		s.complain(err)
	}
	s.kept, err = shelf.Open(dir, l, func(name string, read func() ([]byte, error)) (*item, error) {
		number, ok := numberOf(name)
		if !ok {
			return nil, nil
		}
		s.next = max(s.next, number+1)
		text, err := read()
		if err != nil {
			return nil, err
		}
		r, err := decode(text)
		if err != nil {
			return nil, err
		}
		return newItem(number, r), nil
	})
	if err != nil {
		log.Warn("cannot read failure records", "err", err)
	}
	return s
}

const suffix = ".json.gz"

// id is the ID of the record with a number.
func id(number int64) string { return "f" + strconv.FormatInt(number, 10) }

func numberOf(file string) (int64, bool) {
	digits, ours := strings.CutPrefix(strings.TrimSuffix(file, suffix), "f")
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, ours && err == nil && n >= 0 && id(n)+suffix == file
}

func (s *Store) complain(err error) {
	if !s.complained {
		s.log.Warn("failure records are in memory only", "err", err)
	}
	s.complained = true
}

func stackOf(r *failure.Record) string { return fmt.Sprint(r.Stack) }

// saveEvery is how often a record that repeats is written.
const saveEvery = 10 * time.Second

// again is how long after the last one a request counts as a repetition.
const again = 10 * time.Minute

// Added is how a record was stored.
type Added struct {
	ID string // of the record that it is in; empty: it is not kept
	// New says that it is a record of its own, not one more of another.
	New bool
	// Count is how many failures there are that were not counted before. What two
	// sources saw is counted once.
	Count uint64
}

// Add keeps a record. It is one more of a record that is kept where the same
// process has failed at the same place not long ago. The record is the store's
// from here on.
func (s *Store) Add(r *failure.Record) Added {
	s.mu.Lock()
	defer s.mu.Unlock()
	if x := s.same(r); x != nil {
		before := x.Value.summary.Count
		s.merge(x, r)
		return Added{ID: x.Value.summary.ID, Count: x.Value.summary.Count - min(before, x.Value.summary.Count)}
	}
	if r.State == nil {
		return Added{Count: r.Count} // a count only, of what is not kept any more
	}
	r.ID = id(s.next)
	s.save(newItem(s.next, r), r)
	s.next++
	return Added{ID: r.ID, New: true, Count: r.Count}
}

// same finds the record of which r is one more. libttmon tells its own records
// apart, and each keeps the time of its first request. What the probes saw is the
// same as what libttmon saw at about the same time.
func (s *Store) same(r *failure.Record) *item {
	for _, x := range slices.Backward(s.kept.Items) {
		k := &x.Value.summary
		if k.Kind != r.Kind || k.Pool != r.Pool || k.Process.PID != r.Process.PID || k.Process.Start != r.Process.Start {
			continue
		}
		switch {
		case k.Source != r.Source:
			if overlap(k, r) {
				return x
			}
		case r.Source == string(model.FromTrack):
			if k.First.Equal(r.First) {
				return x
			}
		case x.Value.stack == stackOf(r) && r.First.Sub(k.Last) < again && (r.State == nil || k.Cause == r.Verdict.Cause && sameChips(k.Chips, r.Chips)):
			return x
		}
	}
	return nil
}

func sameChips(a, b []failure.Chip) bool {
	return slices.EqualFunc(a, b, func(x, y failure.Chip) bool { return x.ID == y.ID })
}

// both is how far the clocks of the two sources may be apart, and how long after
// the first one the second may come.
const both = 2 * time.Second

func overlap(k *failure.Summary, r *failure.Record) bool {
	return !r.First.After(k.Last.Add(both)) && !k.First.After(r.Last.Add(both))
}

// dirtyBlocks is how many blocks a record may have that waits in memory to be
// written. Of larger ones only the count is newer than the file, and the state at
// most saveEvery older.
const dirtyBlocks = 1024

// merge adds a record to one that is kept.
func (s *Store) merge(x *item, r *failure.Record) {
	e := x.Value
	k := &e.summary
	due := time.Since(e.saved) > saveEvery
	count, first, last := merged(k, r)
	// What was seen from outside takes no place of what libttmon saw, which knows
	// the lines that hold the blocks.
	newer := r.State != nil && (k.Source == r.Source || r.Source == string(model.FromTrack))
	if newer && k.Source == r.Source && !due {
		newer = r.State.Usage().Blocks <= dirtyBlocks
	}
	if newer {
		r.ID = k.ID
		e.dirty, e.stack, e.summary = r, stackOf(r), r.Summary()
	}
	e.summary.Count, e.summary.First, e.summary.Last = count, first, last
	e.counted = true
	if due || e.dirty != nil && e.dirty.State.Usage().Blocks > dirtyBlocks {
		s.write(x)
	}
}

// merged is how often and when both failed together.
func merged(k *failure.Summary, r *failure.Record) (count uint64, first, last time.Time) {
	switch fromTrack := string(model.FromTrack); {
	case r.Source == fromTrack: // its own count and times are from the beginning; the probes counted the same
		return max(k.Count, r.Count), r.First, r.Last
	case k.Source == fromTrack:
		return k.Count, k.First, k.Last // the ledger has it, or will
	case r.Last.After(k.Last):
		return k.Count + r.Count, k.First, r.Last
	default:
		return k.Count + r.Count, k.First, k.Last
	}
}

// write writes what is newer than a record's file.
func (s *Store) write(x *item) {
	if r, err := s.load(x); err == nil {
		s.save(x, r)
	}
}

// Flush writes what is newer than its file.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range slices.Clone(s.kept.Items) {
		if x.Value.counted {
			s.write(x)
		}
	}
}

// save writes a record into its file.
func (s *Store) save(x *item, r *failure.Record) {
	text, err := encode(r)
	if err == nil && len(text) > maxFile {
		text, err = encode(withoutBlocks(r))
	}
	if err != nil {
		s.complain(err)
		return
	}
	e := x.Value
	e.dirty, e.counted, e.saved = nil, false, time.Now()
	if _, err := s.kept.Put(x, text); err != nil {
		s.complain(err)
	}
}

// withoutBlocks returns a copy of a record without the addresses of blocks.
func withoutBlocks(r *failure.Record) *failure.Record {
	c := *r
	c.State = blocks.NewList(r.State.Geometry, blocks.Late)
	c.Doubts = append(slices.Clone(r.Doubts), failure.BlocksMissing)
	c.Sites = []failure.Site{}
	return &c
}

func encode(r *failure.Record) ([]byte, error) {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return nil, fmt.Errorf("encoding a failure record: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

func decode(text []byte) (*failure.Record, error) {
	r, err := gzip.NewReader(bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(r, maxDecoded))
	if err != nil {
		return nil, err
	}
	return failure.Decode(b)
}

// load reads a record. Where it is in memory it is not a copy.
func (s *Store) load(x *item) (r *failure.Record, err error) {
	e := x.Value
	if r = e.dirty; r == nil {
		text, err := s.kept.Get(x)
		if err != nil {
			return nil, err
		}
		if r, err = decode(text); err != nil {
			return nil, err
		}
	}
	r.Count, r.First, r.Last = e.summary.Count, e.summary.First, e.summary.Last
	return r, nil
}

// List is what is kept of those users of which allow says yes, newest first.
func (s *Store) List(allow func(uid int) bool) []failure.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []failure.Summary{}
	for _, x := range s.kept.Items {
		if allow(x.UID) {
			list = append(list, x.Value.summary)
		}
	}
	slices.SortStableFunc(list, func(a, b failure.Summary) int { return b.Last.Compare(a.Last) })
	return list
}

// Get reads a record; false where none has that ID. It is a copy.
func (s *Store) Get(id string) (*failure.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, r := s.find(id)
	return r, r != nil
}

// find reads the record with an ID; nil where there is none. It is a copy.
func (s *Store) find(id string) (*item, *failure.Record) {
	i := slices.IndexFunc(s.kept.Items, func(x *item) bool { return x.Name == id+suffix })
	if i < 0 {
		return nil, nil
	}
	x := s.kept.Items[i]
	r, err := s.load(x)
	if err != nil {
		return nil, nil
	}
	c := *r
	return x, &c
}

// Change changes a record that is kept, and returns a copy of it; nil where none
// has that ID any more.
func (s *Store) Change(id string, f func(*failure.Record)) *failure.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	x, r := s.find(id)
	if r == nil {
		return nil
	}
	f(r)
	x.Value.summary = r.Summary()
	s.save(x, r)
	c := *r
	return &c
}
