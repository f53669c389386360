package allocsock

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/ledger"
)

// conn is one connection.
type conn struct {
	fd        int
	since     time.Time
	cred      *unix.Ucred     // who connected
	owner     *proc           // who connected; nil until the first event: viewers have none
	writer    unix.Ucred      // who wrote what is being decoded; pid 0 if the kernel does not say
	heirs     map[int32]*proc // others who write on it, by pid; nil if nobody does
	dec       decoder
	pending   []byte // read, but not decoded: the beginning of something
	out       []byte // replies that the client has not taken
	interest  uint32 // what epoll watches it for
	ended     bool   // the client will send no more
	finish    bool   // end our side when out is empty
	warned    bool   // its nonsense has been logged
	composing int    // texts that are being made for it
	settleAt  time.Time

	// For the choice between being woken and being swept.
	swept     bool
	wakes     int
	wakeSince time.Time
	idle      int // sweeps in a row that found little
}

// maxOut bounds the replies that wait for a client that does not read. More
// are dropped, whole: the client is the loser, not its neighbours.
const maxOut = 256 << 10

// adopt begins to serve a connection.
func (s *Server) adopt(c *conn) error {
	// From now on every read says who wrote; see heir.go. Without it, all is
	// the owner's.
	_ = unix.SetsockoptInt(c.fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	c.interest = unix.EPOLLIN
	if err := s.introduce(c); err != nil {
		return err
	}
	if err := s.watch(c.fd, c.interest, watch{conn: c}); err != nil {
		return err
	}
	s.conns[c] = struct{}{}
	s.unclaimed.add(c)
	s.count.open.Add(1)
	return nil
}

// ready serves a connection that epoll reported.
func (s *Server) ready(c *conn, events uint32) {
	if events&unix.EPOLLOUT != 0 {
		s.flush(c)
	}
	switch {
	case c.ended:
		if events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			s.drop(c)
		}
	case events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR|unix.EPOLLRDHUP) != 0:
		s.count.wakes.Add(1)
		s.read(c)
		s.heat(c)
	}
}

// maxReads bounds what one connection may take before others get their turn.
const maxReads = 4

// read takes what a connection has. It returns how many bytes that was and
// whether the connection still had more.
func (s *Server) read(c *conn) (got int, left bool) {
	for range maxReads {
		kept := copy(s.buf, c.pending)
		space := s.buf[kept : kept+bufLen]
		n, errno := s.recv.from(c, space)
		switch {
		case errno == unix.EAGAIN, errno == unix.EINTR:
			return got, false
		case errno != 0, n == 0:
			// A peer that left without reading gives ECONNRESET, after
			// everything it sent.
			s.end(c)
			return got, false
		}
		got += n
		s.count.bytes.Add(uint64(n))
		full := n == len(space)
		if !full {
			s.consume(c, s.buf[:kept+n], drained)
			if c.heirs != nil {
				continue // the read ended where another process's writes begin
			}
			return got, false
		}
		s.consume(c, s.buf[:kept+n], more)
	}
	return got, true
}

// consume decodes b, books what it says and answers what it asks. b may lie in
// s.buf; what is left of it is kept in c.pending.
func (s *Server) consume(c *conn, b []byte, e ending) {
	c.dec.events = s.events[:0]
	for {
		n, req, wait := c.dec.decode(b, e)
		b = b[n:]
		s.book(c)
		if req.kind == noRequest {
			s.settleLater(c, wait && e == drained && len(b) > 0)
			break
		}
		if req.kind != flush {
			s.serve(c, req)
		}
	}
	if len(b) > maxLine { // BUG: nothing that long can be the beginning of anything
		c.dec.rejected++
		c.dec.skipped += uint64(len(b))
		b = nil
	}
	c.pending = append(c.pending[:0], b...)
	if len(b) == 0 && cap(c.pending) > maxLine {
		c.pending = nil
	}
	s.reject(c)
	if len(c.out) > 0 || c.finish {
		s.flush(c)
	}
}

// introduce asks the kernel who connected.
func (s *Server) introduce(c *conn) (err error) {
	if c.cred, err = credentials(c.fd); err != nil {
		return err
	}
	c.dec.peer = c.cred.Pid
	c.dec.classify = func(counting bool) reading {
		p := s.writerOf(c)
		if p.language == unknownLanguage {
			p.language = languageOf(p.key.PID, p.name)
		}
		return p.language.reading(counting)
	}
	return nil
}

