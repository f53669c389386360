package allocsock

import (
	"log/slog"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/ledger"
)

// conn is one connection.
type conn struct {
	fd         int
	user       *user
	since      time.Time
	cred       *unix.Ucred         // of the process that connected
	owner      *reporter           // the process that connected; nil until the first event: viewers have none
	writer     unix.Ucred          // of what is being decoded; pid 0 if the kernel does not say
	inheritors map[int32]*reporter // others that write on it, by pid; nil if none does
	dec        decoder
	pending    []byte // read, but not decoded: the beginning of something
	out        []byte // replies that the client has not read
	interest   uint32 // what epoll watches it for
	ended      bool   // the client will send no more
	finish     bool   // shut down our side when out is empty
	warned     bool   // a malformed message has been logged
	composing  int    // texts that are being made for it
	parked     bool   // not read: it waits for a text, an inspection or its turn
	unwatched  bool   // parked, and not in the set of its user
	resumes    bool   // it is in user.resuming
	outlived   bool   // the process that opened it has exited
	stored     bool   // the service manager keeps it too
	replied    bool   // it has been replied to
	appetite   int    // bytes to read at a time: what can be booked in stepTime
	settleAt   time.Time

	// For the choice between being woken and being swept.
	swept     bool
	hotAt     int // its place in user.hot
	wakes     int
	wakeSince time.Time
	idle      int // sweeps in a row that found little
}

// maxOut bounds the replies that wait for a client that does not read. More are
// dropped, whole: that costs the client, not the others.
const maxOut = 256 << 10

// sendBuffer is what the kernel keeps of replies that a client has not read. It
// is our memory, and 200 KiB by default, for each of thousands of connections.
const sendBuffer = 4 << 10

// Bytes that are read at a time, at least and at most.
const (
	minAppetite = 2 << 10
	maxAppetite = bufLen
)

// addConn starts to serve a connection, for which a descriptor has been
// acquired from the budget.
func (s *Server) addConn(c *conn) error {
	// From now on every read returns the writer; see inherited.go. Without it, all
	// is the owner's.
	rawPassCredentials(c.fd)
	c.interest, c.appetite = unix.EPOLLIN, 2*minAppetite
	c.dec.peer = c.cred.Pid
	c.dec.classify = func(counting bool) reading { return s.readingOf(c, counting) }
	var err error
	if c.user, err = s.addUserConn(int(c.cred.Uid)); err != nil {
		return err
	}
	if err := s.watchIn(c.user.set, c.fd, c.interest, watch{conn: c}); err != nil {
		s.removeUserConn(c.user)
		return err
	}
	s.conns[c] = struct{}{}
	s.unclaimed.add(c)
	s.count.open.Add(1)
	return nil
}

// serveConn serves a connection that epoll reported.
func (s *Server) serveConn(c *conn, events uint32) {
	if events&unix.EPOLLOUT != 0 {
		s.flush(c)
	}
	switch {
	case c.ended:
		if events&(unix.EPOLLHUP|unix.EPOLLERR) != 0 {
			s.closeConn(c)
		}
	case events&(unix.EPOLLIN|unix.EPOLLHUP|unix.EPOLLERR|unix.EPOLLRDHUP) != 0:
		s.count.wakes.Add(1)
		s.read(c)
		s.considerSweeping(c)
	}
}

// read reads a connection, for as long as a step may take. It returns the
// number of bytes and whether the connection still had more.
func (s *Server) read(c *conn) (got int, left bool) {
	for !c.parked {
		kept := copy(s.buf, c.pending)
		space := s.buf[kept : kept+c.appetite]
		n, errno := s.recv.readFrom(c, space)
		switch {
		case errno == unix.EAGAIN, errno == unix.EINTR:
			return got, false
		case errno != 0, n == 0:
			// A peer that closed without reading gives ECONNRESET, after everything it
			// sent.
			s.handleEOF(c)
			return got, false
		}
		got += n
		s.count.bytes.Add(uint64(n))
		full := n == len(space)
		if full {
			s.consume(c, s.buf[:kept+n], more)
		} else {
			s.consume(c, s.buf[:kept+n], drained)
		}
		if !full && c.inheritors == nil && n <= 2*minAppetite {
			return got, false // that cannot have taken long
		}
		switch late := s.overTime(); {
		case late && n == got: // the first read of this step
			c.appetite = max(c.appetite/2, minAppetite)
			return got, true
		case late:
			return got, true
		case full:
			c.appetite = min(2*c.appetite, maxAppetite)
		case c.inheritors == nil: // otherwise a read ends where another process's writes begin
			return got, false
		}
	}
	return got, false
}

