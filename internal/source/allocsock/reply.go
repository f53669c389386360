package allocsock

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/ledger"
)

// answer answers a request at once. Everything sent before it has been applied.
func (s *Server) answer(c *conn, r request) {
	switch r.kind {
	case askQuery:
		u := s.opt.Ledger.Device(r.device)
		s.reply(c, appendQueryReply(nil, r.size, &u), false)
	case askDeviceInfo:
		s.reply(c, appendInfoReply(nil, r.size, r.device, s.devices()), false)
	case askStats:
		s.reply(c, s.statsRecords(), true) // the client reads to the end
	case askHTTP:
		s.reply(c, s.notHTTP(), true)
	case askUnknown:
		s.reply(c, []byte("ERROR unknown request; this socket understands QUERY_ALL and the binary protocol\n\n"), false)
	case dumpRemaining, dumpKernels:
		s.answerDump(c, r.kind)
	}
}

// Texts about the ledger take long where there are many buffers, and a client
// may request them in a loop. They are made one at a time for root and one for all
// others, and the next text for the same user starts only after restAfter times as
// long as the last one took: so no user keeps a core busy with them. An earlier
// request waits; too many at once are refused.
const restAfter = 4

// composer returns a text about the ledger, as a viewer may see it.
type composer func(*ledger.Ledger, Viewer, time.Time) string

// answerText answers a request for a text, and returns when it has.
func (s *Server) answerText(c *conn, r request) {
	text := DumpText
	if r.kind == askAll {
		text = allText
	}
	answer := "ERROR too many requests; try again\n\n"
	if made := s.compose(c.user, text); made != nil {
		select {
		case answer = <-made:
		case <-s.stopped():
			answer = "ERROR ttmond is being stopped or replaced; try again\n\n"
		}
	}
	s.reply(c, []byte(answer), r.kind == askDump)
	s.sendRest(c)
}

// answerDump makes a text for the log, which its client does not wait for.
func (s *Server) answerDump(c *conn, of requestKind) {
	kind, text := "remaining", DumpText
	if of == dumpKernels {
		kind, text = "kernels", KernelText
	}
	made := s.compose(c.user, text)
	if made == nil {
		return
	}
	pid, uid := int(c.cred.Pid), int(c.cred.Uid)
	s.mu.Lock()
	defer s.mu.Unlock()
	stopped := s.closing
	s.spawn(func() {
		select {
		case text := <-made:
			s.recordDump(kind, pid, uid, text)
		case <-stopped:
		}
	})
}

// compose starts to make a text for a user; nil: the user has requested too many.
func (s *Server) compose(u *user, text composer) (made <-chan string) {
	if !s.pools.texts.Acquire(u.uid, 1) {
		s.count.dropped.Add(1)
		return nil
	}
	root := budget.Privileged(u.uid)
	turn := &s.textTurns[0]
	if !root {
		turn = &s.textTurns[1]
	}
	s.mu.Lock()
	rest, stopped := time.Until(u.textAfter), s.closing
	s.mu.Unlock()
	result := make(chan string, 1)
	go func() {
		defer s.pools.texts.Release(u.uid, 1)
		select {
		case <-stopped:
			return
		case <-time.After(rest):
		}
		turn.Lock()
		defer turn.Unlock()
		if s.stops() {
			return
		}
		start := time.Now()
		result <- text(s.opt.Ledger, Viewer{UID: u.uid, All: root}, start)
		s.mu.Lock()
		defer s.mu.Unlock()
		now := time.Now()
		u.delayNextText(now, now.Sub(start))
	}()
	return result
}

// delayNextText delays the next text for a user. Several may have been made at
// once: each adds its own.
func (u *user) delayNextText(now time.Time, took time.Duration) {
	if u.textAfter.Before(now) {
		u.textAfter = now
	}
	u.textAfter = u.textAfter.Add(restAfter * took)
}

func (s *Server) devices() []DeviceInfo {
	if s.opt.Devices == nil {
		return nil
	}
	return s.opt.Devices()
}

// statsRecords lists every device that this host has or that was ever named.
func (s *Server) statsRecords() []byte {
	uses := s.opt.Ledger.Devices()
	var b []byte
	for i := range s.devices() {
		for len(uses) > 0 && uses[0].Device < int32(i) {
			b, uses = appendStatsRecord(b, &uses[0]), uses[1:]
		}
		if len(uses) == 0 || uses[0].Device != int32(i) {
			b = appendStatsRecord(b, &ledger.Use{Device: int32(i)})
		}
	}
	for i := range uses {
		b = appendStatsRecord(b, &uses[i])
	}
	return b
}

// notHTTP answers a web client that this socket does not speak HTTP.
func (s *Server) notHTTP() []byte {
	body := "This socket takes allocation reports.\n"
	if s.opt.Where != "" {
		body += "The API of ttmond is at " + s.opt.Where + "\n"
	}
	return fmt.Appendf(nil, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
