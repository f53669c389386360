package allocsock

import (
	"log/slog"
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// reporter is a process that reports, however many connections it has.
type reporter struct {
	key    model.ProcessID
	uid    int
	ledger *ledger.Process
	name   string
	exit   *socket // its pidfd; nil if its exit cannot be watched

	// With Server.mu.
	sentPID   int
	leaves    string             // how it has exited; what it sent is still read. Empty: it has not
	ended     bool               // it is no longer in the ledger
	conns     map[*conn]struct{} // open ones that it opened
	lastConns int                // times that the last of them was closed
	writes    map[*conn]struct{} // of others, on which it writes
	language  language
	inspected chan struct{} // closed when its language is known; nil: it is not being inspected
}

// ownerOf returns the process that opened a connection, identifying it at its
// first event.
func (s *Server) ownerOf(c *conn) *reporter {
	s.mu.Lock()
	owner := c.owner
	s.mu.Unlock()
	if owner != nil {
		return owner
	}
	who := identifyPeer(c.sock.fd, c.cred)
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.register(who)
	if c.owner == nil {
		s.setOwner(c, p)
	}
	return c.owner
}

// setOwner makes p the owner of a connection. With mu.
func (s *Server) setOwner(c *conn, p *reporter) {
	s.unclaimed.remove(c)
	c.owner = p
	p.conns[c] = struct{}{}
	s.storeLater(c)
}

// unclaimed are connections on which nothing has been reported yet, by the pid
// of the process that connected.
type unclaimed map[int32]map[*conn]struct{}

func (u unclaimed) add(c *conn) {
	if u[c.cred.Pid] == nil {
		u[c.cred.Pid] = map[*conn]struct{}{}
	}
	u[c.cred.Pid][c] = struct{}{}
}

func (u unclaimed) remove(c *conn) {
	delete(u[c.cred.Pid], c)
	if len(u[c.cred.Pid]) == 0 {
		delete(u, c.cred.Pid)
	}
}

// register returns the reporter of an identified process, and adds it if it is
// new. Beyond a user's limit it is an ignored one: its connection stays open,
// and its reports are ignored. With mu.
func (s *Server) register(who peer) *reporter {
	if p := s.reporters[who.ProcessID]; p != nil {
		who.close()
		return p
	}
	if !s.pools.reporters.Acquire(who.UID, 1) {
		who.close()
		return s.ignoredReporter()
	}
	if who.pidfd >= 0 && !s.pools.descriptors.Acquire(who.UID, 1) {
		who.close() // then its exit shows only by the end of its connections
	}
	p := &reporter{key: who.ProcessID, uid: who.UID, name: who.Name, conns: map[*conn]struct{}{}}
	if who.exited { // already: read what it sent, then remove it
		p.leaves = exited
	}
	p.ledger = s.opt.Ledger.Open(who.Info, time.Now())
	s.reporters[p.key] = p
	s.setExit(p, who.pidfd)
	s.watchProcess(p)
	s.logLife(who.UID, "process connected", "pid", who.PID, "uid", who.UID, "name", who.Name)
	return p
}

// setExit lets the exit of a process be watched by its pidfd, for which a descriptor
// has been acquired; -1 for none.
func (s *Server) setExit(p *reporter, pidfd int) {
	if pidfd < 0 {
		return
	}
	var err error
	if p.exit, err = newSocket(pidfd); err != nil {
		s.log.Error("cannot watch for process exit", "pid", p.key.PID, "err", err)
		s.pools.descriptors.Release(p.uid, 1)
	}
}

// How the exit of a process was noticed.
const (
	exited       = "exited"
	disconnected = "disconnected"
)

// watchProcess waits for the exit of a process. With mu.
func (s *Server) watchProcess(p *reporter) {
	switch {
	case p.leaves != "":
		s.spawn(func() { s.end(p, p.leaves) })
	case p.exit != nil:
		x := p.exit
		s.spawn(func() {
			if x.raw.Read(func(fd uintptr) bool { return hasExited(int(fd)) }) == nil {
				s.end(p, exited)
			}
		})
	case len(p.conns) == 0:
		s.awaitReturn(p)
	}
}

// awaitReturn gives a process whose exit cannot be watched a little time to connect
// again: only its connection showed that it runs. With mu.
func (s *Server) awaitReturn(p *reporter) {
	p.lastConns++
	last := p.lastConns
	stopped := s.closing
	s.spawn(func() {
		select {
		case <-time.After(s.opt.Grace):
		case <-stopped:
			return
		}
		s.mu.Lock()
		gone := len(p.conns) == 0 && p.lastConns == last
		s.mu.Unlock()
		if gone {
			s.end(p, disconnected)
		}
	})
}

// removeOwnedConn records that a connection of a process has closed. With mu.
func (s *Server) removeOwnedConn(c *conn) {
	p := c.owner
	delete(p.conns, c)
	// Otherwise it runs and holds its buffers, and its pidfd reports its exit.
	if !p.ended && p.leaves == "" && p.exit == nil && len(p.conns) == 0 {
		s.awaitReturn(p)
	}
}

// exitTimeout bounds how long the messages of an exited process are read. The
// rest is lost.
const exitTimeout = 2 * time.Second

// end removes a process that has exited. It may have sent messages that have not been
// read: on its connections, and on some that wait to be accepted. They are read first.
// Only what was there when it exited can be its own, so that is all that is waited
// for: children that keep writing do not keep it alive.
func (s *Server) end(p *reporter, reason string) {
	s.mu.Lock()
	if p.leaves = reason; p.exit != nil {
		p.exit.file.Close()
		p.exit = nil
		s.pools.descriptors.Release(p.uid, 1)
	}
	s.mu.Unlock()
	s.count.ending.Add(1)
	defer s.count.ending.Add(-1)
	deadline := time.Now().Add(exitTimeout)
	if !s.acceptWaiting(deadline, s.stops) || !s.receiveFrom(s.connsOf(p), deadline, true, s.stops) {
		if s.stops() {
			return // the next Run continues
		}
		s.count.hurried.Add(1)
	}
	s.removeReporter(p)
}

// connsOf are the connections of a process that has exited, also those on which it has
// reported nothing that was read.
func (s *Server) connsOf(p *reporter) (list []*conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range slices.Collect(maps.Keys(s.unclaimed[int32(p.key.PID)])) {
		s.mu.Unlock() // there may be thousands
		s.mu.Lock()
		if p.key.PID != 0 && int(c.cred.Uid) == p.uid && c.owner == nil && !c.closed && peerHasExited(c) {
			s.setOwner(c, p)
		}
	}
	return slices.Collect(maps.Keys(p.conns))
}

// peerHasExited reports whether the process that opened a connection has
// exited. Another process may have its pid by now.
func peerHasExited(c *conn) bool {
	pidfd, exited := openPIDFD(c.sock.fd, int(c.cred.Pid))
	if pidfd < 0 {
		return exited
	}
	defer unix.Close(pidfd)
	return hasExited(pidfd)
}

// removeReporter removes a process from the ledger.
func (s *Server) removeReporter(p *reporter) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p.ended {
		return
	}
	for c := range p.conns {
		if !c.hasEnded() && !c.outlived {
			// Another process has inherited the connection. It stays open: a client that
			// lost it would die.
			c.outlived = true
			s.logFor(c.user, slog.LevelDebug, "connection outlives its process", "pid", p.key.PID, "name", p.name)
		}
	}
	for c := range p.writes {
		delete(c.inheritors, int32(p.key.PID))
	}
	p.ended, p.writes = true, nil
	delete(s.reporters, p.key)
	s.pools.reporters.Release(p.uid, 1)
	s.logLife(p.uid, "process exited", "pid", p.key.PID, "uid", p.uid, "name", p.name, "how", p.leaves)
	s.opt.Ledger.End(p.ledger, p.leaves, time.Now(), s.logLeftovers)
}

// logLeftovers logs once what a process left behind.
func (s *Server) logLeftovers(f ledger.Leftovers) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logFor(s.userOf(f.UID), slog.LevelInfo, "process exited with buffers still allocated", "pid", f.PID, "name", f.Name, "uid", f.UID,
		"buffers", f.Count, "bytes", f.Total(), "largest", f.Largest.Size, "oldest", f.Died.Sub(f.Oldest).Round(time.Millisecond),
		"devices", f.Devices, "how", f.Reason)
}
