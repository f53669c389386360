package journal

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

var errClosed = errors.New("the journal is closed")

// write calls f with the segment that is written to, and with one in memory where
// the disk does not take it. With writing.
func (j *Journal) write(at time.Time, f func(*recording.Writer) error) (err error) {
	j.mu.Lock()
	closed := j.closed
	j.mu.Unlock()
	if closed {
		return errClosed
	}
	for range 2 {
		if err := j.current(at); err != nil {
			return err
		}
		if err = j.try(f); err == nil {
			j.grew(at)
			return nil
		}
		j.fail(err)
	}
	return err
}

// try writes. Where the disk had failed, it has recovered only when it took the
// events that it had not taken before, and this.
func (j *Journal) try(f func(*recording.Writer) error) error {
	s, _ := j.lastSegment()
	recovering := j.failed != nil && !s.memory
	if recovering {
		if err := put(j.w, j.unsaved); err != nil {
			return err
		}
	}
	if err := f(j.w); err != nil || !recovering {
		return err
	}
	if err := j.w.Sync(); err != nil {
		return err
	}
	j.failed, j.unsaved = nil, nil
	j.Saved()
	j.opt.Changed(nil)
	return nil
}

// current makes j.w a segment to write to. With writing.
func (j *Journal) current(at time.Time) error {
	last, ok := j.lastSegment()
	if j.w != nil {
		if !j.ended(last, at) {
			return nil
		}
		if err := j.end(); err != nil {
			j.fail(err)
		}
		j.expire()
	}
	if j.failed == nil || time.Since(j.tried) >= retryDisk {
		j.tried = time.Now()
		err := j.openDisk(last, ok, at)
		if err == nil {
			return nil
		}
		j.fail(err)
	}
	return j.openMemory(at)
}

// ended reports whether a segment takes nothing of a time any more.
func (j *Journal) ended(s segment, at time.Time) bool {
	if !s.memory {
		return full(s, at)
	}
	if time.Since(j.tried) >= retryDisk {
		if j.tried = time.Now(); statedir.Probe(j.opt.Dir) == nil {
			j.tried = time.Time{} // it may be opened
			return true
		}
	}
	return s.bytes >= memorySegmentBytes
}

// clockBack is how far the clock may be set back within a segment: in a recording
// times do not go back, what is earlier is moved.
const clockBack = 10 * time.Second

// full reports whether a segment on the disk is too long, or takes nothing of a
// time; the zero time is that of events, which do not end a segment.
func full(s segment, at time.Time) bool {
	if s.bytes >= segmentBytes {
		return true
	}
	return !at.IsZero() && !s.first.IsZero() && (at.Sub(s.first) >= segmentLength || at.Before(s.last.Add(-clockBack)))
}

func (j *Journal) lastSegment() (s segment, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.segments); n > 0 {
		return j.segments[n-1], true
	}
	return s, false
}

// openDisk opens a segment on the disk: the last one, also that of an earlier run,
// or a new one.
func (j *Journal) openDisk(last segment, ok bool, at time.Time) error {
	if ok && !last.memory && !full(last, at) {
		if w, err := recording.Resume(last.path); err == nil {
			j.w = w
			return nil
		}
	}
	if err := os.MkdirAll(j.opt.Dir, 0o700); err != nil {
		return err
	}
	return j.create(j.opt.Dir, last.number+1, at)
}

func (j *Journal) create(dir string, number uint64, at time.Time) error {
	path := filepath.Join(dir, fmt.Sprintf("%010d%s", number, suffix))
	w, err := recording.Create(path, false)
	if err != nil {
		return err
	}
	if at.IsZero() || !at.Before(j.written.Add(-clockBack)) {
		w.NotBefore(j.written) // so that Copy can join them
	}
	j.w = w
	j.mu.Lock()
	j.segments = append(j.segments, segment{number: number, path: path, memory: dir == j.opt.MemoryDir, bytes: w.Bytes()})
	j.mu.Unlock()
	return nil
}

