package allocsock

import (
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/ledger"
)

// conn is one connection. What no comment says otherwise of belongs to its
// goroutine while Run is running.
type conn struct {
	sock    *socket
	user    *user
	since   time.Time
	cred    *unix.Ucred // of the process that connected
	writer  unix.Ucred  // of what is being decoded; pid 0 if the kernel does not say
	dec     decoder
	pending []byte // read, but not decoded: the beginning of something
	settles bool   // pending may be complete as it is
	ended   bool   // the client will send no more
	warned  bool   // a malformed message has been logged

	// For those who wait until what was sent has been applied: bytes that were taken
	// from the socket, and those of them that were applied.
	taken, applied atomic.Int64
	waits          atomic.Bool // for a text, or an inspection

	// With Server.mu.
	owner      *reporter           // the process that connected; nil until the first event: viewers have none
	inheritors map[int32]*reporter // others that write on it, by pid; nil if none does
	outlived   bool                // the process that opened it has exited
	stored     bool                // the service manager keeps it too
	closed     bool

	replies replies
}

// hasEnded reports whether all that the client ever sent has been applied. It may be
// called from any goroutine.
func (c *conn) hasEnded() bool { return c.applied.Load() == math.MaxInt64 }

// readSize is how many bytes are read at a time, as many messages as a client can have
// in a socket buffer of the default size: they are decoded in a fraction of a
// millisecond, unless their sender is malicious.
const readSize = 32 << 10

// settleTime is how long the decoder waits for the rest of something that may
// be complete as it is.
const settleTime = 10 * time.Millisecond

