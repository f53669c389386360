package allocsock

import (
	"slices"
	"time"
)

// A client that writes often is swept: read on a clock instead of being waited
// for, since every wake-up costs more than the message that caused it. The
// pause depends on how much the busiest client writes meanwhile, so that no
// socket buffer fills up: a client with the default buffer can have 277
// messages of 144 bytes in it, and then it stalls.

const (
	hotWakes  = 20                     // wake-ups in hotWindow that make a connection hot: 2,000 a second
	hotWindow = 10 * time.Millisecond  //
	coldIdle  = 20                     // sweeps in a row with less than coldBytes that make it cold again
	coldBytes = 2 * size144            //
	minPause  = 200 * time.Microsecond // below, sweeping costs more than it saves
	maxPause  = 2 * time.Millisecond   // how long a query on a swept connection may wait
	fullSweep = 128 * size144          // bytes from one connection that call for a shorter pause
	lowSweep  = fullSweep / 2          // and for a longer one
)

// considerSweeping decides whether a connection that was woken is to be swept.
func (s *Server) considerSweeping(c *conn) {
	if c.swept || c.ended || c.fd < 0 {
		return
	}
	if s.now.Sub(c.wakeSince) > s.hotWindow {
		c.wakes, c.wakeSince = 0, s.now
	}
	if c.wakes++; c.wakes < hotWakes {
		return
	}
	c.wakes, c.idle, c.swept = 0, 0, true
	if len(s.hot) == 0 {
		s.lastSweep, s.pause = s.now, minPause
	}
	u := c.user
	if len(u.hot) == 0 {
		s.hot = append(s.hot, u)
	}
	c.hotAt = len(u.hot)
	u.hot = append(u.hot, c)
	s.count.hot.Add(1)
	s.updateInterest(c)
}

// stopSweeping returns to waiting for a connection.
func (s *Server) stopSweeping(c *conn) {
	if !c.swept {
		return
	}
	c.swept = false
	u := c.user
	last := u.hot[len(u.hot)-1]
	u.hot[c.hotAt], last.hotAt = last, c.hotAt
	u.hot[len(u.hot)-1] = nil
	if u.hot = u.hot[:len(u.hot)-1]; len(u.hot) == 0 {
		u.hot = nil
		s.hot = slices.DeleteFunc(s.hot, func(other *user) bool { return other == u })
	}
	s.count.hot.Add(-1)
}

// sweeping is the result of a sweep.
type sweeping struct {
	on   bool
	most int  // bytes of one connection
	left bool // a connection had more
}

// scheduleHot has all hot connections read, if it is time.
func (s *Server) scheduleHot() (found sweeping) {
	if len(s.hot) == 0 || s.now.Sub(s.lastSweep) < s.pause {
		return found
	}
	found.on = true
	s.lastSweep = s.now
	s.count.sweeps.Add(1)
	for _, u := range s.hot {
		u.swept = true
		s.schedule(u)
	}
	return found
}

// sweep reads the hot connections of a user, as long as its share lasts.
func (s *Server) sweep(u *user, found *sweeping) {
	if !u.swept {
		return
	}
	for range len(u.hot) {
		if !s.hasShare(u) || len(u.resuming) > 0 {
			found.left = true
			return
		}
		if u.hotFrom++; u.hotFrom >= len(u.hot) { // on from where the last sweep ended
			u.hotFrom = 0
		}
		if len(u.hot) == 0 {
			return // the last was dropped in this sweep
		}
		c := u.hot[u.hotFrom]
		n, more := s.read(c)
		s.endStep(u)
		found.most, found.left = max(found.most, n), found.left || more
		if n >= coldBytes {
			c.idle = 0
		} else if c.idle++; c.idle >= coldIdle && c.fd >= 0 && !c.parked {
			s.stopSweeping(c)
			s.updateInterest(c)
		}
	}
}

// endSweep sets the pause to the next sweep.
func (s *Server) endSweep(found *sweeping) {
	if found.on {
		s.pause = nextPause(s.pause, found.most, found.left)
	}
}

func nextPause(pause time.Duration, most int, left bool) time.Duration {
	switch {
	case left:
		return 0
	case most > fullSweep:
		if pause = pause * 3 / 4; pause < minPause {
			return 0
		}
		return pause
	case most < lowSweep:
		return min(max(pause*5/4, minPause), maxPause)
	default:
		return pause
	}
}
