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
	pidfd    int                // -1 if its end cannot be watched
	exited   bool               // it was gone before we could watch it
	ended    bool               // it is no longer in the ledger
	death    *death             // it has ended, and is still heard; nil otherwise
	conns    map[*conn]struct{} // open ones that it made
	writes   map[*conn]struct{} // others' on which it writes
	graceEnd time.Time
	language language
	waiting  []*conn // until its language is known
}

// ownerOf returns the process that made a connection, identifying it at its
// first event.
func (s *Server) ownerOf(c *conn) *reporter {
	if c.owner != nil {
		return c.owner
	}
	p := s.enrol(lookUp(c.fd, c.cred))
	p.graceEnd = time.Time{}
	s.claim(c, p)
	return p
}

// claim makes p the owner of a connection.
func (s *Server) claim(c *conn, p *reporter) {
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

// enrol returns the process that was identified, and makes it known if it is
// not. A process of a user who has too many is nobody: its connection stays
// open, and what it says is ignored.
func (s *Server) enrol(who peer) *reporter {
	if p := s.reporters[who.ProcessID]; p != nil {
		if who.pidfd >= 0 {
			unix.Close(who.pidfd)
		}
		return p
	}
	if !s.pools.reporters.Take(who.UID, 1) {
		if who.pidfd >= 0 {
			unix.Close(who.pidfd)
		}
		return s.nobody()
	}
	if who.pidfd >= 0 && !s.pools.descriptors.Take(who.UID, 1) {
		unix.Close(who.pidfd) // then the end of its connections must tell
		who.pidfd = -1
	}
	p := &reporter{key: who.ProcessID, uid: who.UID, name: who.Name, pidfd: who.pidfd, exited: who.exited, conns: map[*conn]struct{}{}}
	p.ledger = s.opt.Ledger.Open(who.Info, s.now)
	s.reporters[p.key] = p
	s.watchProcess(p)
	if p.exited { // before we looked: take what it said, then take it out
		s.post(func() { s.died(p, "exited") })
	}
	s.log.Debug("process connected", "pid", who.PID, "uid", who.UID, "name", who.Name)
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
		s.pools.descriptors.Give(p.uid, 1)
	}
}

// reportLeftovers logs once what a process left behind. The ledger calls it
// from elsewhere.
func (s *Server) reportLeftovers(f ledger.Leftovers) {
	s.post(func() { s.logLeftovers(f) })
}

func (s *Server) logLeftovers(f ledger.Leftovers) {
	u := s.account(f.UID)
	s.say(u, slog.LevelInfo, "process exited with buffers still allocated", "pid", f.PID, "name", f.Name, "uid", f.UID,
		"buffers", f.Count, "bytes", f.Total(), "largest", f.Largest.Size, "oldest", f.Died.Sub(f.Oldest).Round(time.Millisecond),
		"devices", f.Devices, "how", f.Reason)
}

// leave notes that a connection of a process has closed.
func (s *Server) leave(c *conn) {
	p := c.owner
	delete(p.conns, c)
	switch {
	case p.ended || len(p.conns) > 0:
	case p.exited:
		s.died(p, "exited")
	case p.pidfd < 0:
		// Nothing but its connection showed that it lives. It may only have
		// reconnected.
		p.graceEnd = s.now.Add(s.opt.Grace)
		if !slices.Contains(s.graces, p) {
			s.graces = append(s.graces, p)
		}
	}
	// Otherwise it lives, holds what it holds, and its pidfd tells its end.
}

// endGraces takes out processes that have not come back.
func (s *Server) endGraces() {
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
		s.died(p, "disconnected")
		return true
	})
}
