package recording

import (
	"context"
	"errors"
	"io"
	"slices"
	"sort"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Player is a recording as a source of snapshots: Next is the one of a moment
// that moves with time while it plays. Its methods may be called by any goroutine.
type Player struct {
	mu      sync.Mutex
	r       *Reader
	cur     *Cursor
	pos     time.Time
	since   time.Time // when pos was so; the clock of the one who watches
	playing bool
	speed   float64
	marks   []Mark
	found   bool // the whole recording was searched for marks
	now     func() time.Time
}

// Mark is a moment that can be jumped to.
type Mark struct {
	Time  time.Time
	Event model.Event
}

// ErrEmpty is the error of a recording without a snapshot.
var ErrEmpty = errors.New("the recording has no snapshot at that time")

// NewPlayer makes a player that stands at the beginning.
func NewPlayer(r *Reader) *Player {
	p := &Player{r: r, speed: 1, now: time.Now}
	p.pos, _, _ = r.Span()
	return p
}

// FirstSnapshot is when the first one was taken; the zero time if there is none.
func (r *Reader) FirstSnapshot() (at time.Time) {
	c := r.Snapshots()
	for {
		rec, err := c.Next()
		if err != nil {
			return time.Time{}
		}
		if rec.Kind == KindSnapshot {
			return rec.Time
		}
	}
}

// Status is how a player stands.
type Status struct {
	Pos, First, Last time.Time
	Playing          bool
	Speed            float64
	Found            bool // all marks are known
}

// Status tells how it stands, after moving with time.
func (p *Player) Status() Status {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	first, last, _ := p.r.Span()
	return Status{Pos: p.pos, First: first, Last: last, Playing: p.playing, Speed: p.speed, Found: p.found}
}

// move lets the position follow time, up to the end of what is recorded.
func (p *Player) move() {
	now := p.now()
	if p.playing {
		p.pos = p.pos.Add(time.Duration(float64(now.Sub(p.since)) * p.speed))
		if _, last, _ := p.r.Span(); p.pos.After(last) {
			_ = p.r.Refresh() // it may still be written
			if _, last, _ = p.r.Span(); p.pos.After(last) {
				p.pos = last
			}
		}
	}
	p.since = now
}

// Play plays or pauses.
func (p *Player) Play(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	p.playing = on
}

// SetSpeed plays so many times as fast.
func (p *Player) SetSpeed(x float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	p.speed = x
}

// Go moves to a moment, as far as the recording reaches.
func (p *Player) Go(t time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	first, last, _ := p.r.Span()
	if t.After(last) {
		t = last
	}
	if t.Before(first) {
		t = first
	}
	p.pos = t
}

// Step pauses and moves to the next snapshot, or to the one before.
func (p *Player) Step(forward bool) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	p.playing = false
	if err := p.seek(); err != nil {
		return err
	}
	if forward {
		for {
			rec, err := p.cur.Next()
			if errors.Is(err, io.EOF) {
				_, p.pos, _ = p.r.Span()
				return nil
			}
			if err != nil {
				return err
			}
			if rec.Kind == KindSnapshot {
				p.pos = rec.Time
				return nil
			}
		}
	}
	if at := time.Unix(0, p.cur.snapTime); p.cur.snapshot != nil {
		p.pos = at.Add(-1)
		if err := p.seek(); err != nil {
			return err
		}
		if p.cur.snapshot != nil {
			p.pos = time.Unix(0, p.cur.snapTime)
		}
	}
	return nil
}

// seek brings the cursor to the position.
func (p *Player) seek() (err error) {
	if p.cur == nil || p.cur.Time.After(p.pos) || p.pos.Sub(p.cur.Time) > 2*keyEvery {
		if p.cur, err = p.r.Seek(p.pos); err != nil {
			p.cur = nil
		}
		return err
	}
	for {
		_, err := p.cur.NextUntil(p.pos)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			p.cur = nil
			return err
		}
	}
}

// Next is the snapshot that held at the position; before the first one, that.
func (p *Player) Next(context.Context) (*model.Snapshot, error) {
	var s *model.Snapshot
	err := p.With(func(state *State) (err error) {
		s, err = state.Snapshot()
		return err
	})
	if err != nil || s != nil {
		return s, err
	}
	c, err := p.first()
	if err != nil {
		return nil, err
	}
	return c.Snapshot()
}

// first moves to the first snapshot.
func (p *Player) first() (*State, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.r.FirstSnapshot()
	if at.IsZero() {
		return nil, ErrEmpty
	}
	if at.After(p.pos) {
		p.pos = at
	}
	c, err := p.r.Seek(at)
	if err != nil {
		return nil, err
	}
	return c.State, nil
}

// With calls f with what holds at the position.
func (p *Player) With(f func(*State) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	if err := p.seek(); err != nil {
		return err
	}
	return f(p.cur.State)
}