// consume decodes b, applies its events and answers its queries. b may be in
// s.buf or be c.pending; the rest of it is kept in c.pending.
func (s *Server) consume(c *conn, b []byte, e ending) {
	c.dec.events = s.events[:0]
	borrowed := c.out == nil
	if borrowed {
		c.out = s.replies[:0]
	}
	for {
		n, req, wait := c.dec.decode(b, e)
		b = b[n:]
		s.applyEvents(c)
		if req.kind == noRequest {
			s.settleLater(c, wait && e == drained && len(b) > 0)
			break
		}
		if req.kind == askReading {
			s.park(c)
			break
		}
		if req.kind != flush {
			s.answer(c, req)
		}
		if c.composing > 0 && !c.ended {
			s.park(c)
			break
		}
		if len(b) > 0 && s.overTime() {
			s.continueLater(c)
			break
		}
	}
	if len(b) > maxLine && !c.parked { // BUG: nothing that long can be the beginning of anything
		c.dec.rejected++
		c.dec.skipped += uint64(len(b))
		b = nil
	}
	s.keepPending(c, b)
	s.countRejected(c)
	if len(c.out) > 0 || c.finish {
		s.flush(c)
	}
	if borrowed {
		c.out = append([]byte(nil), c.out...) // what it has not read, if anything
	}
}

// overTime reports whether a step has taken as long as it may. If another
// thread had the CPU meanwhile, it has not: then the thread's own clock is
// read, which takes a system call. It may include what was done before the
// step: at most the turn so far, and some 0.2 ms.
func (s *Server) overTime() bool {
	return time.Since(s.clock) > s.stepTime && s.loopStats.cpu.sinceRead() > s.stepTime
}

// keepPending keeps what has been read from a connection and not decoded: often
// nothing or a few bytes; where it has taken too long, all of a large read. The
// buffers for that are reused: on a busy machine it happens a thousand times a
// second.
func (s *Server) keepPending(c *conn, b []byte) {
	if len(b) > max(cap(c.pending), maxLine) && c.resumes {
		if last := len(s.rooms) - 1; last >= 0 {
			c.pending, s.rooms = s.rooms[last], s.rooms[:last]
		} else {
			c.pending = make([]byte, 0, len(s.buf))
		}
	}
	c.pending = append(c.pending[:0], b...) // b may be its end
	if len(b) <= maxLine && cap(c.pending) > maxLine {
		room := c.pending
		c.pending = append([]byte(nil), b...)
		if cap(room) >= len(s.buf) && len(s.rooms) < maxRooms {
			s.rooms = append(s.rooms, room[:0])
		}
	}
}

// maxRooms is how many of these buffers are kept for reuse.
const maxRooms = 4

// continueLater has the loop continue with a connection in a later turn: it has
// taken too long. That is soon, so it is watched and swept as before.
func (s *Server) continueLater(c *conn) {
	c.parked = true
	s.settleLater(c, false)
	s.unpark(c)
}

// park stops reading a connection until unpark. It is not even watched: a
// hang-up meanwhile would be reported again and again.
func (s *Server) park(c *conn) {
	c.parked, c.unwatched = true, true
	s.stopSweeping(c)
	s.settleLater(c, false)
	_ = unix.EpollCtl(c.user.set, unix.EPOLL_CTL_DEL, c.fd, nil)
}

// unpark has the loop continue with a connection when it is its user's turn.
func (s *Server) unpark(c *conn) {
	if c.fd < 0 || !c.parked || c.composing > 0 || c.resumes {
		return
	}
	c.resumes = true
	u := c.user
	if len(u.resuming) == 0 {
		s.resuming = append(s.resuming, u)
	}
	u.resuming = append(u.resuming, c)
}

// resume continues with connections of a user, as long as its share lasts.
// Until then nothing more is read for the user, so that little waits undecoded.
func (s *Server) resume(u *user) {
	n := 0
	for ; n < len(u.resuming) && s.hasShare(u); n++ {
		c := u.resuming[n]
		u.resuming[n] = nil
		if c.resumes = false; c.fd >= 0 {
			s.continueConn(c)
			s.endStep(u)
		}
	}
	if u.resuming = u.resuming[n:]; len(u.resuming) == 0 {
		u.resuming = nil
	}
}

// continueConn continues with a connection.
func (s *Server) continueConn(c *conn) {
	c.parked = false
	if c.unwatched {
		c.unwatched = false
		_ = unix.EpollCtl(c.user.set, unix.EPOLL_CTL_ADD, c.fd, &unix.EpollEvent{Events: c.interest, Fd: int32(c.fd)})
	}
	if c.ended {
		s.endInput(c)
		return
	}
	s.consume(c, c.pending, drained)
	if c.fd >= 0 && !c.parked {
		s.updateInterest(c)
	}
}

// applyEvents applies the decoded events to the ledger.
func (s *Server) applyEvents(c *conn) {
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
	if s.opt.Ledger.Apply(p.ledger, c.dec.events, s.now) && s.now.Sub(c.user.fullLoggedAt) > time.Minute {
		c.user.fullLoggedAt = s.now
		s.log.Warn("buffer limit reached; figures of process are now lower bounds",
			"pid", p.key.PID, "uid", p.uid, "buffers", s.opt.Ledger.Stats().Buffers)
	}
	c.dec.events = c.dec.events[:0]
}

