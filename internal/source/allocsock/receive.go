package allocsock

import (
	"time"

	"golang.org/x/sys/unix"
)

// receiveEvery is how often it is looked whether what clients sent has been applied.
const receiveEvery = 100 * time.Microsecond

// Receive returns when what clients had sent before it was called is in the ledger, or
// when that takes too long. Of a client that waits for an answer it may miss some.
func (s *Server) Receive(timeout time.Duration) {
	deadline := time.Now().Add(timeout)
	if !s.acceptWaiting(deadline, never) {
		return
	}
	s.mu.Lock()
	list := make([]*conn, 0, len(s.conns))
	for c := range s.conns {
		list = append(list, c)
	}
	s.mu.Unlock()
	s.receiveFrom(list, deadline, false, never)
}

func never() bool { return false }

// acceptWaiting returns when the clients that wait have been accepted; false: that
// takes too long, or stops says so.
func (s *Server) acceptWaiting(deadline time.Time, stops func() bool) bool {
	before := s.count.accepted.Load()
	for s.clientsWait() && s.count.accepted.Load()-before < maxBacklog {
		if stops() || !time.Now().Before(deadline) {
			return false
		}
		time.Sleep(receiveEvery)
	}
	return true
}

// receiveFrom returns when what was sent on some connections before it was called has
// been applied; false: that takes too long, or stops says so. Those that wait for a text
// or an inspection are waited for only if patient.
func (s *Server) receiveFrom(list []*conn, deadline time.Time, patient bool, stops func() bool) bool {
	targets := map[*conn]int64{}
	for _, c := range list {
		if left := s.unread(c); left > 0 || c.taken.Load() != c.applied.Load() {
			targets[c] = c.taken.Load() + left
		}
	}
	for {
		for c, target := range targets {
			switch {
			case c.waits.Load():
				if !patient {
					delete(targets, c)
				}
			case c.applied.Load() >= target, s.unread(c) == 0 && c.taken.Load() == c.applied.Load():
				// In this order: what is taken after it was counted is applied after it.
				delete(targets, c)
			}
		}
		if len(targets) == 0 {
			return true
		}
		if stops() || !time.Now().Before(deadline) {
			return false
		}
		time.Sleep(receiveEvery)
	}
}

// unread is how many bytes a connection has that were not taken from its socket.
func (s *Server) unread(c *conn) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.closed {
		return 0
	}
	n, err := unix.IoctlGetInt(c.sock.fd, unix.SIOCINQ)
	if err != nil {
		return 0
	}
	return int64(n)
}
