package journal

import (
	"errors"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/past/recording"
)

// Copy is a recording of a part of the journal, which can be extended as time
// passes. It belongs to one goroutine.
type Copy struct {
	j      *Journal
	w      *recording.Writer
	number uint64    // of the segment that was copied last
	next   time.Time // what is older has been copied
}

// Copy makes a recording of what the journal has from a time on, up to now.
func (j *Journal) Copy(path string, from time.Time, m recording.Meta) (*Copy, error) {
	w, err := recording.Create(path, false)
	if err != nil {
		return nil, err
	}
	c, begin := &Copy{j: j, w: w, next: from}, from
	list := j.list()
	for i, s := range list {
		// A clock that was set back: in one recording times do not go back.
		if i == 0 || s.first.Before(list[i-1].last) || !s.first.After(from) {
			c.number = s.number
			if begin = from; s.first.After(begin) {
				begin = s.first
			}
		}
	}
	if err = w.Meta(begin, m); err == nil {
		err = c.Extend()
	}
	if err == nil && c.next.Equal(from) {
		err = ErrNone
	}
	if err != nil {
		_ = w.Close()
		_ = os.Remove(path)
		return nil, err
	}
	return c, nil
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
		if s.number > c.number && s.first.Before(c.w.Last()) {
			return errClock
		}
		c.number = s.number
		if err := c.add(s.path); err != nil {
			return err
		}
	}
	return c.w.Flush()
}

// add appends what a segment has that was not copied yet.
func (c *Copy) add(path string) error {
	r, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	return r.ScanFrom(c.next, func(kind recording.Kind, ns int64, body []byte) error {
		at := time.Unix(0, ns)
		if err := c.w.Tick(at, blockLength); err != nil {
			return err
		}
		c.next = at.Add(1)
		return c.w.Add(kind, at, body)
	})
}

// Close closes the recording.
func (c *Copy) Close() error { return c.w.Close() }
