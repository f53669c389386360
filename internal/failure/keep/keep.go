// Package keep keeps the last failed allocations of a host: in files, so that
// they survive a restart of ttmond and the end of the program, and bounded, by
// user and in all.
//
// Its place in the flow: ttmond adds what its sources saw, the API reads.
package keep

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/replace"
)

// Limits bound what is kept. The zero value has the defaults.
type Limits struct {
	OfUser, All           int   // records
	OfUserBytes, AllBytes int64 // of their files
}

// The defaults, and what one record may take.
const (
	ofUser      = 32
	all         = 256
	ofUserBytes = 8 << 20
	allBytes    = 64 << 20
	maxFile     = 2 << 20
	maxDecoded  = 64 << 20
)

// Store keeps records. Its methods may be called by any goroutine.
type Store struct {
	dir    string
	limits Limits
	log    *slog.Logger

	mu         sync.Mutex
	entries    []*entry // by number
	next       uint64
	complained bool // that nothing can be written
}

// entry is a record that is kept.
type entry struct {
	number  uint64
	summary failure.Summary
	stack   string // for knowing it again
	bytes   int64
	memory  []byte // the file's bytes, where it cannot be written
	saved   time.Time
	dirty   *failure.Record // newer than the file
	counted bool            // the summary's count and times are
}

// Open reads what is kept below dir. A file that cannot be read is removed.
func Open(dir string, limits Limits, log *slog.Logger) *Store {
	s := &Store{dir: dir, limits: limits, log: log, next: 1}
	s.limits.OfUser, s.limits.All = cmp.Or(limits.OfUser, ofUser), cmp.Or(limits.All, all)
	s.limits.OfUserBytes, s.limits.AllBytes = cmp.Or(limits.OfUserBytes, ofUserBytes), cmp.Or(limits.AllBytes, allBytes)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.complain(err)
		return s
	}
	names, err := os.ReadDir(dir)
	if err != nil {
		s.complain(err)
	}
	for _, n := range names {
		number, ok := numberOf(n.Name())
		if !ok {
			continue
		}
		s.next = max(s.next, number+1)
		r, size, err := readFile(filepath.Join(dir, n.Name()))
		if err != nil {
			log.Warn("removing an unreadable failure record", "file", n.Name(), "err", err)
			_ = os.Remove(filepath.Join(dir, n.Name()))
			continue
		}
		s.entries = append(s.entries, &entry{number: number, summary: r.Summary(), stack: stackOf(r), bytes: size, saved: time.Now()})
	}
	slices.SortFunc(s.entries, func(a, b *entry) int { return cmp.Compare(a.number, b.number) })
	s.evict()
	return s
}

const suffix = ".json.gz"

// Name is the ID of the record with a number.
func name(number uint64) string { return "f" + strconv.FormatUint(number, 10) }

func numberOf(file string) (uint64, bool) {
	id, ok := strings.CutSuffix(file, suffix)
	if !ok {
		return 0, false
	}
	digits, ok := strings.CutPrefix(id, "f")
	n, err := strconv.ParseUint(digits, 10, 63)
	return n, ok && err == nil && name(n) == id
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
	if e := s.same(r); e != nil {
		before := e.summary.Count
		s.merge(e, r)
		return Added{ID: e.summary.ID, Count: e.summary.Count - min(before, e.summary.Count)}
	}
	if r.State == nil {
		return Added{Count: r.Count} // a count only, of what is not kept any more
	}
	e := &entry{number: s.next}
	s.next++
	r.ID = name(e.number)
	e.stack, e.summary = stackOf(r), r.Summary()
	s.entries = append(s.entries, e)
	s.save(e, r)
	s.evict()
	return Added{ID: r.ID, New: true, Count: r.Count}
}

