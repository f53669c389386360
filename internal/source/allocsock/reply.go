package allocsock

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/ledger"
)

// serve answers a request. Everything sent before it has been booked.
func (s *Server) serve(c *conn, r request) {
	switch r.kind {
	case askQuery:
		u := s.opt.Ledger.Device(r.device)
		s.reply(c, appendQueryReply(nil, r.size, &u))
	case askDeviceInfo:
		s.reply(c, appendInfoReply(nil, r.size, r.device, s.devices()))
	case askStats:
		s.reply(c, s.statsRecords())
		c.finish = true // the client reads to the end
	case askDump:
		s.compose(c, DumpText, func(text string) {
			s.reply(c, []byte(text))
			c.finish = true
		})
	case askAll:
		s.compose(c, allText, func(text string) { s.reply(c, []byte(text)) })
	case askHTTP:
		s.reply(c, s.wrongDoor())
		c.finish = true
	case askUnknown:
		s.reply(c, []byte("ERROR unknown request; this socket understands QUERY_ALL and the binary protocol\n\n"))
	case dumpRemaining, dumpKernels:
		kind, text := "remaining", DumpText
		if r.kind == dumpKernels {
			kind, text = "kernels", KernelText
		}
		pid, uid := int(c.cred.Pid), int(c.cred.Uid)
		s.compose(nil, text, func(text string) { s.keepDump(kind, pid, uid, text) })
	}
}

// Texts about the ledger take long where there are many buffers, and somebody
// may ask for them in a loop. A few short ones are made while everybody waits,
// so that they say what is true at that moment; the rest beside the loop, one
// at a time; and what is too much is not made at all.
const (
	fewBuffers     = 5000 // live buffers that a short text is about
	textsPerSecond = 20   // short texts
	maxComposing   = 64   // texts that wait to be made
)

// compose makes a text about the ledger and hands it to use, in the loop. c,
// if it is not nil, is who waits for it; if it goes meanwhile, use is not
// called.
func (s *Server) compose(c *conn, text func(*ledger.Ledger, time.Time) string, use func(string)) {
	now := s.now
	switch {
	case s.opt.Ledger.Stats().Buffers <= fewBuffers && s.texts.take(now):
		use(text(s.opt.Ledger, now))
		return
	case s.composing >= maxComposing:
		s.count.dropped.Add(1)
		if c != nil {
			use("ERROR too many requests; try again\n\n")
		}
		return
	}
	s.composing++
	if c != nil {
		c.composing++
	}
	s.composers.Go(func() {
		t := "ERROR ttmond is being stopped or replaced; try again\n\n"
		s.pen.Lock()
		made := !s.stopping.Load()
		if made {
			t = text(s.opt.Ledger, now)
		}
		s.pen.Unlock()
		s.post(func() {
			s.composing--
			switch {
			case c == nil && made:
				use(t)
			case c != nil && c.fd >= 0:
				c.composing--
				use(t)
				s.flush(c)
			}
		})
	})
}

// bucket lets textsPerSecond through, with as many saved up.
type bucket struct {
	tokens float64
	last   time.Time
}

func (b *bucket) take(now time.Time) bool {
	b.tokens = min(b.tokens+textsPerSecond*now.Sub(b.last).Seconds(), textsPerSecond)
	b.last = now
	if b.tokens < 1 {
		return false
	}
	b.tokens--
	return true
}

// post has f run in the loop.
func (s *Server) post(f func()) {
	s.mailMu.Lock()
	s.mail = append(s.mail, f)
	s.mailMu.Unlock()
	s.wake()
}

func (s *Server) readMail() {
	s.mailMu.Lock()
	mail := s.mail
	s.mail = nil
	s.mailMu.Unlock()
	for _, f := range mail {
		f()
	}
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

func (s *Server) wrongDoor() []byte {
	body := "This socket takes allocation reports.\n"
	if s.opt.Where != "" {
		body += "The API of ttmond is at " + s.opt.Where + "\n"
	}
	return fmt.Appendf(nil, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
