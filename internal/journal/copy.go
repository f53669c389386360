package journal

import (
	"errors"
	"io"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/recording"
)

// Copy is a recording of a part of the journal, which can be extended as time
// passes. It belongs to one goroutine.
type Copy struct {
	j      *Journal
	x      *recording.Extract
	number uint64 // of the segment that was copied last
	offset int64  // up to where
	last   time.Time
}

// Copy makes a recording of what the journal has from a time on, up to now.
func (j *Journal) Copy(path string, from time.Time, m recording.Meta) (*Copy, error) {
	j.flush()
	list := j.list()
	start := 0
	for i := range list {
		// A clock that was set back: in one recording times do not go back.
		if i > 0 && list[i].first.Before(list[i-1].last) || !list[i].first.After(from) {
			start = i
		}
	}
	c := &Copy{j: j}
	var parts []io.Reader
	var first time.Time
	for i, s := range list[start:] {
		at := time.Time{}
		if i == 0 {
			at = from
		}
		part, begins, err := c.part(s, at)
		if err != nil || part == nil {
			continue
		}
		defer part.Close()
		if first.IsZero() {
			first = begins
		}
		parts = append(parts, part)
	}
	if first.IsZero() {
		return nil, ErrNone
	}
	var err error
	c.x, err = recording.NewExtract(path, m, first, io.MultiReader(parts...))
	if err != nil {
		return nil, err
	}
	return c, nil
}

// section is a part of a file, which Close closes.
type section struct {
	io.Reader
	io.Closer
}

// part are the blocks of a segment from a time on; the zero time: those that were
// not copied yet. It is nil where there are none.
func (c *Copy) part(s segment, from time.Time) (part io.ReadCloser, first time.Time, err error) {
	r, err := recording.Open(s.path)
	if err != nil {
		return nil, first, err
	}
	defer r.Close()
	offset, first, ok := r.KeyBefore(from)
	if from.IsZero() && s.number == c.number {
		offset = c.offset
	}
	if !ok || offset >= r.Whole() {
		return nil, first, nil
	}
	f, err := os.Open(s.path)
	if err != nil {
		return nil, first, err
	}
	_, c.last, _ = r.Span()
	c.number, c.offset = s.number, r.Whole()
	return section{io.NewSectionReader(f, offset, r.Whole()-offset), f}, first, nil
}

// errClock is the error of a copy that ends because the clock was set back.
var errClock = errors.New("the clock was set back")

// Extend appends what the journal has got since.
func (c *Copy) Extend() error {
	c.j.flush()
	for _, s := range c.j.list() {
		if s.number < c.number {
			continue
		}
		if s.number > c.number && s.first.Before(c.last) {
			return errClock
		}
		part, _, err := c.part(s, time.Time{})
		if err != nil {
			return err
		}
		if part == nil {
			continue
		}
		err = c.x.Append(part)
		part.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// Close closes the recording.
func (c *Copy) Close() error { return c.x.Close() }
