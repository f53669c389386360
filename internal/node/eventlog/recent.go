package eventlog

import (
	"slices"
	"sync"

	"github.com/ttmon/ttmon/internal/model"
)

// Recent are the last events of a log, in memory, and the numbers of all of them. Its
// methods may be called by any goroutine.
type Recent struct {
	most int

	mu     sync.Mutex
	next   uint64
	origin model.EventOrigin // of the last event that has one
	list   []model.Event     // in order
	more   chan struct{}     // closed when there are more
}

// NewRecent has no events, and at most so many later.
func NewRecent(most int) *Recent { return &Recent{most: most, next: 1, more: make(chan struct{})} }

// Number gives new events their numbers.
func (r *Recent) Number(events []model.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range events {
		events[i].Seq, events[i].Time = r.next, events[i].Time.UTC()
		r.next++
	}
}

// Add shows events that have numbers, and wakes those who wait for them.
func (r *Recent) Add(events ...model.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		if r.next = max(r.next, e.Seq+1); e.From != nil {
			r.origin = *e.From
		}
		if len(r.list) >= r.most {
			r.list = append(r.list[:0], r.list[r.most/4:]...)
		}
		r.list = append(r.list, e)
	}
	close(r.more)
	r.more = make(chan struct{})
}

// Saved notes that all events are on the disk.
func (r *Recent) Saved() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.list {
		r.list[i].Volatile = false
	}
}

// Last is the number of the last event, 0 before the first.
func (r *Recent) Last() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.next - 1
}

// Origin is that of the last event taken from another log; the zero EventOrigin where
// there is none.
func (r *Recent) Origin() model.EventOrigin {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.origin
}

// More is closed when there is an event after those that are there now.
func (r *Recent) More() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.more
}

// Find returns matching events, oldest first.
func (r *Recent) Find(q Query) []model.Event {
	return r.FindWith(q, func(uint64, func(*model.Event)) {})
}

// FindWith is Find in a log that has older ones elsewhere: where they matter, older adds
// those before a number, oldest first.
func (r *Recent) FindWith(q Query, older func(before uint64, add func(*model.Event))) []model.Event {
	r.mu.Lock()
	list, first := slices.Clone(r.list), r.next
	r.mu.Unlock()
	if len(list) > 0 {
		first = list[0].Seq
	}
	found := newFinder(q)
	if q.After+1 < first && (q.Since.IsZero() || len(list) == 0 || q.Since.Before(list[0].Time)) {
		last := uint64(0)
		older(first, func(e *model.Event) {
			if e.Seq > last && e.Seq < first { // it may be in two places
				last = e.Seq
				found.add(e)
			}
		})
	}
	for i := range list {
		found.add(&list[i])
	}
	return found.list[max(0, len(found.list)-found.limit):]
}