// book hands the decoded events to the ledger.
func (s *Server) book(c *conn) {
	if len(c.dec.events) == 0 {
		return
	}
	p := s.writerOf(c)
	if sent := int(c.dec.sentPID); p.sentPID != sent && sent != 0 && p == c.owner {
		p.sentPID = sent
		s.opt.Ledger.SetSentPID(p.ledger, sent)
	}
	if s.verbose {
		s.logEvents(p, c.dec.events)
	}
	s.opt.Ledger.Apply(p.ledger, c.dec.events, s.now)
	c.dec.events = c.dec.events[:0]
}

// logEvents logs the first events of a batch; the log leaves out what is too
// much of one kind.
func (s *Server) logEvents(p *proc, events []ledger.Event) {
	const most = 20
	for _, e := range events[:min(len(events), most)] {
		s.log.Debug(e.Op.String(), "pid", p.key.PID, "device", e.Device, "id", e.ID, "bytes", e.Size)
	}
	if len(events) > most {
		s.log.Debug("more events", "pid", p.key.PID, "count", len(events)-most)
	}
}

// reject counts nonsense, and logs the first of a connection.
func (s *Server) reject(c *conn) {
	frames, skipped := c.dec.rejected, c.dec.skipped
	if frames|skipped == 0 {
		return
	}
	c.dec.rejected, c.dec.skipped = 0, 0
	s.count.rejected.Add(frames)
	s.count.skipped.Add(skipped)
	if c.owner != nil {
		s.opt.Ledger.Reject(c.owner.ledger, frames, skipped)
	}
	if !c.warned {
		c.warned = true
		s.log.Warn("a client sends what is no message; it is counted and skipped", "pid", c.cred.Pid, "uid", c.cred.Uid)
	}
}

// settleLater notes that what a connection sent may be complete.
func (s *Server) settleLater(c *conn, wait bool) {
	waits := !c.settleAt.IsZero()
	switch {
	case wait && !waits:
		s.settling = append(s.settling, c)
		fallthrough
	case wait:
		c.settleAt = s.now.Add(settleTime)
	case waits:
		c.settleAt = time.Time{} // settle takes it off the list
	}
}

// settle decodes what has had nothing behind it for settleTime.
func (s *Server) settle() {
	if len(s.settling) == 0 {
		return
	}
	due := s.settling
	s.settling = nil
	for _, c := range due {
		switch {
		case c.settleAt.IsZero() || c.fd < 0:
		case s.now.Before(c.settleAt):
			s.settling = append(s.settling, c)
		default:
			c.settleAt = time.Time{}
			s.consume(c, append([]byte(nil), c.pending...), settled)
		}
	}
}

// end notes that a client will send no more: it has closed its end, or shut
// down half of it and waits for an answer.
func (s *Server) end(c *conn) {
	if c.ended {
		return
	}
	c.ended = true
	if len(c.pending) > 0 {
		s.consume(c, append([]byte(nil), c.pending...), eof)
		c.pending = nil
	}
	c.settleAt = time.Time{}
	if len(c.out) == 0 && c.composing == 0 {
		s.drop(c)
		return
	}
	s.interest(c)
}

// drop closes a connection that the client has left.
func (s *Server) drop(c *conn) {
	if c.fd < 0 {
		return
	}
	delete(s.conns, c)
	s.unclaimed.remove(c)
	s.cool(c)
	s.unwatch(c.fd)
	c.fd = -1
	c.out, c.pending, c.settleAt = nil, nil, time.Time{}
	s.count.open.Add(-1)
	if c.owner != nil {
		s.leave(c)
	}
}

// reply queues an answer, whole or not at all.
func (s *Server) reply(c *conn, b []byte) {
	if len(c.out) > maxOut {
		s.count.dropped.Add(1)
		return
	}
	s.count.replies.Add(1)
	c.out = append(c.out, b...)
}

// flush sends what the client takes. MSG_NOSIGNAL: a viewer may have left.
func (s *Server) flush(c *conn) {
	for len(c.out) > 0 {
		n, err := unix.SendmsgN(c.fd, c.out, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch {
		case errors.Is(err, unix.EINTR):
		case errors.Is(err, unix.EAGAIN):
			s.interest(c)
			return
		case err != nil: // it has left; the end of its input tells the rest
			c.out = nil
		default:
			c.out = c.out[:copy(c.out, c.out[n:])]
		}
	}
	if cap(c.out) > 4096 {
		c.out = nil
	}
	if c.finish {
		c.finish = false
		_ = unix.Shutdown(c.fd, unix.SHUT_WR)
	}
	if c.ended && c.composing == 0 {
		s.drop(c)
		return
	}
	s.interest(c)
}
