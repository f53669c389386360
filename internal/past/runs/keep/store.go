package keep

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/ttmon/ttmon/internal/base/replace"
	"github.com/ttmon/ttmon/internal/book/runs"
)

// Store is the runs that have ended, on disk: a JSON document a line, appended to
// a file; full files are compressed, with an index of their runs, and the oldest of them removed when they are
// too old or too many. A run that is there twice is as the later line says. It is
// safe for several goroutines.
type Store struct {
	dir      string
	keep     time.Duration
	maxBytes int64

	mu  sync.Mutex
	out replace.Lines // the current file
}

const (
	current     = "runs.jsonl"
	maxFile     = 1 << 20
	maxLine     = 256 << 10
	packedEnd   = ".jsonl.zst"
	maxUnpacked = 64 << 20
)

// OpenStore returns the store in a directory. It reads nothing yet.
func OpenStore(dir string, keep time.Duration, maxBytes int64) *Store {
	if keep <= 0 {
		keep = DefaultKeep
	}
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Store{dir: dir, keep: keep, maxBytes: maxBytes, out: replace.Lines{Path: filepath.Join(dir, current)}}
}

// packed is a compressed file: runs-NUMBER-HIGHEST-LAST.jsonl.zst.
type packed struct {
	path    string
	number  uint64
	highest uint64    // number of a run in it
	last    time.Time // end of a run in it
	size    int64
}

func (s *Store) packedName(number, highest uint64, last time.Time) string {
	return filepath.Join(s.dir, fmt.Sprintf("runs-%08d-%d-%d%s", number, highest, last.Unix(), packedEnd))
}

// files lists the compressed files, the oldest first.
func (s *Store) files() (list []packed) {
	entries, _ := os.ReadDir(s.dir)
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), packedEnd)
		parts := strings.Split(name, "-")
		if !ok || len(parts) != 4 || parts[0] != "runs" {
			continue
		}
		number, err1 := strconv.ParseUint(parts[1], 10, 62)
		highest, err2 := strconv.ParseUint(parts[2], 10, 53)
		last, err3 := strconv.ParseInt(parts[3], 10, 62)
		info, err4 := e.Info()
		if errors.Join(err1, err2, err3, err4) != nil {
			continue
		}
		list = append(list, packed{filepath.Join(s.dir, e.Name()), number, highest, time.Unix(last, 0), info.Size()})
	}
	slices.SortFunc(list, func(a, b packed) int { return int(a.number) - int(b.number) })
	return list
}

// Highest is the highest number of a run that is kept.
func (s *Store) Highest() (id uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files() {
		id = max(id, f.highest)
	}
	if text, err := os.ReadFile(filepath.Join(s.dir, current)); err == nil {
		for line := range bytes.Lines(text) {
			if n, ok := lineID(line); ok {
				id = max(id, n)
			}
		}
	}
	return id
}

// newest is when the runs ended that were written last: those of two files at
// least.
func (s *Store) newest() map[uint64]time.Time {
	ended := map[uint64]time.Time{}
	texts, err := s.texts(time.Time{}, func(string) bool { return true })
	if err != nil {
		return ended
	}
	n := 0
	for read := range texts {
		text, _ := read()
		for line := range bytes.Lines(text) {
			if r, ok := parse(line); ok && r.Ended().After(ended[r.ID]) {
				ended[r.ID] = r.Ended()
			}
		}
		if n++; n == 2 {
			break
		}
	}
	return ended
}

// Bytes is what the store takes on the disk.
func (s *Store) Bytes() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.files() {
		n += f.size
	}
	if st, err := os.Stat(filepath.Join(s.dir, current)); err == nil {
		n += st.Size()
	}
	return n
}

// Append writes runs, and waits until they are on the disk.
func (s *Store) Append(list []runs.Run, now time.Time) error {
	if len(list) == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var b bytes.Buffer
	for i := range list {
		line, err := json.Marshal(&list[i])
		if err != nil {
			return fmt.Errorf("encoding run %d: %w", list[i].ID, err)
		}
		if len(line) < maxLine {
			b.Write(line)
			b.WriteByte('\n')
		}
	}
	if err := s.out.Append(b.Bytes()); err != nil {
		return err
	}
	if s.out.Size >= maxFile {
		if err := s.pack(); err != nil {
			return err
		}
	}
	s.trim(now)
	return nil
}

// pack compresses the current file and begins another. A crash in between leaves
// runs in both: they have the same numbers.
func (s *Store) pack() error {
	path := filepath.Join(s.dir, current)
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("compressing runs: %w", err)
	}
	var highest uint64
	var last time.Time
	var list []runs.Run
	for line := range bytes.Lines(text) {
		if r, ok := parse(line); ok {
			list = append(list, r)
			highest = max(highest, r.ID)
			if t := r.Ended(); t.After(last) {
				last = t
			}
		}
	}
	number := uint64(1)
	if files := s.files(); len(files) > 0 {
		number = files[len(files)-1].number + 1
	}
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1))
	if err != nil {
		return fmt.Errorf("compressing runs: %w", err)
	}
	defer enc.Close()
	if err := replace.File(s.packedName(number, highest, last), enc.EncodeAll(text, newIndex(list).frame()), 0o600); err != nil {
		return fmt.Errorf("compressing runs: %w", err)
	}
	s.out.Close()
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("compressing runs: %w", err)
	}
	return nil
}

// trim removes the oldest files.
func (s *Store) trim(now time.Time) {
	list := s.files()
	total := s.out.Size
	for _, f := range list {
		total += f.size
	}
	for _, f := range list {
		if total <= s.maxBytes && now.Sub(f.last) <= s.keep {
			return
		}
		_ = os.Remove(f.path) // tried again with the next run
		total -= f.size
	}
}

// Close closes the file.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.out.Close()
}
