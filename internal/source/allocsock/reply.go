package allocsock

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/ledger"
)

// answer answers a request. Everything sent before it has been applied.
func (s *Server) answer(c *conn, r request) {
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
		s.compose(c, nil, text, func(text string) { s.recordDump(kind, pid, uid, text) })
	}
}

// post has f run in the loop.
func (s *Server) post(f func()) {
	s.postedMu.Lock()
	defer s.postedMu.Unlock()
	s.posted = append(s.posted, f)
	s.interrupt()
}

// runPosted runs the functions posted to the loop: as many as a chore may take,
// or all of them.
func (s *Server) runPosted(all bool) {
	if !s.hasPosted && !all {
		return
	}
	start := time.Now()
	for all || time.Since(start) < choreTime {
		s.postedMu.Lock()
		if len(s.posted) == 0 {
			s.posted, s.hasPosted = nil, false
			s.postedMu.Unlock()
			break
		}
		f := s.posted[0]
		s.posted[0] = nil
		s.posted = s.posted[1:]
		s.postedMu.Unlock()
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

// notHTTP answers a web client that this socket does not speak HTTP.
func (s *Server) notHTTP() []byte {
	body := "This socket takes allocation reports.\n"
	if s.opt.Where != "" {
		body += "The API of ttmond is at " + s.opt.Where + "\n"
	}
	return fmt.Appendf(nil, "HTTP/1.0 400 Bad Request\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n%s", len(body), body)
}
