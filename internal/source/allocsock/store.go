package allocsock

import (
	"errors"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// The service manager may be busy for seconds. So what it is to keep is
// offered to it without waiting, a few at a time, and again later if it does
// not take them.
const (
	storesPerTurn = 8
	storeRetry    = 20 * time.Millisecond
)

// storeLater has a connection given to the service manager.
func (s *Server) storeLater(c *conn) {
	if s.opt.Store == nil || c.stored || c.fd < 0 || !s.pools.stored.Take(c.user.uid, 1) {
		return
	}
	c.stored = true
	s.unstored = append(s.unstored, c)
}

func (s *Server) storeSome() {
	if len(s.unstored) == 0 || s.now.Before(s.storeAt) {
		return
	}
	n := 0
	for _, c := range s.unstored[:min(len(s.unstored), storesPerTurn)] {
		if c.fd >= 0 {
			err := s.opt.Store(c.fd)
			if errors.Is(err, unix.EAGAIN) {
				s.storeAt = s.now.Add(storeRetry)
				break
			}
			if err != nil {
				s.log.Warn("a client would not survive a crash of ttmond", "err", err)
			}
		}
		n++
	}
	if s.unstored = slices.Delete(s.unstored, 0, n); len(s.unstored) == 0 {
		s.unstored = nil
	}
}
