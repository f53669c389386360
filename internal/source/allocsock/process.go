package allocsock

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/ledger"
)

// proc is a process that reports, however many connections it has.
type proc struct {
	key      ledger.Key
	ledger   *ledger.Process
	name     string
	sentPID  int
	pidfd    int                // -1 if its end cannot be watched
	exited   bool               // it was gone before we could watch it
	ended    bool               // it is no longer in the ledger
	conns    map[*conn]struct{} // open ones
	graceEnd time.Time
	language language
}

// ownerOf returns the process that made a connection, identifying it at its
// first event.
func (s *Server) ownerOf(c *conn) *proc {
	if c.owner != nil {
		return c.owner
	}
	p := s.enrol(lookUp(c.fd, c.cred))
	p.graceEnd = time.Time{}
	s.claim(c, p)
	return p
}

// claim makes p the owner of a connection.
func (s *Server) claim(c *conn, p *proc) {
	s.unclaimed.remove(c)
	c.owner = p
	p.conns[c] = struct{}{}
	if s.opt.OnReporter != nil {
		s.opt.OnReporter(c.fd)
	}
}

// unclaimed are connections on which nothing has been reported yet, by the pid
// of who connected.
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
// not.
func (s *Server) enrol(who peer) *proc {
	if p := s.procs[who.Key]; p != nil {
		if who.pidfd >= 0 {
			unix.Close(who.pidfd)
		}
		return p
	}
	p := &proc{key: who.Key, name: who.Name, pidfd: who.pidfd, exited: who.exited, conns: map[*conn]struct{}{}}
	p.ledger = s.opt.Ledger.Open(who.Info, s.now)
	s.procs[p.key] = p
	s.watchProcess(p)
	if p.exited { // before we looked: take what it said, then take it out
		s.post(func() { s.died(p, "exited") })
	}
	s.log.Debug("a process reports", "pid", who.PID, "uid", who.UID, "name", who.Name)
	return p
}

func (s *Server) watchProcess(p *proc) {
	if p.pidfd < 0 {
		return
	}
	if err := s.watch(p.pidfd, unix.EPOLLIN, watch{proc: p}); err != nil {
		s.log.Error("the end of a process cannot be watched", "pid", p.key.PID, "err", err)
		unix.Close(p.pidfd)
		p.pidfd = -1
	}
}

// died takes a process out: first what it has still said, then what it holds.
func (s *Server) died(p *proc, reason string) {
	if p.ended {
		return
	}
	p.exited = true
	if p.key.PID != 0 {
		// It may have reported on others of its connections that we have not
		// come to yet. Nobody else has had its pid meanwhile.
		s.acceptAll()
		for c := range s.unclaimed[int32(p.key.PID)] {
			s.claim(c, p)
		}
	}
	for c := range maps.Clone(p.conns) {
		for n := 1; n > 0 && c.fd >= 0 && !c.ended; {
			n, _ = s.read(c)
		}
		if c.fd >= 0 && !c.ended {
			// Somebody has inherited the connection. It stays open: a client
			// that lost it would die.
			s.log.Info("a connection outlives the process that made it", "pid", p.key.PID, "name", p.name)
		}
	}
	if p.ended { // its last connection closed just now
		return
	}
	p.ended = true
	delete(s.procs, p.key)
	if p.pidfd >= 0 {
		s.unwatch(p.pidfd)
		p.pidfd = -1
	}
	s.opt.Ledger.End(p.ledger, reason, s.now, s.reportLeftovers)
}

// reportLeftovers logs once what a process left behind.
func (s *Server) reportLeftovers(f ledger.Leftovers) {
	s.log.Info("a process ended without freeing everything", "pid", f.PID, "name", f.Name, "uid", f.UID,
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
	s.graces = slices.DeleteFunc(s.graces, func(p *proc) bool {
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
