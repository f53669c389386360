package api

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// Feed is where snapshots are published. The zero Feed is empty. One goroutine
// publishes; any may read.
type Feed struct {
	latest atomic.Pointer[tick]
	first  sync.Once
	empty  *tick
	room   atomic.Int64 // bytes of the last snapshot that was encoded
}

// tick is one published snapshot.
type tick struct {
	Sample
	seq     uint64
	regular uint64          // how many there were so far that are not extra
	snap    *model.Snapshot // nil in the one before the first
	next    chan struct{}   // closed when there is a newer one
	room    *atomic.Int64   // the feed's

	mu      sync.Mutex
	encoded map[Viewpoint][]byte
	pages   map[Viewpoint]*pageEvents
}

// Sample says how a snapshot came to be made.
type Sample struct {
	// Began is when its collection did: what happened before is in it. Zero: that is
	// not known.
	Began time.Time
	// Extra says that a client wanted it, between two of those that are made at each
	// interval. Samples that are kept leave it out.
	Extra bool
}

// Publish makes s the latest snapshot. It must not change any more.
func (f *Feed) Publish(s *model.Snapshot) { f.publish(&tick{snap: s}) }

// PublishSample is Publish where it is known how s came to be made.
func (f *Feed) PublishSample(s *model.Snapshot, as Sample) { f.publish(&tick{snap: s, Sample: as}) }

// PublishEncoded is Publish where the JSON of all of s is known already: body,
// which must not change any more; nil: it is not.
func (f *Feed) PublishEncoded(s *model.Snapshot, body []byte) {
	t := &tick{snap: s}
	if body != nil {
		t.encoded = map[Viewpoint][]byte{{}: body}
	}
	f.publish(t)
}

func (f *Feed) publish(t *tick) {
	old := f.current()
	t.seq, t.next, t.room, t.regular = old.seq+1, make(chan struct{}), &f.room, old.regular
	if !t.Extra {
		t.regular++
	}
	f.latest.Store(t)
	close(old.next)
}

// Latest returns the last snapshot published, or nil.
func (f *Feed) Latest() *model.Snapshot { return f.current().snap }

func (f *Feed) current() *tick {
	if t := f.latest.Load(); t != nil {
		return t
	}
	f.first.Do(func() {
		f.empty = &tick{next: make(chan struct{}), room: &f.room}
		f.latest.CompareAndSwap(nil, f.empty)
	})
	return f.latest.Load()
}

// maxViews bounds the ways in which a snapshot is kept encoded: where /proc
// hides processes, there is one for each user.
const maxViews = 16

// encode returns the snapshot as one viewer may see it, in JSON. It is done
// once for all who see the same.
func (t *tick) encode(v Viewpoint) []byte {
	v = v.on(t.snap)
	t.mu.Lock()
	defer t.mu.Unlock()
	b, ok := t.encoded[v]
	if !ok {
		room := t.room.Load()
		b = wire.Append(make([]byte, 0, room+room/16), v.Filter(t.snap)) // growing costs more than encoding
		t.room.Store(int64(len(b)))
		if t.encoded == nil {
			t.encoded = map[Viewpoint][]byte{}
		}
		if len(t.encoded) < maxViews {
			t.encoded[v] = b
		}
	}
	return b
}
