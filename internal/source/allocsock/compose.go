package allocsock

import (
	"time"

	"github.com/ttmon/ttmon/internal/budget"
	"github.com/ttmon/ttmon/internal/ledger"
)

// Texts about the ledger take long where there are many buffers, and a client
// may request them in a loop. They are made outside the loop, one at a time for
// root and one for all others, and the next text for the same user starts only
// after restAfter times as long as the last one took: so no user keeps a core
// busy with them. An earlier request waits; too many at once are refused.
const restAfter = 4

// composition is a text that is being made.
type composition struct {
	waits *conn // the client that waits for it; nil: none
	uid   int
	use   func(string) // called in the loop
}

// composer returns a text about the ledger, as a viewer may see it.
type composer func(*ledger.Ledger, Viewer, time.Time) string

// compose makes a requested text and passes it to use, in the loop. waits, if
// not nil, is the client that waits for it; if it disconnects meanwhile, use is
// not called.
func (s *Server) compose(client, waits *conn, text composer, use func(string)) {
	u := client.user
	x := &composition{waits: waits, uid: u.uid, use: use}
	if !s.pools.texts.Acquire(u.uid, 1) {
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
			u.delayNextText(s.now, took)
			s.finishText(x, t, true)
		})
	}()
}

// delayNextText delays the next text for a user. Several may have been made at
// once: each adds its own.
func (u *user) delayNextText(now time.Time, took time.Duration) {
	if u.textAfter.Before(now) {
		u.textAfter = now
	}
	u.textAfter = u.textAfter.Add(restAfter * took)
}

// finishText delivers a text.
func (s *Server) finishText(x *composition, text string, made bool) {
	if _, ok := s.compositions[x]; !ok {
		return // it was abandoned
	}
	delete(s.compositions, x)
	s.pools.texts.Release(x.uid, 1)
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

// abandonTexts answers the clients that wait for a text that will not be made.
func (s *Server) abandonTexts() {
	for x := range s.compositions {
		s.finishText(x, "ERROR ttmond is being stopped or replaced; try again\n\n", false)
	}
}
