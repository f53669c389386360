// Package journal is what ttmon-server remembers as it was: every snapshot and
// every event of a host, written once, in rotated recordings.
//
// All that looks back reads it: a past moment, what a process held, events, the
// time before an alert. Numbers over time are not its business; they are in the
// database (history/disk).
//
// A segment is a recording of at most an hour, so ttmon replay opens it as it is.
// An event is on the disk before it is shown. Of a segment that is too old the
// events are moved to a recording that holds nothing else, since they are asked
// for longer than snapshots are. Where the disk takes nothing, segments are written
// below a directory in memory, and events are written to the disk later.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/statedir"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// When a segment ends, and when what waits is written.
const (
	segmentLength = time.Hour
	segmentBytes  = 64 << 20
	blockLength   = 10 * time.Second // what a crash costs of the snapshots
	retryDisk     = 10 * time.Second
	suffix        = ".ttrec"
)

// Bounds of what is kept in memory: events, and segments the disk does not take.
const (
	maxRecent          = 2000
	memorySegmentBytes = 4 << 20
	memoryBytes        = 16 << 20
)

// ErrNone is the error where no snapshot is old enough.
var ErrNone = errors.New("no snapshot is kept of that time")

// Options of a Journal.
type Options struct {
	Dir string
	// MemoryDir is a place in a tmpfs for what the disk does not take. It is
	// emptied at the start. Empty: there is none.
	MemoryDir string
	Keep      time.Duration // how long snapshots are kept
	MaxBytes  int64         // what segments take at most
	// Changed is called when snapshots cannot be written, with the reason, and
	// with nil when it does again.
	Changed func(error)
}

// Journal keeps snapshots and events. Its methods may be called by any goroutine.
type Journal struct {
	*eventlog.Recent // the last events

	opt Options

	// writing is held by the one who writes, which may take as long as the disk does.
	writing sync.Mutex
	w       *recording.Writer // to the last segment; nil: it is to be opened
	written time.Time         // of the last record before w
	failed  error             // why the disk takes nothing
	tried   time.Time         // when it was last tried
	unsaved []model.Event     // that it did not take

	// moving is held while events are moved from a segment to where they stay.
	moving sync.RWMutex

	// reading is held by the one who reads a past moment.
	reading sync.Mutex
	open    cachedReader

	mu       sync.Mutex // over all below; never held while the disk is waited for
	segments []segment  // oldest first
	closed   bool
}

// segment is one file.
type segment struct {
	number      uint64
	path        string
	memory      bool
	first, last time.Time // of its records; first is zero where there are none
	bytes       int64
}

// Open opens the journal below o.Dir. It always returns one: with an error, it is
// one that keeps what it can in memory and tries the disk again.
func Open(o Options) (*Journal, error) {
	if o.Changed == nil {
		o.Changed = func(error) {}
	}
	j := &Journal{Recent: eventlog.NewRecent(maxRecent), opt: o}
	if o.MemoryDir != "" {
		_ = os.RemoveAll(o.MemoryDir)
	}
	if err := statedir.Probe(o.Dir); err != nil {
		j.failed = fmt.Errorf("opening the journal: %w", err)
	}
	for _, path := range recording.Unnamed(o.Dir) {
		_ = os.Remove(path)
	}
	j.find()
	j.recall()
	return j, j.failed
}

// find lists the segments that are there.
func (j *Journal) find() {
	names, _ := filepath.Glob(filepath.Join(j.opt.Dir, "*"+suffix))
	for _, path := range names {
		n, err := strconv.ParseUint(strings.TrimSuffix(filepath.Base(path), suffix), 10, 63)
		if err != nil {
			continue
		}
		s := segment{number: n, path: path}
		r, err := recording.Open(path)
		if err != nil {
			if errors.Is(err, recording.ErrForeign) { // a power failure left it empty
				_ = os.Remove(path)
			}
			continue
		}
		s.first, s.last, _ = r.Span()
		s.bytes = r.Whole()
		r.Close()
		j.segments = append(j.segments, s)
	}
	slices.SortFunc(j.segments, func(a, b segment) int { return cmp.Compare(a.number, b.number) })
}

// Snapshot keeps a snapshot's JSON, of a time.
func (j *Journal) Snapshot(at time.Time, body []byte) error {
	j.writing.Lock()
	defer j.writing.Unlock()
	return j.write(at, func(w *recording.Writer) error {
		if err := w.Snapshot(at, body); err != nil {
			return err
		}
		return w.Tick(at, blockLength)
	})
}

// Append stores events, and only then shows them. It numbers them. The error says
// that they are in memory only.
func (j *Journal) Append(events ...model.Event) error {
	if len(events) == 0 {
		return nil
	}
	j.writing.Lock()
	defer j.writing.Unlock()
	j.Number(events)
	err := j.write(time.Time{}, func(w *recording.Writer) error { return put(w, events) })
	shown := slices.Clone(events)
	if j.failed != nil {
		j.unsaved = append(j.unsaved, events...)
		j.unsaved = j.unsaved[max(0, len(j.unsaved)-maxRecent):]
		for i := range shown {
			shown[i].Volatile = true
		}
	}
	j.Add(shown...)
	if j.failed != nil {
		return j.failed
	}
	return err
}

// put writes events and waits until they are on the disk. An event's place is its
// own time, unless that is later than now: records behind it would be moved.
func put(w *recording.Writer, events []model.Event) error {
	now := time.Now()
	for i := range events {
		at := events[i].Time
		if at.After(now) {
			at = now
		}
		if err := w.EventAt(at, events[i]); err != nil {
			return err
		}
	}
	return w.Sync()
}

// Close writes what waits and closes the file.
func (j *Journal) Close() error {
	j.writing.Lock()
	defer j.writing.Unlock()
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	err := j.end()
	j.reading.Lock()
	defer j.reading.Unlock()
	j.open.close()
	if j.opt.MemoryDir != "" {
		_ = os.RemoveAll(j.opt.MemoryDir)
	}
	return err
}