// logEvents logs the first events of a batch; the log leaves out what is too
// much of one kind.
func (s *Server) logEvents(p *reporter, events []ledger.Event) {
	const most = 20
	for _, e := range events[:min(len(events), most)] {
		s.log.Debug("client message", "op", e.Op.String(), "pid", p.key.PID, "device", e.Device, "id", e.ID, "bytes", e.Size)
	}
	if len(events) > most {
		s.log.Debug("more client messages", "pid", p.key.PID, "count", len(events)-most)
	}
}

// countRejected counts malformed messages, and logs the first of a connection.
func (s *Server) countRejected(c *conn) {
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
		s.logFor(c.user, slog.LevelWarn, "malformed client message; skipping", "pid", c.cred.Pid, "uid", c.cred.Uid)
	}
}

// settling is a connection that waits for the rest of a message.
type settling struct {
	conn *conn
	at   time.Time
}

// settleLater schedules decodeSettled: what a connection sent may be complete.
func (s *Server) settleLater(c *conn, wait bool) {
	if !wait {
		c.settleAt = time.Time{} // decodeSettled removes it from the list
		return
	}
	c.settleAt = s.now.Add(settleTime)
	s.settling = append(s.settling, settling{c, c.settleAt})
}

// decodeSettled decodes what nothing has followed for settleTime.
func (s *Server) decodeSettled() {
	if len(s.settling) == 0 {
		return
	}
	n := 0
	for ; n < len(s.settling) && !s.now.Before(s.settling[n].at); n++ {
		c, at := s.settling[n].conn, s.settling[n].at
		if c.fd < 0 || c.parked || !c.settleAt.Equal(at) {
			continue // gone, or something has come since
		}
		if !s.hasShare(c.user) {
			s.settleLater(c, true)
			continue
		}
		c.settleAt = time.Time{}
		s.consume(c, c.pending, settled)
		s.endStep(c.user)
	}
	if s.settling = s.settling[n:]; len(s.settling) == 0 {
		s.settling = nil
	}
	s.mark(workSettle)
}

// handleEOF handles a client that will send no more: it has closed the
// connection, or shut down half of it and waits for an answer.
func (s *Server) handleEOF(c *conn) {
	if !c.ended {
		c.ended = true
		s.endInput(c)
	}
}

// endInput decodes the last of what a client sent.
func (s *Server) endInput(c *conn) {
	if len(c.pending) > 0 {
		s.consume(c, c.pending, eof)
	}
	if c.fd < 0 || c.parked {
		return
	}
	c.pending, c.settleAt = nil, time.Time{}
	if len(c.out) == 0 && c.composing == 0 {
		s.closeConn(c)
		return
	}
	s.updateInterest(c)
}

// closeConn closes a connection that the client has closed.
func (s *Server) closeConn(c *conn) {
	if c.fd < 0 {
		return
	}
	delete(s.conns, c)
	s.unclaimed.remove(c)
	s.stopSweeping(c)
	s.unwatchIn(c.user.set, c.fd)
	c.fd = -1
	s.releaseUnread(c, len(c.out))
	if c.stored {
		s.pools.stored.Release(c.user.uid, 1)
	}
	s.pools.descriptors.Release(c.user.uid, 1)
	for _, p := range c.inheritors {
		delete(p.writes, c)
	}
	c.out, c.pending, c.inheritors, c.settleAt = nil, nil, nil, time.Time{}
	s.removeUserConn(c.user)
	s.count.open.Add(-1)
	if c.owner != nil {
		s.removeOwnedConn(c)
	}
}

// releaseUnread releases the budget for bytes that were sent, or never will be.
func (s *Server) releaseUnread(c *conn, n int) { s.pools.unread.Release(c.user.uid, int64(n)) }

// reply queues a reply, whole or not at all.
func (s *Server) reply(c *conn, b []byte) {
	if len(c.out) > maxOut || !s.pools.unread.Acquire(c.user.uid, int64(len(b))) {
		s.count.dropped.Add(1)
		return
	}
	s.count.replies.Add(1)
	c.out = append(c.out, b...)
}

// flush sends as much as the client reads.
func (s *Server) flush(c *conn) {
	if len(c.out) > 0 && !c.replied {
		c.replied = true
		rawSendBuffer(c.fd, sendBuffer)
	}
	for len(c.out) > 0 {
		n, errno := rawSend(c.fd, c.out)
		switch errno {
		case 0:
			s.releaseUnread(c, n)
			c.out = c.out[:copy(c.out, c.out[n:])]
		case unix.EINTR:
		case unix.EAGAIN:
			s.updateInterest(c)
			return
		default: // it has disconnected; the EOF of its input does the rest
			s.releaseUnread(c, len(c.out))
			c.out = nil
		}
	}
	if cap(c.out) > 4096 {
		c.out = nil
	}
	if c.finish {
		c.finish = false
		_ = unix.Shutdown(c.fd, unix.SHUT_WR)
	}
	if c.ended && c.composing == 0 && !c.parked {
		s.closeConn(c)
		return
	}
	s.updateInterest(c)
}
