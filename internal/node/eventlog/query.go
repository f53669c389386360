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
	Oldest bool              // those instead
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
	return l.FindWith(q, func(before uint64, add func(*model.Event)) {
		for _, file := range l.opened() {
			_ = scan(file, func(e *model.Event) bool {
				add(e)
				return e.Seq < before
			})
		}
	})
}

// opened are the files. They are opened at one moment: none of them becomes the previous
// one meanwhile.
func (l *Log) opened() []*os.File {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.files()
}

// Range returns up to n events after a number, oldest first.
func (l *Log) Range(after uint64, n int) []model.Event {
	return l.Find(Query{After: after, Limit: n, Oldest: true})
}

// finder collects the events that match a query.
type finder struct {
	Query
	limit int
	list  []model.Event
}

func newFinder(q Query) *finder {
	f := &finder{Query: q, limit: q.Limit}
	if f.limit <= 0 || f.limit > maxAnswer {
		f.limit = maxAnswer
	}
	return f
}

// add takes an event in, if it matches; they come oldest first.
func (f *finder) add(e *model.Event) {
	if !f.matches(e) || f.Oldest && len(f.list) >= f.limit {
		return
	}
	if len(f.list) >= 2*f.limit {
		f.list = append(f.list[:0], f.list[len(f.list)-f.limit:]...)
	}
	f.list = append(f.list, *e)
}
