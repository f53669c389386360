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
		s.reply(c, appendQueryReply(s.scratch[:0], r.size, &u))
	case askDeviceInfo:
		s.reply(c, appendInfoReply(s.scratch[:0], r.size, r.device, s.devices()))
	case askStats:
		if s.statsTurn != s.turn { // many may ask at once
			s.statsTurn, s.stats = s.turn, s.statsRecords()
		}
		s.reply(c, s.stats)
		c.finish = true // the client reads to the end
	case askDump:
		s.compose(c, c, DumpText, func(text string) {
			s.reply(c, []byte(text))
			c.finish = true
		})
	case askAll:
		s.compose(c, c, allText, func(text string) { s.reply(c, []byte(text)) })
	case askHTTP:
		s.reply(c, s.notHTTP())
		c.finish = true
	case askUnknown:
		s.reply(c, []byte("ERROR unknown request; this socket understands QUERY_ALL and the binary protocol\n\n"))
	case dumpRemaining, dumpKernels:
		kind, text := "remaining", DumpText
		if r.kind == dumpKernels {
			kind, text = "kernels", KernelText
		}
		pid, uid := int(c.cred.Pid), int(c.cred.Uid)
		s.compose(c, nil, text, func(text string) { s.keepDump(kind, pid, uid, text) })
	}
}

// post has f run in the loop.
func (s *Server) post(f func()) {
	s.mailMu.Lock()
	defer s.mailMu.Unlock()
	s.mail = append(s.mail, f)
	s.interrupt()
}

// readMail does what others asked the loop to do: as much as a chore may take,
// or all of it.
func (s *Server) readMail(all bool) {
	if !s.hasMail && !all {
		return
	}
	start := time.Now()
	for all || time.Since(start) < choreTime {
		s.mailMu.Lock()
		if len(s.mail) == 0 {
			s.mail, s.hasMail = nil, false
			s.mailMu.Unlock()
			break
		}
		f := s.mail[0]
		s.mail[0] = nil
		s.mail = s.mail[1:]
		s.mailMu.Unlock()
		f()
	}
	s.mark(workResults)
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

// notHTTP tells a web client that this socket is not for it.
func (s *Server) notHTTP() []byte {
	body := "This socket takes allocation reports.\n"
	if s.opt.Where != "" {
		body += "The API of ttmond is at " + s.opt.Where + "\n"
	}
	return fmt.Appendf(nil, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