// Before are snapshots of the time before the position, at most n of them,
// oldest first: what a chart begins with.
func (p *Player) Before(span time.Duration, n int) (out []*model.Snapshot) {
	p.mu.Lock()
	defer p.mu.Unlock()
	start := p.pos.Add(-span)
	if first, _, _ := p.r.Span(); start.Before(first) {
		start = first
	}
	step := max(p.pos.Sub(start)/time.Duration(n), time.Millisecond)
	c := p.r.Snapshots()
	for at := start; at.Before(p.pos); at = at.Add(step) {
		if err := c.forward(at); err != nil {
			return out
		}
		if s, bad := c.Snapshot(); bad == nil && s != nil && (len(out) == 0 || s.Time.After(out[len(out)-1].Time)) {
			out = append(out, s)
		}
	}
	return out
}

// Find reads the marks of the whole recording, which takes a while in a long
// one: it is for a goroutine of its own.
func (p *Player) Find(r *Reader) error {
	marks, err := r.Events()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.marks, p.found = marks, true
	return err
}

// Marks are those that were found, oldest first.
func (p *Player) Marks() []Mark {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clip(p.marks)
}

// Jump moves to the mark after or before the position.
func (p *Player) Jump(forward bool) (Mark, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.move()
	n := sort.Search(len(p.marks), func(i int) bool { return p.marks[i].Time.After(p.pos) })
	if !forward {
		n = sort.Search(len(p.marks), func(i int) bool { return !p.marks[i].Time.Before(p.pos) }) - 1
	}
	if n < 0 || n >= len(p.marks) {
		return Mark{}, false
	}
	p.pos = p.marks[n].Time
	return p.marks[n], true
}

// Events are the events of a recording, and the places where it is damaged. Only
// they are read.
func (r *Reader) Events() (out []Mark, err error) {
	err = r.scan(scan{}, func(kind Kind, ns int64, body []byte) error {
		if kind != KindEvent {
			return nil
		}
		m := Mark{Time: time.Unix(0, ns)}
		if err := newState().decode(body, &m.Event); err != nil {
			return err
		}
		out = append(out, m)
		return nil
	}, func(ns int64) {
		out = append(out, Mark{Time: time.Unix(0, ns), Event: gapEvent(ns)})
	})
	return out, err
}

// ScanEvents calls f with the events that became known at or after a time, oldest
// first. What is damaged is passed over. It reads little where there are few.
func (r *Reader) ScanEvents(since time.Time, f func(model.Event)) error {
	skip := func(b *block) bool { return b.noEvent || !since.IsZero() && b.last < since.UnixNano() }
	return r.scan(scan{skip: skip}, func(kind Kind, _ int64, body []byte) error {
		if kind == KindEvent {
			var e model.Event
			if newState().decode(body, &e) == nil {
				f(e)
			}
		}
		return nil
	}, func(int64) {})
}

// Scan calls f for each record as it lies in the file, without what it means.
// Blocks that are damaged are passed over.
func (r *Reader) Scan(f func(kind Kind, ns int64, body []byte) error) error {
	return r.scan(scan{}, f, func(int64) {})
}

// ScanFrom is Scan of the records of a time and later.
func (r *Reader) ScanFrom(t time.Time, f func(kind Kind, ns int64, body []byte) error) error {
	from := t.UnixNano()
	return r.scan(scan{skip: func(b *block) bool { return b.last < from }}, func(kind Kind, ns int64, body []byte) error {
		if ns < from {
			return nil
		}
		return f(kind, ns, body)
	}, func(int64) {})
}

// scan says what is scanned beside, or without, what Scan does.
type scan struct {
	restated bool              // what key blocks tell again
	skip     func(*block) bool // blocks that are not read; nil: all are
}

// scan is Scan. gap is told when something is passed over, once before each block
// that is whole.
func (r *Reader) scan(o scan, f func(kind Kind, ns int64, body []byte) error, gap func(ns int64)) error {
	last, lost := r.startOf(0), false
	lose := func() {
		if !lost {
			gap(last)
		}
		lost = true
	}
	for _, b := range r.blocks {
		if b.gap {
			lose()
		}
		if o.skip != nil && o.skip(&b) {
			continue
		}
		raw, err := r.read(b)
		if errors.Is(err, ErrDamaged) {
			lose()
			continue
		}
		if err != nil {
			return err
		}
		last, lost = b.last, false
		if err := eachRecord(raw, b.first, b.key && !o.restated, f); err != nil {
			return err
		}
	}
	return nil
}

// eachRecord calls f for each record of a block; with started, for those behind
// what a key block tells again.
func eachRecord(raw []byte, ns int64, started bool, f func(kind Kind, ns int64, body []byte) error) error {
	c := cursor{b: raw}
	for len(c.b) > 0 {
		kind := Kind(c.uint())
		ns += int64(c.uint())
		body := c.bytes(c.uint())
		switch {
		case c.bad:
			return errCut
		case kind == kindStart:
			started = false
		case !started:
			if err := f(kind, ns, body); err != nil {
				return err
			}
		}
	}
	return nil
}

// Position is where the player stands. It is for use within With.
func (p *Player) Position() time.Time { return p.pos }
