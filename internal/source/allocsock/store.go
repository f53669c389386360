package allocsock

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// The service manager may be busy for seconds. So what it is to keep is
// offered to it without waiting, a few at a time, and again later if it does
// not take them. Each one costs it more than a connection costs who makes it,
// and it does everything else on the host: nobody may have it work for
// connections that come and go.
const (
	storesAtATime = 16
	storeEvery    = 20 * time.Millisecond

	storesOfAUser   = 4   // at a time
	storesAtOnce    = 256 // of a user, in a row
	storesPerSecond = 4   // after those
)

// storeLater has a connection given to the service manager.
func (s *Server) storeLater(c *conn) {
	if s.opt.Store == nil || c.stored || c.fd < 0 || !s.pools.stored.Take(c.user.uid, 1) {
		return
	}
	c.stored = true
	s.unstored = append(s.unstored, c)
	if c.user.uid == 0 {
		s.storeAt = time.Time{}
	}
}

func (s *Server) storeSome() {
	if len(s.unstored) == 0 || s.now.Before(s.storeAt) {
		return
	}
	s.storeAt = s.now.Add(storeEvery)
	waiting, left, busy := s.unstored[:0], storesAtATime, false
	for _, c := range s.unstored {
		switch {
		case c.fd < 0: // it has ended
		case busy || c.user.uid != 0 && (left == 0 || !c.user.mayStore(s.now)):
			waiting = append(waiting, c)
		default:
			left = max(left-1, 0)
			err := s.opt.Store(c.fd)
			if errors.Is(err, unix.EAGAIN) {
				busy = true
				c.user.stores++ // it was not taken
				waiting = append(waiting, c)
			} else if err != nil {
				s.log.Warn("cannot store client connection for restart", "err", err)
			}
		}
	}
	clear(s.unstored[len(waiting):])
	if s.unstored = waiting; len(waiting) == 0 {
		s.unstored = nil
	}
}

// mayStore reports whether one more connection of a user may be given to the
// service manager now, and counts it. It is not asked for root, who may have it
// work as it likes.
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
