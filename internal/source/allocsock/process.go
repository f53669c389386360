package allocsock

import (
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
)

// reporter is a process that reports, however many connections it has.
type reporter struct {
	key      model.ProcessID
	uid      int
	ledger   *ledger.Process
	name     string
	sentPID  int
	pidfd    int                // -1 if its exit cannot be watched
	exited   bool               // it exited before we could watch it
	ended    bool               // it is no longer in the ledger
	death    *death             // it has exited, and what it sent is still read; nil otherwise
	conns    map[*conn]struct{} // open ones that it opened
	writes   map[*conn]struct{} // of others, on which it writes
	graceEnd time.Time
	language language
	waiting  []*conn // until its language is known
}

// ownerOf returns the process that opened a connection, identifying it at its
// first event.
func (s *Server) ownerOf(c *conn) *reporter {
	if c.owner != nil {
		return c.owner
	}
	p := s.register(identifyPeer(c.fd, c.cred))
	p.graceEnd = time.Time{}
	s.setOwner(c, p)
	return p
}

// setOwner makes p the owner of a connection.
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
// and its reports are ignored.
func (s *Server) register(who peer) *reporter {
	if p := s.reporters[who.ProcessID]; p != nil {
		if who.pidfd >= 0 {
			unix.Close(who.pidfd)
		}
		return p
	}
	if !s.pools.reporters.Acquire(who.UID, 1) {
		if who.pidfd >= 0 {
			unix.Close(who.pidfd)
		}
		return s.ignoredReporter()
	}
	if who.pidfd >= 0 && !s.pools.descriptors.Acquire(who.UID, 1) {
		unix.Close(who.pidfd) // then its exit shows only by the end of its connections
		who.pidfd = -1
	}
	p := &reporter{key: who.ProcessID, uid: who.UID, name: who.Name, pidfd: who.pidfd, exited: who.exited, conns: map[*conn]struct{}{}}
	p.ledger = s.opt.Ledger.Open(who.Info, s.now)
	s.reporters[p.key] = p
	s.watchProcess(p)
	if p.exited { // already: read what it sent, then remove it
		s.post(func() { s.addDying(p, "exited") })
	}
	s.logLife(who.UID, "process connected", "pid", who.PID, "uid", who.UID, "name", who.Name)
	return p
}

func (s *Server) watchProcess(p *reporter) {
	if p.pidfd < 0 {
		return
	}
	if err := s.watch(p.pidfd, unix.EPOLLIN, watch{reporter: p}); err != nil {
		s.log.Error("cannot watch for process exit", "pid", p.key.PID, "err", err)
		unix.Close(p.pidfd)
		p.pidfd = -1
		s.pools.descriptors.Release(p.uid, 1)
	}
}

// reportLeftovers logs once what a process left behind. The ledger calls it
// from elsewhere.
func (s *Server) reportLeftovers(f ledger.Leftovers) {
	s.post(func() { s.logLeftovers(f) })
}

func (s *Server) logLeftovers(f ledger.Leftovers) {
	u := s.userOf(f.UID)
	s.logFor(u, slog.LevelInfo, "process exited with buffers still allocated", "pid", f.PID, "name", f.Name, "uid", f.UID,
		"buffers", f.Count, "bytes", f.Total(), "largest", f.Largest.Size, "oldest", f.Died.Sub(f.Oldest).Round(time.Millisecond),
		"devices", f.Devices, "how", f.Reason)
}

// removeOwnedConn records that a connection of a process has closed.
func (s *Server) removeOwnedConn(c *conn) {
	p := c.owner
	delete(p.conns, c)
	switch {
	case p.ended || len(p.conns) > 0:
	case p.exited:
		s.addDying(p, "exited")
	case p.pidfd < 0:
		// Only its connection showed that it runs. It may be reconnecting.
		p.graceEnd = s.now.Add(s.opt.Grace)
		if !slices.Contains(s.graces, p) {
			s.graces = append(s.graces, p)
		}
	}
	// Otherwise it runs and holds its buffers, and its pidfd reports its exit.
}

// expireGraces removes processes that have not reconnected in time.
func (s *Server) expireGraces() {
	if len(s.graces) == 0 {
		return
	}
	s.graces = slices.DeleteFunc(s.graces, func(p *reporter) bool {
		if p.ended || p.graceEnd.IsZero() {
			return true
		}
		if s.now.Before(p.graceEnd) {
			return false
		}
		s.addDying(p, "disconnected")
		return true
	})
}
