package recording

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// Ring keeps the last stretch of time in memory, as the blocks of a recording.
// It belongs to one goroutine.
type Ring struct {
	*Encoder
	span   time.Duration
	max    int
	blocks []ringBlock
	bytes  int
}

type ringBlock struct {
	data  []byte
	first int64
	key   bool
}

// NewRing keeps what is younger than span, in at most max bytes.
func NewRing(span time.Duration, max int) (*Ring, error) {
	e, err := NewEncoder()
	if err != nil {
		return nil, err
	}
	return &Ring{Encoder: e, span: span, max: max}, nil
}

// Keep makes what waits a block, and forgets what is too old. It returns the
// block, which is not changed any more; nil if nothing waited.
func (r *Ring) Keep(now time.Time) []byte {
	first := r.first
	b, key := r.Cut(nil)
	if len(b) == 0 {
		return nil
	}
	r.blocks = append(r.blocks, ringBlock{b, first, key})
	r.bytes += len(b)
	r.forget(now.Add(-r.span).UnixNano())
	return b
}

// forget drops blocks from the front, so that a key block is the first.
func (r *Ring) forget(before int64) {
	for {
		next := 1
		for next < len(r.blocks) && !r.blocks[next].key {
			next++
		}
		if next >= len(r.blocks) || r.blocks[next].first > before && r.bytes <= r.max {
			return
		}
		for i := range next {
			r.bytes -= len(r.blocks[i].data)
			r.blocks[i].data = nil
		}
		r.blocks = r.blocks[next:]
	}
}

// Save writes all that is kept to a new file, to which further blocks can be
// appended. As with Create, it is whole when it has its name.
func (r *Ring) Save(path string) (*os.File, error) {
	made, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+unnamed+"*")
	if err != nil {
		return nil, err
	}
	defer made.Close()
	out := appendFileHeader(make([]byte, 0, fileHeader+r.bytes), rand.Uint64())
	for i := range r.blocks {
		out = append(out, r.blocks[i].data...)
	}
	if _, err = made.Write(out); err == nil {
		err = give(made, path, false)
	}
	if err != nil {
		os.Remove(made.Name())
		return nil, fmt.Errorf("keeping a recording: %w", err)
	}
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
}

// unnamed is in the name of a file that is not whole yet.
const unnamed = ".new-"

// Unnamed lists the files in a folder that never became recordings, because a
// program was killed.
func Unnamed(dir string) []string {
	list, _ := filepath.Glob(filepath.Join(dir, "*"+unnamed+"*"))
	return list
}
