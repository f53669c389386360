package journal

import (
	"path/filepath"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// cachedReader is the segment that was read last: who looks back asks for one
// moment after the other.
type cachedReader struct {
	path string
	r    *recording.Reader
}

func (c *cachedReader) close() {
	if c.r != nil {
		c.r.Close()
	}
	c.path, c.r = "", nil
}

// of is the reader of a segment.
func (c *cachedReader) of(path string) (*recording.Reader, error) {
	if c.path == path {
		return c.r, c.r.Refresh()
	}
	c.close()
	r, err := recording.Open(path)
	if err != nil {
		return nil, err
	}
	c.path, c.r = path, r
	return r, nil
}

// flush writes what waits, so that it can be read. Where the disk is being waited
// for, readers do without.
func (j *Journal) flush() {
	if !j.writing.TryLock() {
		return
	}
	defer j.writing.Unlock()
	if j.w != nil {
		_ = j.w.Flush() // the next write sees the error, too
	}
}

func (j *Journal) list() []segment {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.segments)
}

// At returns the snapshot that held at a time: the last one not after it.
func (j *Journal) At(t time.Time) (at time.Time, body []byte, err error) {
	list := j.list()
	if n := len(list); n > 0 && !t.Before(list[n-1].last.Add(-blockLength)) {
		j.flush()
	}
	j.reading.Lock()
	defer j.reading.Unlock()
	for _, s := range slices.Backward(list) {
		if s.first.IsZero() || s.first.After(t) {
			continue
		}
		r, err := j.open.of(s.path)
		if err != nil {
			j.open.close()
			continue
		}
		c, err := r.Seek(t)
		if err != nil {
			continue // damaged: the one before is better than none
		}
		if at, ok := c.SnapshotTime(); ok {
			return at, c.JSON(), nil
		}
	}
	return at, nil, ErrNone
}

// Span is the time of the oldest and newest snapshot; zero where there is none.
func (j *Journal) Span() (oldest, newest time.Time) {
	for _, s := range j.list() {
		if s.first.IsZero() {
			continue
		}
		if oldest.IsZero() {
			oldest = s.first
		}
		newest = s.last
	}
	return oldest, newest
}

// recall reads the last events, and continues their numbers.
func (j *Journal) recall() {
	found := 0
	var parts [][]model.Event // newest first
	for _, path := range slices.Backward(j.eventPaths(j.segments)) {
		if found >= maxRecent/2 {
			break
		}
		list := eventsIn(path, time.Time{})
		parts, found = append(parts, list), found+len(list)
	}
	last := uint64(0)
	for _, list := range slices.Backward(parts) {
		for _, e := range list {
			if e.Seq > last { // a segment whose events were moved may still be there
				last = e.Seq
				j.Add(e)
			}
		}
	}
}

// eventPaths are the files that hold events, oldest first.
func (j *Journal) eventPaths(list []segment) []string {
	paths := []string{filepath.Join(j.opt.Dir, eventsBefore), filepath.Join(j.opt.Dir, eventsNow)}
	for _, s := range list {
		if !s.memory { // those in memory have events that are in recent, too
			paths = append(paths, s.path)
		}
	}
	return paths
}

// eventsIn are the events of a file that became known at or after a time.
func eventsIn(path string, since time.Time) (list []model.Event) {
	r, err := recording.Open(path)
	if err != nil {
		return nil
	}
	defer r.Close()
	_ = r.ScanEvents(since, func(e model.Event) {
		if e.Seq > 0 && e.Seq < 1<<53 && e.Kind != "" {
			list = append(list, e)
		}
	})
	return list
}

// Find returns matching events, oldest first. It reads files only for what memory
// does not hold.
func (j *Journal) Find(q eventlog.Query) []model.Event {
	j.moving.RLock()
	defer j.moving.RUnlock()
	return j.FindWith(q, func(_ uint64, add func(*model.Event)) {
		for _, path := range j.eventPaths(j.list()) {
			for _, e := range eventsIn(path, q.Since) {
				add(&e)
			}
		}
	})
}
