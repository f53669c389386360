package recording

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"sort"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

const errCut = damage("a record is cut off")

// Reader reads a recording, also one that is still being written. It belongs
// to one goroutine.
type Reader struct {
	f      io.ReaderAt
	close  func() error
	size   func() (int64, error)
	dec    *zstd.Decoder
	blocks []block
	next   int64 // where the block after the last known one would be
	buf    []byte
	// Torn tells that something follows the last whole block.
	Torn bool
	// Damaged counts the blocks that were passed over, and the places where
	// something lies that is none.
	Damaged  int
	bad      map[int64]bool
	searched int64 // how long the file was when nothing followed the last block
}

// Open opens a recording. One without blocks yet is none the less one.
func Open(path string) (*Reader, error) {
	// To open a fifo would wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	r, err := openFile(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.close = f.Close
	return r, nil
}

func openFile(f *os.File) (*Reader, error) {
	return NewReader(f, func() (int64, error) {
		st, err := f.Stat()
		if err != nil {
			return 0, err
		}
		if !st.Mode().IsRegular() {
			return 0, ErrForeign
		}
		return st.Size(), nil
	})
}

// NewReader reads a recording from f; size tells how long it is now.
func NewReader(f io.ReaderAt, size func() (int64, error)) (*Reader, error) {
	dec, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxRaw))
	if err != nil {
		return nil, err
	}
	r := &Reader{f: f, size: size, dec: dec, close: func() error { return nil }, bad: map[int64]bool{}}
	var h [fileHeader]byte
	if _, err := size(); err != nil {
		return nil, err
	}
	if _, err := f.ReadAt(h[:], 0); err != nil {
		return nil, ErrForeign
	}
	if r.next, err = parseFileHeader(h[:]); err != nil {
		return nil, err
	}
	return r, r.Refresh()
}

// Close closes the file.
func (r *Reader) Close() error {
	r.dec.Close()
	return r.close()
}

// Refresh finds the blocks that were added since.
func (r *Reader) Refresh() error {
	size, err := r.size()
	if err != nil {
		return err
	}
	var h [blockHeader]byte
	for r.next+blockHeader <= size {
		if _, err := r.f.ReadAt(h[:], r.next); err != nil {
			break
		}
		b, ok := parseBlock(h[:], r.next)
		if n := len(r.blocks); !ok || b.end() > size || n > 0 && b.first < r.blocks[n-1].last {
			if !r.resync(size) {
				break
			}
			continue
		}
		r.blocks = append(r.blocks, b)
		r.next = b.end()
	}
	r.Torn = r.next < size
	return nil
}

// Span is the time of the first and last record; ok is false where there is none.
func (r *Reader) Span() (first, last time.Time, ok bool) {
	if len(r.blocks) == 0 {
		return
	}
	return time.Unix(0, r.blocks[0].first), time.Unix(0, r.blocks[len(r.blocks)-1].last), true
}

// Blocks counts the whole blocks.
func (r *Reader) Blocks() int { return len(r.blocks) }

// Whole tells how many bytes belong to whole blocks; after them is what Torn means.
func (r *Reader) Whole() int64 { return r.next }

// check reads a block as it lies in the file, into memory that the next one
// takes over.
func (r *Reader) check(b block) ([]byte, error) {
	n := int(b.end() - b.offset)
	if cap(r.buf) < n {
		r.buf = make([]byte, n)
	}
	r.buf = r.buf[:n]
	if m, err := r.f.ReadAt(r.buf, b.offset); m < n {
		return nil, fmt.Errorf("reading the block at %d: %w", b.offset, err)
	}
	h := r.buf[:blockHeader]
	if checksum(h, r.buf[blockHeader:]) != binary.LittleEndian.Uint32(h[32:]) {
		return nil, fmt.Errorf("%w: the checksum of the block at %d", ErrDamaged, b.offset)
	}
	return r.buf, nil
}

func (r *Reader) read(b block) (raw []byte, err error) {
	whole, err := r.check(b)
	if err == nil {
		raw, err = unpack(r.dec, whole, b)
	}
	if errors.Is(err, ErrDamaged) && !r.bad[b.offset] {
		r.bad[b.offset] = true
		r.Damaged++
	}
	return raw, err
}

// keyBefore is the number of the last key block that begins at or before a time.
func (r *Reader) keyBefore(ns int64) int {
	n := sort.Search(len(r.blocks), func(i int) bool { return r.blocks[i].first > ns })
	return r.keyAt(n - 1)
}

// keyAt is the last key block up to the one with a number; 0 if there is none.
func (r *Reader) keyAt(n int) int {
	for ; n > 0 && !r.blocks[n].key; n-- {
	}
	return max(n, 0)
}

// startOf is when a block begins; 0 if there is none.
func (r *Reader) startOf(n int) int64 {
	if n >= len(r.blocks) {
		return 0
	}
	return r.blocks[n].first
}

