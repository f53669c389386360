package recording

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"
)

// Extract is a recording made of blocks of others: what happened before an alert,
// out of the journal. It belongs to one goroutine.
type Extract struct {
	f    *os.File
	path string
	size int64
}

// NewExtract makes a recording of whole blocks, the first of which is a key block
// that begins at a time. Like Create, it gives the file its name when it is whole.
func NewExtract(path string, m Meta, first time.Time, blocks io.Reader) (*Extract, error) {
	e, err := NewEncoder()
	if err != nil {
		return nil, err
	}
	if err := e.Meta(first, m); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+unnamed+"*")
	if err != nil {
		return nil, underName(path, err)
	}
	x := &Extract{f: f, path: path}
	head, _ := e.Cut(appendFileHeader(nil, rand.Uint64()))
	n, err := f.Write(head)
	x.size = int64(n)
	if err == nil {
		err = x.Append(blocks)
	}
	if err == nil {
		err = publish(f, path, false)
	}
	if err != nil {
		f.Close()
		os.Remove(f.Name())
		return nil, fmt.Errorf("making the recording %s: %w", path, err)
	}
	return x, nil
}

// Append adds whole blocks, which are later than those before.
func (x *Extract) Append(blocks io.Reader) error {
	n, err := io.Copy(x.f, blocks)
	if err != nil {
		_, seek := x.f.Seek(x.size, io.SeekStart)
		return fmt.Errorf("writing the recording %s: %w", x.path, errors.Join(err, x.f.Truncate(x.size), seek)) // half a block is none
	}
	x.size += n
	return nil
}

// Close closes the file.
func (x *Extract) Close() error { return x.f.Close() }

// KeyBefore is where the last key block up to a time begins in the file, and when;
// the first block where all are later. ok is false where there is none.
func (r *Reader) KeyBefore(t time.Time) (offset int64, first time.Time, ok bool) {
	if len(r.blocks) == 0 {
		return 0, first, false
	}
	b := r.blocks[r.keyBefore(t.UnixNano())]
	return b.offset, time.Unix(0, b.first), true
}
