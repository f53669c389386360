package allocsock

import (
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A process that has exited may have sent messages that have not been read: on
// its connections, and on some that wait to be accepted. They are read first,
// in slices. Only what was there when it exited can be its own, so that is all
// that is waited for: children that keep writing do not keep it alive.

// exitTimeout bounds how long the messages of an exited process are read. The
// rest is lost.
const exitTimeout = 2 * time.Second

// maxBacklog is how many clients wait to be accepted at most, also on an
// inherited socket: all that waited at first have been accepted after so many
// accepts.
const maxBacklog = 4096

// death is what is still to be done for a process that has exited.
type death struct {
	reason     string
	deadline   time.Time
	emptied    uint64 // Server.emptied when it exited
	accepted   uint64 // connections accepted until then
	measured   bool
	unverified []*conn       // may be its own: to be checked
	own        []*conn       // to be measured
	left       map[*conn]int // bytes to be read
}

// addDying records that a process has exited.
func (s *Server) addDying(p *reporter, reason string) {
	if p.ended || p.death != nil {
		return
	}
	p.exited = true
	if p.pidfd >= 0 {
		s.unwatch(p.pidfd)
		p.pidfd = -1
		s.pools.descriptors.Release(p.uid, 1)
	}
	p.death = &death{reason: reason, deadline: s.now.Add(exitTimeout), emptied: s.emptied, accepted: s.count.accepted.Load()}
	s.dying = append(s.dying, p)
	s.count.dying.Add(1)
}

// serveDying continues with processes that have exited.
func (s *Server) serveDying() {
	if len(s.dying) == 0 {
		return
	}
	start := time.Now()
	for range len(s.dying) {
		if time.Since(start) > choreTime {
			break // a turn may not come to all of them; the next begins behind
		}
		if s.dyingFrom++; s.dyingFrom >= len(s.dying) {
			s.dyingFrom = 0
		}
		if p := s.dying[s.dyingFrom]; !p.ended && s.readRemaining(p) {
			s.removeReporter(p)
		}
	}
	s.dying = slices.DeleteFunc(s.dying, func(p *reporter) bool { return p.ended })
	s.count.dying.Store(int64(len(s.dying)))
	s.mark(workEnds)
}

// readRemaining reads what a process had sent before it exited; true when that
// was all.
func (s *Server) readRemaining(p *reporter) bool {
	d := p.death
	if !s.now.Before(d.deadline) {
		s.count.hurried.Add(1)
		return true
	}
	if !d.measured {
		if s.listener >= 0 && s.emptied == d.emptied && s.count.accepted.Load()-d.accepted < maxBacklog {
			return false
		}
		if !s.measureUnread(p) {
			return false
		}
	}
	all := true
	for c := range d.left {
		switch {
		case c.fd < 0 || c.ended:
			delete(d.left, c)
		case !s.hasOwnShare(c.user):
			return false // there may be thousands
		case c.parked:
			all = false
		default:
			n, _ := s.read(c)
			s.endStep(c.user)
			if d.left[c] -= n; !c.parked && (n == 0 || d.left[c] <= 0) {
				delete(d.left, c)
			} else {
				all = false
			}
		}
	}
	return all
}

// measureUnread finds out what is left to be read, a few connections at a time;
// true when that is known.
func (s *Server) measureUnread(p *reporter) bool {
	d := p.death
	if d.left == nil {
		d.left = map[*conn]int{}
		for c := range s.unclaimed[int32(p.key.PID)] {
			if p.key.PID != 0 && int(c.cred.Uid) == p.uid {
				d.unverified = append(d.unverified, c)
			}
		}
		for c := range p.conns {
			d.own = append(d.own, c)
		}
	}
	for n := 0; n < measuredAtATime && len(d.unverified) > 0; n++ {
		c := d.unverified[0]
		if d.unverified = d.unverified[1:]; c.fd >= 0 && c.owner == nil && peerHasExited(c) {
			s.setOwner(c, p)
			d.own = append(d.own, c)
		}
	}
	for n := 0; n < measuredAtATime && len(d.own) > 0; n++ {
		c := d.own[0]
		if d.own = d.own[1:]; c.fd < 0 || c.ended {
			continue
		}
		if n, err := unix.IoctlGetInt(c.fd, unix.SIOCINQ); err == nil && n > 0 {
			d.left[c] = n
		}
	}
	d.measured = len(d.unverified) == 0 && len(d.own) == 0
	return d.measured
}

// measuredAtATime is how many connections of an exited process are measured at
// a time.
const measuredAtATime = 32

// peerHasExited reports whether the process that opened a connection has
// exited. Another process may have its pid by now.
func peerHasExited(c *conn) bool {
	pidfd, exited := openPIDFD(c.fd, int(c.cred.Pid))
	if pidfd < 0 {
		return exited
	}
	defer unix.Close(pidfd)
	return hasExited(pidfd)
}

// removeReporter removes a process from the ledger.
func (s *Server) removeReporter(p *reporter) {
	for c := range p.conns {
		if c.fd >= 0 && !c.ended && !c.outlived {
			// Another process has inherited the connection. It stays open: a client that
			// lost it would die.
			c.outlived = true
			s.logFor(c.user, slog.LevelDebug, "connection outlives its process", "pid", p.key.PID, "name", p.name)
		}
	}
	for c := range p.writes {
		delete(c.inheritors, int32(p.key.PID))
	}
	reason := p.death.reason
	p.ended, p.death, p.writes = true, nil, nil
	delete(s.reporters, p.key)
	s.pools.reporters.Release(p.uid, 1)
	s.logLife(p.uid, "process exited", "pid", p.key.PID, "uid", p.uid, "name", p.name, "how", reason)
	s.opt.Ledger.End(p.ledger, reason, s.now, s.reportLeftovers)
}