// same finds the record of which r is one more. libttmon tells its own records
// apart, and each keeps the time of its first request. What the probes saw is the
// same as what libttmon saw at about the same time.
func (s *Store) same(r *failure.Record) *entry {
	for i := len(s.entries) - 1; i >= 0; i-- {
		e := s.entries[i]
		k := &e.summary
		if k.Kind != r.Kind || k.Pool != r.Pool || k.Process.PID != r.Process.PID || k.Process.Start != r.Process.Start {
			continue
		}
		switch {
		case k.Source != r.Source:
			if overlap(k, r) {
				return e
			}
		case r.Source == string(model.FromTrack):
			if k.First.Equal(r.First) {
				return e
			}
		case e.stack == stackOf(r) && r.First.Sub(k.Last) < again && (r.State == nil || k.Cause == r.Verdict.Cause && sameChips(k.Chips, r.Chips)):
			return e
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
func (s *Store) merge(e *entry, r *failure.Record) {
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
		s.write(e)
		s.evict()
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

// write writes what is newer than an entry's file.
func (s *Store) write(e *entry) {
	if r, err := s.load(e); err == nil {
		s.save(e, r)
	}
}

// Flush writes what is newer than its file.
func (s *Store) Flush() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if e.counted {
			s.write(e)
		}
	}
}

// save writes a record into its file.
func (s *Store) save(e *entry, r *failure.Record) {
	text, err := encode(r)
	if err == nil && len(text) > maxFile {
		text, err = encode(withoutBlocks(r))
	}
	if err != nil {
		s.complain(err)
		return
	}
	e.dirty, e.counted, e.saved, e.bytes, e.memory = nil, false, time.Now(), int64(len(text)), nil
	if err := replace.File(filepath.Join(s.dir, name(e.number)+suffix), text, 0o600); err != nil {
		e.memory = text
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

func readFile(path string) (*failure.Record, int64, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, 0, err
	}
	if len(b) > maxFile {
		return nil, 0, errors.New("it is too large")
	}
	r, err := decode(b)
	return r, int64(len(b)), err
}

// load reads the record of an entry. Where it is in memory it is not a copy.
func (s *Store) load(e *entry) (r *failure.Record, err error) {
	switch {
	case e.dirty != nil:
		r = e.dirty
	case e.memory != nil:
		r, err = decode(e.memory)
	default:
		r, _, err = readFile(filepath.Join(s.dir, name(e.number)+suffix))
	}
	if err != nil {
		return nil, err
	}
	r.Count, r.First, r.Last = e.summary.Count, e.summary.First, e.summary.Last
	return r, nil
}

// evict removes the oldest records while there are too many: of a user that has
// too many, then of the user that has most.
func (s *Store) evict() {
	for {
		count, bytes := map[int]int{}, map[int]int64{}
		var sum int64
		for _, e := range s.entries {
			uid := e.summary.Process.UID
			count[uid]++
			bytes[uid] += e.bytes
			sum += e.bytes
		}
		victim, found := 0, false
		for uid, n := range count {
			if n > s.limits.OfUser || bytes[uid] > s.limits.OfUserBytes && n > 1 {
				victim, found = uid, true
			}
		}
		if !found && (len(s.entries) > s.limits.All || sum > s.limits.AllBytes) {
			for uid, n := range bytes {
				if !found || n > bytes[victim] {
					victim, found = uid, true
				}
			}
		}
		if !found {
			return
		}
		i := slices.IndexFunc(s.entries, func(e *entry) bool { return e.summary.Process.UID == victim })
		s.remove(i)
	}
}

func (s *Store) remove(i int) {
	path := filepath.Join(s.dir, name(s.entries[i].number)+suffix)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.complain(err)
	}
	s.entries = slices.Delete(s.entries, i, i+1)
}

// List is what is kept of those users of which allow says yes, newest first.
func (s *Store) List(allow func(uid int) bool) []failure.Summary {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []failure.Summary{}
	for _, e := range s.entries {
		if allow(e.summary.Process.UID) {
			list = append(list, e.summary)
		}
	}
	slices.SortStableFunc(list, func(a, b failure.Summary) int { return b.Last.Compare(a.Last) })
	return list
}

// Get reads a record; false where none has that ID. It is a copy.
func (s *Store) Get(id string) (*failure.Record, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if name(e.number) != id {
			continue
		}
		r, err := s.load(e)
		if err != nil {
			return nil, false
		}
		c := *r
		return &c, true
	}
	return nil, false
}

// Change changes a record that is kept, and returns a copy of it; nil where none
// has that ID any more.
func (s *Store) Change(id string, f func(*failure.Record)) *failure.Record {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.entries {
		if name(e.number) != id {
			continue
		}
		r, err := s.load(e)
		if err != nil {
			return nil
		}
		f(r)
		e.summary = r.Summary()
		s.save(e, r)
		c := *r
		return &c
	}
	return nil
}
