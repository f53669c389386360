package allocsock

import (
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// A process that has ended may have said things that have not been read: on
// its connections, and on some that wait to be accepted. They are read first,
// in slices. Only what was there when it ended can be its own, so that is all
// that is waited for: children that go on writing do not keep it alive.

// deathTime is how long the end of a process may take. Whoever makes it take
// longer loses the rest.
const deathTime = 2 * time.Second

// maxBacklog is how many clients wait to be accepted at most, also on a socket
// that somebody else has made: the first of them are behind us after so many
// accepts.
const maxBacklog = 4096

// death is what is still to be done for a process that has ended.
type death struct {
	reason   string
	by       time.Time
	emptied  uint64 // Server.emptied when it ended
	accepted uint64 // connections accepted until then
	measured bool
	strange  []*conn       // may be its own: to be looked at
	own      []*conn       // to be measured
	left     map[*conn]int // bytes to be read
}

// died notes that a process has ended.
func (s *Server) died(p *reporter, reason string) {
	if p.ended || p.death != nil {
		return
	}
	p.exited = true
	if p.pidfd >= 0 {
		s.unwatch(p.pidfd)
		p.pidfd = -1
		s.pools.descriptors.Give(p.uid, 1)
	}
	p.death = &death{reason: reason, by: s.now.Add(deathTime), emptied: s.emptied, accepted: s.count.accepted.Load()}
	s.dying = append(s.dying, p)
	s.count.dying.Add(1)
}

// tendDying goes on with processes that have ended.
func (s *Server) tendDying() {
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
		if p := s.dying[s.dyingFrom]; !p.ended && s.hearOut(p) {
			s.retire(p)
		}
	}
	s.dying = slices.DeleteFunc(s.dying, func(p *reporter) bool { return p.ended })
	s.count.dying.Store(int64(len(s.dying)))
	s.mark(workEnds)
}

// hearOut reads what a process had still said; true when that was all.
func (s *Server) hearOut(p *reporter) bool {
	d := p.death
	if !s.now.Before(d.by) {
		s.count.hurried.Add(1)
		return true
	}
	if !d.measured {
		if s.listener >= 0 && s.emptied == d.emptied && s.count.accepted.Load()-d.accepted < maxBacklog {
			return false
		}
		if !s.measure(p) {
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
			s.step(c.user)
			if d.left[c] -= n; !c.parked && (n == 0 || d.left[c] <= 0) {
				delete(d.left, c)
			} else {
				all = false
			}
		}
	}
	return all
}

// measure finds out what is left to be read, a few connections at a time; true
// when that is known.
func (s *Server) measure(p *reporter) bool {
	d := p.death
	if d.left == nil {
		d.left = map[*conn]int{}
		for c := range s.unclaimed[int32(p.key.PID)] {
			if p.key.PID != 0 && int(c.cred.Uid) == p.uid {
				d.strange = append(d.strange, c)
			}
		}
		for c := range p.conns {
			d.own = append(d.own, c)
		}
	}
	for n := 0; n < measuredAtATime && len(d.strange) > 0; n++ {
		c := d.strange[0]
		if d.strange = d.strange[1:]; c.fd >= 0 && c.owner == nil && peerHasExited(c) {
			s.claim(c, p)
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
	d.measured = len(d.strange) == 0 && len(d.own) == 0
	return d.measured
}

// measuredAtATime is how many connections of a process that has ended are
// looked at before the clock is.
const measuredAtATime = 32

// peerHasExited reports whether who made a connection is gone. Another process
// may have its pid by now.
func peerHasExited(c *conn) bool {
	pidfd, exited := openPIDFD(c.fd, int(c.cred.Pid))
	if pidfd < 0 {
		return exited
	}
	defer unix.Close(pidfd)
	return hasExited(pidfd)
}

// retire takes a process out of the ledger.
func (s *Server) retire(p *reporter) {
	for c := range p.conns {
		if c.fd >= 0 && !c.ended && !c.outlived {
			// Somebody has inherited the connection. It stays open: a client
			// that lost it would die.
			c.outlived = true
			s.say(c.user, slog.LevelDebug, "connection outlives its process", "pid", p.key.PID, "name", p.name)
		}
	}
	for c := range p.writes {
		delete(c.heirs, int32(p.key.PID))
	}
	reason := p.death.reason
	p.ended, p.death, p.writes = true, nil, nil
	delete(s.reporters, p.key)
	s.pools.reporters.Give(p.uid, 1)
	s.opt.Ledger.End(p.ledger, reason, s.now, s.reportLeftovers)
}
