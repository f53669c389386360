package eventlog

import (
	"os"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Query chooses events. The zero Query is all of them.
type Query struct {
	After  uint64            `param:"after" help:"only events with a higher number"`
	Since  time.Time         `param:"since" help:"RFC 3339"`
	Until  time.Time         `param:"until" help:"RFC 3339"`
	Device string            `param:"device" help:"bus id"` // events of the host are about every device
	Kinds  []model.EventKind `param:"kind" help:"may be given several times"`
	Level  model.Level       `param:"level" help:"info, warning or critical: only events that matter at least as much"`
	Limit  int               `param:"limit" help:"the newest so many"` // 0: maxAnswer
}

// maxAnswer bounds an answer.
const maxAnswer = 10_000

func (q *Query) matches(e *model.Event) bool {
	return e.Seq > q.After &&
		(q.Since.IsZero() || !e.Time.Before(q.Since)) && (q.Until.IsZero() || !e.Time.After(q.Until)) &&
		(q.Device == "" || len(e.Devices) == 0 || slices.Contains(e.Devices, q.Device)) &&
		e.Level >= q.Level &&
		(len(q.Kinds) == 0 || slices.Contains(q.Kinds, e.Kind))
}

// Find returns matching events, oldest first. It reads the files only for
// what memory does not hold.
func (l *Log) Find(q Query) []model.Event {
	recent, first, files := l.reaching(&q)
	found := NewFinder(q)
	for _, file := range files {
		_ = scan(file, func(e *model.Event) bool {
			if e.Seq < first {
				found.Add(e)
			}
			return e.Seq < first
		})
	}
	for i := range recent {
		found.Add(&recent[i])
	}
	return found.Found()
}

// Finder collects the events that match a query.
type Finder struct {
	q     Query
	limit int
	list  []model.Event
}

// NewFinder returns one that has found nothing.
func NewFinder(q Query) *Finder {
	f := &Finder{q: q, limit: q.Limit}
	if f.limit <= 0 || f.limit > maxAnswer {
		f.limit = maxAnswer
	}
	return f
}

// Add takes an event in, if it matches; they come oldest first.
func (f *Finder) Add(e *model.Event) {
	if !f.q.matches(e) {
		return
	}
	if len(f.list) >= 2*f.limit {
		f.list = append(f.list[:0], f.list[len(f.list)-f.limit:]...)
	}
	f.list = append(f.list, *e)
}

// Found are those that matched, the newest of them where there are too many.
func (f *Finder) Found() []model.Event { return f.list[max(0, len(f.list)-f.limit):] }

// reaching is what has to be scanned for a query: the events in memory,
// the number of the first of them, and the files where older ones matter. They
// are opened at one moment: one that becomes the previous file is in neither
// place twice, nor in none.
func (l *Log) reaching(q *Query) (recent []model.Event, first uint64, files []*os.File) {
	l.mu.Lock()
	defer l.mu.Unlock()
	recent, first = slices.Clone(l.recent), 1
	if len(recent) > 0 {
		first = recent[0].Seq
	}
	if q.After+1 < first && (q.Since.IsZero() || len(recent) == 0 || q.Since.Before(recent[0].Time)) {
		files = l.files()
	}
	return recent, first, files
}

// Range returns up to n events after a number, oldest first.
func (l *Log) Range(after uint64, n int) (found []model.Event) {
	recent, first, files := l.reaching(&Query{After: after})
	for _, file := range files {
		_ = scan(file, func(e *model.Event) bool {
			if len(found) >= n || e.Seq >= first {
				return false
			}
			if e.Seq > after {
				found = append(found, *e)
			}
			return true
		})
	}
	for i := range recent {
		if len(found) < n && recent[i].Seq > after {
			found = append(found, recent[i])
		}
	}
	return found
}