// openMemory opens a segment in memory, and drops the oldest where there are many.
func (j *Journal) openMemory(at time.Time) error {
	if j.opt.MemoryDir == "" {
		return j.failed
	}
	if err := os.MkdirAll(j.opt.MemoryDir, 0o700); err != nil {
		return errors.Join(j.failed, err)
	}
	last, _ := j.lastSegment()
	if err := j.create(j.opt.MemoryDir, last.number+1, at); err != nil {
		return errors.Join(j.failed, err)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	bytes := int64(0)
	for i := range j.segments {
		if j.segments[i].memory {
			bytes += j.segments[i].bytes
		}
	}
	j.segments = slices.DeleteFunc(j.segments, func(s segment) bool {
		over := s.memory && bytes > memoryBytes-memorySegmentBytes
		if over {
			bytes -= s.bytes
			_ = os.Remove(s.path)
		}
		return over
	})
	return nil
}

// grew notes how long the segment is, and which time its snapshots are of; the zero
// time: it got events.
func (j *Journal) grew(at time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := &j.segments[len(j.segments)-1]
	s.bytes = j.w.Bytes()
	if s.first.IsZero() {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
}

// end closes the segment.
func (j *Journal) end() error {
	if j.w == nil {
		return nil
	}
	err := j.w.Close()
	bytes := j.w.Bytes()
	j.w, j.written = nil, j.w.Last()
	j.mu.Lock()
	defer j.mu.Unlock()
	if n := len(j.segments); n > 0 {
		j.segments[n-1].bytes = bytes
	}
	return err
}

// fail gives the segment up that could not be written.
func (j *Journal) fail(err error) {
	s, _ := j.lastSegment()
	wrote := j.w != nil
	if wrote {
		_ = j.w.Close()
		if j.w.Empty() {
			j.remove(s.number)
		}
		j.w = nil
	}
	if wrote && s.memory {
		return
	}
	first := j.failed == nil
	if j.failed, j.tried = err, time.Now(); first {
		j.opt.Changed(err)
	}
}

func (j *Journal) remove(number uint64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for i, s := range j.segments {
		if s.number == number {
			_ = os.Remove(s.path)
			j.segments = append(j.segments[:i:i], j.segments[i+1:]...)
			return
		}
	}
}

// The recordings of events alone. The older one is dropped when the other is long.
const (
	eventsNow    = "events" + suffix
	eventsBefore = "events.1" + suffix
	eventsBytes  = 2 << 20
)

// expire drops segments that are too old, or the oldest while there is too much.
// Their events stay.
func (j *Journal) expire() {
	_, newest := j.Span()
	for {
		j.mu.Lock()
		total := int64(0)
		for _, s := range j.segments {
			if !s.memory {
				total += s.bytes
			}
		}
		var old segment
		if len(j.segments) > 0 {
			old = j.segments[0]
		}
		j.mu.Unlock()
		if old.number == 0 || old.memory || total <= j.opt.MaxBytes && old.last.After(newest.Add(-j.opt.Keep)) {
			return
		}
		j.moving.Lock()
		err := j.moveEvents(old.path)
		if err == nil {
			j.remove(old.number)
		}
		j.moving.Unlock()
		if err != nil {
			return // the next rotation tries again
		}
	}
}

// moveEvents appends the events of a segment to the recording of events.
func (j *Journal) moveEvents(path string) error {
	r, err := recording.Open(path)
	if err != nil {
		return nil // nothing of it can be read
	}
	defer r.Close()
	var list []model.Event
	_ = r.ScanEvents(time.Time{}, func(e model.Event) { list = append(list, e) })
	if len(list) == 0 {
		return nil
	}
	return j.storeEvents(list)
}

// storeEvents appends events to the recording of events.
func (j *Journal) storeEvents(list []model.Event) error {
	now, before := filepath.Join(j.opt.Dir, eventsNow), filepath.Join(j.opt.Dir, eventsBefore)
	if st, err := os.Stat(now); err == nil && st.Size() > eventsBytes {
		if err := os.Rename(now, before); err != nil {
			return err
		}
	}
	w, err := recording.Resume(now)
	if err != nil {
		w, err = recording.Create(now, true)
	}
	if err != nil {
		return err
	}
	return errors.Join(put(w, list), w.Close())
}
