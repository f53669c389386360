package session

import (
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// stream is how the changes of a ttmond come in.
type stream struct {
	in   chan received[changes.Batch]
	upTo time.Time // what happened before has been told
	on   bool
	// quiet is how long nothing has come, as far as we looked: a time in which
	// we were not run ourselves is none in which ttmond was silent.
	quiet  time.Duration
	turn   time.Time     // when we last looked
	most   time.Duration // how long it may be quiet, where the user is more patient
	lost   time.Time     // since when it is not
	why    error
	looked error // the reason that was last recorded
}

// Times of a stream.
const (
	streamGrace = 3 * time.Second  // a restarted daemon tells how many changes were missed
	streamQuiet = 10 * time.Second // without a word: nothing waits for it any longer
	streamEnd   = time.Second      // how long the end of a recording waits for the last changes
)

// addChanges takes in what a ttmond sent.
func (s *Session) addChanges(x received[changes.Batch], now time.Time) {
	switch t := &s.stream; {
	case x.began:
		t.on, t.why, t.looked, t.quiet = true, nil, nil, 0
		s.r.Blocks(nil, now) // none is compared any more
	case x.why != nil:
		if t.on {
			t.on, t.lost = false, now
		}
		t.why = x.why
	default:
		s.r.Changes(&x.message, now)
		for i := range x.message.Changes {
			if k := x.message.Changes[i].Kind; k == changes.Alloc || k == changes.Free {
				s.allocations++
			}
		}
		if t.quiet = 0; x.message.UpTo > 0 {
			t.upTo = time.Unix(0, x.message.UpTo)
		}
	}
}

// streams reports whether blocks need not be compared: changes are told, or were
// until a moment ago.
func (s *Session) streams(now time.Time) bool {
	t := &s.stream
	return t.on || !t.lost.IsZero() && now.Sub(t.lost) < streamGrace
}

// wait counts the time up to now as quiet, before a look at what has come in.
func (t *stream) wait(now time.Time) {
	if !t.turn.IsZero() {
		t.quiet += min(max(now.Sub(t.turn), 0), 2*DrainEvery)
	}
	t.turn = now
}

// settled is up to when all that is told has come in. What is written before its
// time has come in is told as of a later one.
func (t *stream) settled(now time.Time) time.Time {
	until := now.Add(-settle)
	if t.on && t.upTo.Before(until) && t.quiet < max(streamQuiet, t.most) {
		return t.upTo
	}
	return until
}

// awaitStream waits until what happened up to now has been told.
func (s *Session) awaitStream() {
	t, begun := &s.stream, time.Now()
	for t.on && t.upTo.Before(begun) && time.Since(begun) < max(streamEnd, t.most) {
		select {
		case x := <-t.in:
			s.addChanges(x, time.Now())
		case <-time.After(20 * time.Millisecond):
		}
	}
	if t.on && t.upTo.Before(begun) {
		s.r.Event(model.Event{
			Time: begun, Kind: model.EventTTMond, Level: model.Warning, Short: "the end is missing",
			Text: words.RecordingBehind(t.upTo),
		})
	}
}

// compared records once why blocks were compared, and are not told.
func (s *Session) compared(now time.Time) {
	t := &s.stream
	if !t.lost.IsZero() {
		s.r.Unfollowed(now)
		t.lost = time.Time{}
	}
	if t.why == nil || t.looked != nil && t.looked.Error() == t.why.Error() {
		return
	}
	t.looked = t.why
	s.r.Event(model.Event{
		Time: now, Kind: model.EventTTMond, Level: model.Info, Short: "blocks are compared",
		Text: words.BlocksCompared(t.why),
	})
}
