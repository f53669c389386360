package allocsock

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The service manager may be busy for seconds. So connections are offered to it
// without blocking, a few at a time, and again later if it does not accept
// them. Storing one costs it more than a client pays for connecting, and the
// whole host depends on it: no user may keep it busy with short connections.
const (
	storesAtATime = 16
	storeEvery    = 20 * time.Millisecond

	storesOfAUser   = 4   // at a time
	storesAtOnce    = 256 // of a user, in a row
	storesPerSecond = 4   // after those
)

// storeLater schedules a connection to be stored by the service manager. With mu.
func (s *Server) storeLater(c *conn) {
	if s.opt.Store == nil || c.stored || c.closed || !s.pools.stored.Acquire(c.user.uid, 1) {
		return
	}
	c.stored = true
	s.unstored = append(s.unstored, c)
	s.storeSoon()
}

// storeSoon stores the connections that wait for it, beside their clients. With mu.
func (s *Server) storeSoon() {
	if s.storing || len(s.unstored) == 0 || s.closing == nil {
		return
	}
	s.storing = true
	stopped := s.closing
	s.spawn(func() {
		for s.storeSome(time.Now()) {
			select {
			case <-time.After(storeEvery):
			case <-stopped:
				s.mu.Lock()
				s.storing = false
				s.mu.Unlock()
				return
			}
		}
	})
}

// storeSome stores as many connections as may be now. It is false where none is left.
func (s *Server) storeSome(now time.Time) (more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	waiting, left, busy := s.unstored[:0], storesAtATime, false
	for _, c := range s.unstored {
		switch {
		case c.closed:
		case busy || c.user.uid != 0 && (left == 0 || !c.user.mayStore(now)):
			waiting = append(waiting, c)
		default:
			left = max(left-1, 0)
			err := s.opt.Store(c.sock.fd)
			if errors.Is(err, unix.EAGAIN) {
				busy = true
				c.user.stores++ // it was not accepted
				waiting = append(waiting, c)
			} else if err != nil {
				s.log.Warn("cannot store client connection for restart", "err", err)
			}
		}
	}
	clear(s.unstored[len(waiting):])
	s.unstored = waiting
	s.storing = len(waiting) > 0
	return s.storing
}

// mayStore reports whether one more connection of a user may be stored now, and
// counts it. It is not called for root, which has no limit.
func (u *user) mayStore(now time.Time) bool {
	if !now.Equal(u.storesAt) {
		earned := float64(storesAtOnce)
		if !u.storesAt.IsZero() {
			earned = storesPerSecond * max(now.Sub(u.storesAt).Seconds(), 0)
		}
		u.stores, u.storesNow, u.storesAt = min(storesAtOnce, u.stores+earned), 0, now
	}
	if u.stores < 1 || u.storesNow == storesOfAUser {
		return false
	}
	u.stores--
	u.storesNow++
	return true
}
