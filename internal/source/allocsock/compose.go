package allocsock

import (
	"time"

	"github.com/ttmon/ttmon/internal/budget"
	"github.com/ttmon/ttmon/internal/ledger"
)

// Texts about the ledger take long where there are many buffers, and somebody
// may ask for them in a loop. They are made beside the loop, one at a time for
// root and one for all others, and the next text for the same user begins only
// after restAfter times as long as the last one took: so nobody keeps a core
// busy with them. Whoever asks sooner waits; who has asked for too many at once
// is refused.
const restAfter = 4

// composition is a text that is being made.
type composition struct {
	waits *conn // who waits for it; nil: nobody
	uid   int
	use   func(string) // called in the loop
}

// composer makes a text about the ledger, as a viewer may see it.
type composer func(*ledger.Ledger, Viewer, time.Time) string

// compose makes a text that somebody asked for and hands it to use, in the
// loop. waits, if it is not nil, is who waits for it; if it goes meanwhile, use
// is not called.
func (s *Server) compose(asks, waits *conn, text composer, use func(string)) {
	u := asks.user
	x := &composition{waits: waits, uid: u.uid, use: use}
	if !s.pools.texts.Take(u.uid, 1) {
		s.count.dropped.Add(1)
		if waits != nil {
			use("ERROR too many requests; try again\n\n")
		}
		return
	}
	s.compositions[x] = struct{}{}
	if waits != nil {
		waits.composing++
	}
	root := budget.Privileged(u.uid)
	turn := &s.textTurns[0]
	if !root {
		turn = &s.textTurns[1]
	}
	closing, rest := s.closing, u.textAfter.Sub(s.now)
	go func() {
		select {
		case <-closing:
			return // abandonTexts has answered
		case <-time.After(rest):
		}
		turn.Lock()
		defer turn.Unlock()
		select {
		case <-closing:
			return
		default:
		}
		start := time.Now()
		t := text(s.opt.Ledger, Viewer{UID: u.uid, All: root}, start)
		took := time.Since(start)
		s.post(func() {
			u.rest(s.now, took)
			s.composed(x, t, true)
		})
	}()
}

// rest has the next text for a user wait. Several may have been made at once:
// each adds its own.
func (u *user) rest(now time.Time, took time.Duration) {
	if u.textAfter.Before(now) {
		u.textAfter = now
	}
	u.textAfter = u.textAfter.Add(restAfter * took)
}

// composed ends the making of a text.
func (s *Server) composed(x *composition, text string, made bool) {
	if _, ok := s.compositions[x]; !ok {
		return // it was abandoned
	}
	delete(s.compositions, x)
	s.pools.texts.Give(x.uid, 1)
	switch c := x.waits; {
	case c == nil && made:
		x.use(text)
	case c != nil && c.fd >= 0:
		c.composing--
		x.use(text)
		s.flush(c)
		s.unpark(c)
	}
}

// abandonTexts answers whoever waits for a text that will not be made.
func (s *Server) abandonTexts() {
	for x := range s.compositions {
		s.composed(x, "ERROR ttmond is being stopped or replaced; try again\n\n", false)
	}
}
