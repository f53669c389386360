package past

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// A file is a sequence of records: magic, length, time in Unix milliseconds,
// CRC-32 of the rest, and the compressed snapshot.
const (
	magic      = 0x31736e54 // "Tns1"
	headerSize = 4 + 4 + 8 + 4
	maxRecord  = 16 << 20
	maxFile    = 4 << 20
	maxAge     = time.Hour // of a file that is still appended to
	suffix     = ".snapshots"
)

// ErrNone is returned where no snapshot is old enough.
var ErrNone = errors.New("no snapshot is kept of that time")

// Options of a Store.
type Options struct {
	Dir      string
	Keep     time.Duration
	MaxBytes int64
}

// Store keeps snapshots. Its methods may be called by any goroutine.
type Store struct {
	opt Options
	enc *zstd.Encoder
	dec *zstd.Decoder

	mu    sync.Mutex
	files []*file // oldest first; the last one is appended to
}

// file is one file and where its records are. Only the one that is appended to
// is kept open: there may be many, and descriptors are for clients.
type file struct {
	path    string
	f       *os.File // nil: of an earlier time
	size    int64
	records []record
}

type record struct {
	ms     int64
	offset int64
	length int // of the compressed snapshot
}

// Open finds what is kept below o.Dir. A directory that cannot be written
// is no error: Put tells.
func Open(o Options) (*Store, error) {
	enc, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(128<<10))
	if err != nil {
		return nil, err
	}
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(64<<20))
	if err != nil {
		return nil, err
	}
	s := &Store{opt: o, enc: enc, dec: dec}
	names, _ := filepath.Glob(filepath.Join(o.Dir, "*"+suffix))
	sort.Slice(names, func(i, j int) bool { return number(names[i]) < number(names[j]) })
	for _, name := range names {
		if x := scan(name); x != nil {
			s.files = append(s.files, x)
		}
	}
	return s, nil
}

// number is the time in a file's name.
func number(path string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(filepath.Base(path), suffix), 10, 64)
	return n
}

// scan finds the records of a file, up to the first that is not whole.
func scan(path string) *file {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	x := &file{path: path}
	var h [headerSize]byte
	for {
		if _, err := f.ReadAt(h[:], x.size); err != nil {
			break
		}
		r, ok := parseHeader(h[:], x.size)
		if !ok || r.offset+int64(r.length) > st.Size() {
			break
		}
		x.records = append(x.records, r)
		x.size = r.offset + int64(r.length)
	}
	if len(x.records) == 0 {
		_ = os.Remove(path)
		return nil
	}
	return x
}

func parseHeader(h []byte, at int64) (r record, ok bool) {
	n := binary.LittleEndian.Uint32(h[4:])
	r = record{ms: int64(binary.LittleEndian.Uint64(h[8:])), offset: at + headerSize, length: int(n)}
	return r, binary.LittleEndian.Uint32(h) == magic && n <= maxRecord
}

// Put keeps a snapshot's JSON. Times go forward: one before the last, after
// the clock was set back, makes those after it unreachable until they are old.
func (s *Store) Put(at time.Time, body []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.put(at.UnixMilli(), body)
}

func (s *Store) put(ms int64, body []byte) error {
	z := s.enc.EncodeAll(body, make([]byte, headerSize, headerSize+len(body)/8))
	if len(z)-headerSize > maxRecord {
		return fmt.Errorf("a snapshot of %d bytes is too long to be kept", len(body))
	}
	binary.LittleEndian.PutUint32(z, magic)
	binary.LittleEndian.PutUint32(z[4:], uint32(len(z)-headerSize))
	binary.LittleEndian.PutUint64(z[8:], uint64(ms))
	binary.LittleEndian.PutUint32(z[16:], crc32.ChecksumIEEE(z[headerSize:]))
	x, err := s.current(ms)
	if err != nil {
		return err
	}
	if _, err := x.f.WriteAt(z, x.size); err != nil {
		return fmt.Errorf("keeping a snapshot: %w", err)
	}
	x.records = append(x.records, record{ms, x.size + headerSize, len(z) - headerSize})
	x.size += int64(len(z))
	s.drop(ms)
	return nil
}

// current is the file to append to: the last one, also that of an earlier run,
// or every start would leave a file.
func (s *Store) current(ms int64) (*file, error) {
	if n := len(s.files); n > 0 {
		x := s.files[n-1]
		first := ms
		if len(x.records) > 0 { // none where the first write failed
			first = x.records[0].ms
		}
		if x.size < maxFile && ms >= first && ms-first < maxAge.Milliseconds() && x.append() {
			return x, nil
		}
		x.close()
	}
	if err := os.MkdirAll(s.opt.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("keeping snapshots: %w", err)
	}
	path := filepath.Join(s.opt.Dir, strconv.FormatInt(ms, 10)+suffix)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, fmt.Errorf("keeping snapshots: %w", err)
	}
	s.files = append(s.files, &file{path: path, f: f})
	return s.files[len(s.files)-1], nil
}

// append opens a file to be appended to, behind its last whole record.
func (x *file) append() bool {
	if x.f != nil {
		return true
	}
	f, err := os.OpenFile(x.path, os.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return false
	}
	if err := f.Truncate(x.size); err != nil {
		f.Close()
		return false
	}
	x.f = f
	return true
}

func (x *file) close() {
	if x.f != nil {
		x.f.Close()
		x.f = nil
	}
}

// drop removes files that are too old, or the oldest while there is too much.
func (s *Store) drop(now int64) {
	total := int64(0)
	for _, x := range s.files {
		total += x.size
	}
	for len(s.files) > 1 {
		x := s.files[0]
		newest := int64(math.MinInt64)
		if n := len(x.records); n > 0 {
			newest = x.records[n-1].ms
		}
		if total <= s.opt.MaxBytes && newest > now-s.opt.Keep.Milliseconds() {
			return
		}
		x.close()
		_ = os.Remove(x.path)
		total -= x.size
		s.files = s.files[1:]
	}
}

// At returns the snapshot that held at a time: the last one not after it.
func (s *Store) At(t time.Time) (at time.Time, body []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ms := t.UnixMilli()
	for _, x := range slices.Backward(s.files) {
		for _, r := range slices.Backward(x.records) {
			if r.ms > ms {
				continue
			}
			body, err := x.read(r, s.dec)
			if err != nil {
				continue // damaged: the one before is better than none
			}
			return time.UnixMilli(r.ms), body, nil
		}
	}
	return at, nil, ErrNone
}

func (x *file) read(r record, dec *zstd.Decoder) ([]byte, error) {
	f := x.f
	if f == nil {
		var err error
		if f, err = os.OpenFile(x.path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0); err != nil {
			return nil, err
		}
		defer f.Close()
	}
	b := make([]byte, headerSize+r.length)
	if _, err := f.ReadAt(b, r.offset-headerSize); err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if crc32.ChecksumIEEE(b[headerSize:]) != binary.LittleEndian.Uint32(b[16:]) {
		return nil, errors.New("a snapshot is damaged")
	}
	return dec.DecodeAll(b[headerSize:], nil)
}

// Span is the time of the oldest and newest snapshot; zero where there is none.
func (s *Store) Span() (oldest, newest time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.files) == 0 || len(s.files[0].records) == 0 {
		return
	}
	last := s.files[len(s.files)-1]
	if len(last.records) == 0 {
		return
	}
	return time.UnixMilli(s.files[0].records[0].ms), time.UnixMilli(last.records[len(last.records)-1].ms)
}

// Close closes the files.
func (s *Store) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.files {
		x.close()
	}
	s.files = nil
	s.dec.Close()
}