// addConn starts to serve a connection, for which a descriptor has been
// acquired from the budget. With mu.
func (s *Server) addConn(c *conn) {
	// From now on every read returns the writer; see inherited.go. Without it, all
	// is the owner's.
	_ = unix.SetsockoptInt(c.sock.fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	c.dec.peer = c.cred.Pid
	c.dec.classify = func(counting bool) reading { return s.readingOf(c, counting) }
	c.user = s.userOf(int(c.cred.Uid))
	c.user.conns++
	s.conns[c] = struct{}{}
	s.unclaimed.add(c)
	s.count.open.Add(1)
	s.spawn(func() { s.serve(c) })
}

// serve serves a connection until it ends, or Run is to return.
func (s *Server) serve(c *conn) {
	s.sendRest(c)
	next := s.decodePending(c, drained)
	for {
		switch {
		case next.kind == askReading:
			s.awaitLanguage(c)
			next = s.decodePending(c, drained)
		case next.kind != noRequest:
			s.answerText(c, next)
			next = s.decodePending(c, drained)
		case c.ended:
			s.endReplies(c)
			return
		default:
			var ok bool
			if next, ok = s.read(c); !ok {
				return
			}
		}
		if s.stops() {
			return
		}
	}
}

// decodePending decodes what has been read.
func (s *Server) decodePending(c *conn, end ending) request {
	if c.ended {
		end = eof
	}
	if len(c.pending) == 0 {
		return request{}
	}
	c.user.turn.Lock()
	defer c.user.turn.Unlock()
	l := s.laneOf(c.user)
	l.Lock()
	defer l.Unlock()
	return s.decode(c, l, c.pending, end)
}

// read waits for messages, and decodes them up to a request that takes its time; false:
// Run is to return.
func (s *Server) read(c *conn) (next request, ok bool) {
	settles := c.settles
	if settles {
		_ = c.sock.file.SetReadDeadline(time.Now().Add(settleTime))
		if s.stops() {
			return next, false // the deadline was that of its end
		}
	}
	err := c.sock.raw.Read(func(uintptr) (done bool) {
		next, done = s.readNow(c)
		return done
	})
	if settles {
		_ = c.sock.file.SetReadDeadline(time.Time{})
	}
	if s.stops() {
		return next, false
	}
	if err != nil {
		var done bool
		if next, done = s.readNow(c); !done { // nothing has followed
			next = s.decodePending(c, settled)
		}
	}
	return next, true
}

// readNow reads what is there, once, and decodes it. It is not done where nothing is.
func (s *Server) readNow(c *conn) (next request, done bool) {
	c.user.turn.Lock()
	defer c.user.turn.Unlock()
	l := s.laneOf(c.user)
	l.Lock()
	defer l.Unlock()
	kept := copy(l.buf, c.pending)
	c.taken.Add(readSize) // at most: see receive
	n, errno := l.recv.readFrom(c, l.buf[kept:kept+readSize])
	for errno == unix.EINTR {
		n, errno = l.recv.readFrom(c, l.buf[kept:kept+readSize])
	}
	c.taken.Add(int64(n - readSize))
	switch {
	case errno == unix.EAGAIN:
		return next, false
	case errno != 0, n == 0:
		// A peer that closed without reading gives ECONNRESET, after everything it
		// sent.
		c.ended = true
		next = s.decode(c, l, c.pending, eof)
		c.applied.Store(math.MaxInt64)
		return next, true
	}
	s.count.bytes.Add(uint64(n))
	end := drained
	if n == readSize {
		end = more
	}
	next = s.decode(c, l, l.buf[:kept+n], end)
	c.applied.Add(int64(n))
	return next, true
}

// decode decodes b, applies its events and answers its queries, up to one that takes
// its time, which it returns. b may be c.pending; the rest of it is kept there.
func (s *Server) decode(c *conn, l *lane, b []byte, end ending) (next request) {
	c.dec.events = l.events[:0]
	c.settles = false
	for more := true; more; {
		n, req, wait := c.dec.decode(b, end)
		b = b[n:]
		s.applyEvents(c)
		switch req.kind {
		case flush:
		case noRequest:
			c.settles, more = wait && end == drained && len(b) > 0, false
		case askReading, askDump, askAll:
			next, more = req, false
		default:
			s.answer(c, req)
		}
	}
	if len(b) > maxLine && next.kind == noRequest { // BUG: nothing that long can be the beginning of anything
		c.dec.rejected++
		c.dec.skipped += uint64(len(b))
		b = nil
	}
	if end == eof && next.kind == noRequest {
		b = nil
	}
	c.keep(b)
	c.waits.Store(next.kind != noRequest)
	s.countRejected(c)
	s.sendRest(c)
	return next
}

// keep keeps what has been read and not decoded: often nothing or a few bytes.
func (c *conn) keep(b []byte) {
	if len(b) <= maxLine && cap(c.pending) > maxLine {
		c.pending = nil // what was read before a long wait
	}
	c.pending = append(c.pending[:0], b...) // b may be its end
}

// applyEvents applies the decoded events to the ledger.
func (s *Server) applyEvents(c *conn) {
	if len(c.dec.events) == 0 {
		return
	}
	p, now := s.writerOf(c), time.Now()
	if s.verbose {
		s.logEvents(p, c.dec.events)
	}
	if s.opt.Ledger.Apply(p.ledger, c.dec.events, now) {
		s.logFull(c.user, p, now)
	}
	c.dec.events = c.dec.events[:0]
}

// logFull logs that the ledger has no room for a process.
func (s *Server) logFull(u *user, p *reporter, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(u.fullLoggedAt) > time.Minute {
		u.fullLoggedAt = now
		s.log.Warn("buffer limit reached; figures of process are now lower bounds",
			"pid", p.key.PID, "uid", p.uid, "buffers", s.opt.Ledger.Stats().Buffers)
	}
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
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.owner != nil {
		s.opt.Ledger.Reject(c.owner.ledger, frames, skipped)
	}
	if !c.warned {
		c.warned = true
		s.logFor(c.user, slog.LevelWarn, "malformed client message; skipping", "pid", c.cred.Pid, "uid", c.cred.Uid)
	}
}

// closeConn closes a connection that the client has closed.
func (s *Server) closeConn(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	delete(s.conns, c)
	s.unclaimed.remove(c)
	c.sock.file.Close()
	if c.stored {
		s.pools.stored.Release(c.user.uid, 1)
	}
	s.pools.descriptors.Release(c.user.uid, 1)
	for _, p := range c.inheritors {
		delete(p.writes, c)
	}
	c.inheritors = nil
	s.removeUserConn(c.user)
	s.count.open.Add(-1)
	if c.owner != nil {
		s.removeOwnedConn(c)
	}
}

// replies are what a client has not read yet.
type replies struct {
	mu      sync.Mutex
	out     []byte
	sending bool // a goroutine waits for the client to read
	finish  bool // shut down our side when out is empty
	last    bool // nothing will be added: then the connection is closed
	some    bool // it has been replied to
}

// maxOut bounds the replies that wait for a client that does not read. More are
// dropped, whole: that costs the client, not the others.
const maxOut = 256 << 10

// sendBuffer is what the kernel keeps of replies that a client has not read. It
// is our memory, and 200 KiB by default, for each of thousands of connections.
const sendBuffer = 4 << 10

// reply queues a reply, whole or not at all. sendRest sends it.
func (s *Server) reply(c *conn, b []byte, finish bool) {
	r := &c.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	r.finish = r.finish || finish
	if len(r.out) > maxOut || !s.pools.unread.Acquire(c.user.uid, int64(len(b))) {
		s.count.dropped.Add(1)
		return
	}
	s.count.replies.Add(1)
	r.out = append(r.out, b...)
}

// sendRest sends as much as the client reads now. Another goroutine waits for it to
// read the rest: a client may report for ever and never read an answer.
func (s *Server) sendRest(c *conn) {
	r := &c.replies
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.sending || s.send(c) {
		return
	}
	r.sending = true
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spawn(func() { s.sendLater(c) })
	if s.closing == nil {
		r.sending = false // the rest is exported, or sent by the next Run
	}
}

// sendLater sends what a client did not read at once.
func (s *Server) sendLater(c *conn) {
	r := &c.replies
	_ = c.sock.raw.Write(func(uintptr) bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if !s.send(c) {
			return false
		}
		r.sending = false
		return true
	})
	r.mu.Lock()
	r.sending = false // also where Run is to return
	last := r.last && len(r.out) == 0
	r.mu.Unlock()
	if last {
		s.closeConn(c)
	}
}

// send sends what can be sent; false: there is more. With the lock of the replies.
func (s *Server) send(c *conn) (all bool) {
	r := &c.replies
	if len(r.out) > 0 && !r.some {
		r.some = true
		_ = unix.SetsockoptInt(c.sock.fd, unix.SOL_SOCKET, unix.SO_SNDBUF, sendBuffer)
	}
	for len(r.out) > 0 {
		n, err := unix.SendmsgN(c.sock.fd, r.out, nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
		switch err {
		case nil:
		case unix.EINTR:
			n = 0
		case unix.EAGAIN:
			return false
		default: // it has disconnected; the end of its input does the rest
			n = len(r.out)
		}
		s.pools.unread.Release(c.user.uid, int64(n))
		r.out = r.out[:copy(r.out, r.out[n:])]
	}
	if cap(r.out) > 4096 {
		r.out = nil
	}
	if r.finish {
		r.finish = false
		_ = unix.Shutdown(c.sock.fd, unix.SHUT_WR)
	}
	return true
}

// endReplies closes a connection on which the client sends no more, when it has read
// its replies.
func (s *Server) endReplies(c *conn) {
	r := &c.replies
	r.mu.Lock()
	r.last = true
	last := len(r.out) == 0
	r.mu.Unlock()
	if last {
		s.closeConn(c)
	}
}