// Cursor is a place in a recording and what holds there. It goes forward
// record by record.
type Cursor struct {
	*State
	r       *Reader
	block   int // the one that comes next
	records cursor
	ns      int64 // of the record before
	started bool  // past the part that a key block restates
	lost    bool  // a block was damaged: up to the next key block nothing is sure
	resumed bool  // in the key block after that
	only    bool  // snapshots: all about blocks is passed over
	told    []Record
}

// Seek is a Cursor behind the last record at or before a time. Before the
// first record nothing holds.
func (r *Reader) Seek(t time.Time) (*Cursor, error) {
	for key := r.keyBefore(t.UnixNano()); ; key = r.keyAt(key - 1) {
		c := &Cursor{State: newState(), r: r, block: key, ns: r.startOf(key)}
		for {
			_, err := c.NextUntil(t)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, err
			}
		}
		if !c.lost || c.snapshot != nil || key == 0 {
			return c, nil
		} // the key block itself is damaged: what was known before it
	}
}

// Begin is a Cursor before the first record.
func (r *Reader) Begin() *Cursor { return &Cursor{State: newState(), r: r, ns: r.startOf(0)} }

// Snapshots is a Cursor before the first record that passes over all that is about
// blocks, which a busy program has far more of than there are snapshots.
func (r *Reader) Snapshots() *Cursor {
	c := r.Begin()
	c.only = true
	return c
}

// SnapshotsFrom is a Cursor of snapshots behind the last one at or before a time.
func (r *Reader) SnapshotsFrom(t time.Time) (*Cursor, error) {
	c := r.Snapshots()
	return c, c.forward(t)
}

// forward brings a Cursor of snapshots to a later time, by way of the last key
// block before it.
func (c *Cursor) forward(t time.Time) error {
	if key := c.r.keyBefore(t.UnixNano()); key > c.block {
		c.block, c.records, c.told = key, cursor{}, nil
	}
	for {
		if _, err := c.NextUntil(t); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
	}
}

// aboutBlocks tells which records are, definitions included.
func (k Kind) aboutBlocks() bool { return k >= KindProcess && k <= kindHeld }

// besideSnapshots reports whether a snapshot can be told without records of the
// kind.
func (k Kind) besideSnapshots() bool { return k.aboutBlocks() || k == KindFailure || k == KindPrograms }

// known reports whether this reader knows the kind; others are passed over.
func (k Kind) known() bool { return k <= KindPrograms }

// Next takes in the next record and returns it; io.EOF at the end, where more
// may come after a Refresh of the Reader.
func (c *Cursor) Next() (Record, error) { return c.NextUntil(time.Unix(1<<33, 0)) }

// NextUntil is Next, which leaves records after a time alone (io.EOF).
func (c *Cursor) NextUntil(t time.Time) (Record, error) {
	limit := t.UnixNano()
	for {
		if len(c.told) > 0 {
			rec := c.told[0]
			c.told = c.told[1:]
			return rec, nil
		}
		if len(c.records.b) == 0 {
			if ok, err := c.load(limit); !ok && len(c.told) == 0 {
				return Record{}, err
			}
			continue
		}
		peek := c.records
		kind, ns := Kind(peek.uint()), c.ns+int64(peek.uint())
		body := peek.bytes(peek.uint())
		if peek.bad || ns < c.ns {
			return Record{}, errCut
		}
		if ns > limit {
			return Record{}, io.EOF
		}
		c.records, c.ns = peek, ns
		if kind == kindStart {
			c.started, c.resumed = true, false
			continue
		}
		if c.only && kind.besideSnapshots() {
			continue
		}
		rec, err := c.apply(kind, ns, body)
		if err != nil {
			return rec, err
		}
		if c.started && kind.known() {
			return rec, nil
		}
		if c.resumed {
			c.again(rec, kind, body)
		}
	}
}

// load reads the next block that begins before a time and can be understood.
func (c *Cursor) load(limit int64) (bool, error) {
	for c.block < len(c.r.blocks) && c.r.blocks[c.block].first <= limit {
		b := c.r.blocks[c.block]
		if b.gap {
			c.lose()
		}
		if c.lost && !b.key {
			c.block++
			continue
		}
		raw, err := c.r.read(b)
		if errors.Is(err, ErrDamaged) {
			c.lose()
			c.block++
			continue
		}
		if err != nil {
			return false, err
		}
		c.block++
		c.records, c.ns, c.started, c.resumed = cursor{b: raw}, b.first, !b.key, c.lost
		if b.key {
			c.restart()
		}
		c.lost = false
		return true, nil
	}
	return false, io.EOF
}

// restart drops what a key block repeats.
func (c *Cursor) restart() {
	meta := c.Meta
	*c.State = *newState()
	c.Meta = meta
}
