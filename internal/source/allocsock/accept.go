package allocsock

import (
	"errors"
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// backlog is how many clients wait to be accepted at most. All users wait in
// one queue, and a client that connects when it is full waits for a place in
// it: a longer one would only be a longer wait behind a client that connects in
// a loop.
const backlog = 512

// maxBacklog is how many waited at most on a socket whose creator allowed more.
const maxBacklog = 4096

// acceptRetry is how long connections wait in the kernel after descriptors
// have run out. They are left there: a client whose connection is closed dies.
const acceptRetry = 100 * time.Millisecond

// Listen starts to accept clients on a socket, which the server then owns. It
// may be called from any goroutine.
func (s *Server) Listen(fd int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener != nil {
		unix.Close(fd)
		return
	}
	l, err := listen(fd)
	if err != nil {
		s.log.Error("cannot accept clients", "err", err)
		return
	}
	s.listener = l
	s.spawn(s.accept)
}

// listen takes a listening socket over.
func listen(fd int) (*socket, error) {
	_ = unix.Listen(fd, backlog) // its creator may have allowed more
	// Newer kernels have accepted sockets inherit it, from the first byte.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	return newSocket(fd)
}

// Listener returns the socket on which clients are accepted, -1 for none. Run
// must have returned.
func (s *Server) Listener() int {
	if s.listener == nil {
		return -1
	}
	return s.listener.fd
}

// accept accepts clients.
func (s *Server) accept() {
	stopped := s.stopped()
	for {
		var failed error
		err := s.listener.raw.Read(func(uintptr) (done bool) {
			done, failed = s.acceptOne()
			return done
		})
		if failed != nil {
			s.log.Warn("cannot accept client; will retry", "err", failed, "connections", s.count.open.Load())
			select {
			case <-time.After(acceptRetry):
			case <-stopped:
			}
		}
		if err != nil { // it was interrupted
			return
		}
	}
}

// acceptOne accepts a client, unless none waits.
func (s *Server) acceptOne() (done bool, err error) {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	fd, _, err := unix.Accept4(s.listener.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
	switch {
	case err == nil:
		s.addClient(fd)
		s.count.accepted.Add(1)
		return true, nil
	case errors.Is(err, unix.EAGAIN):
		return false, nil
	case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		return true, nil
	}
	return true, err
}

// AcceptAll accepts all waiting clients: without it, closing the socket would
// close their connections. Run must have returned.
func (s *Server) AcceptAll() {
	if s.listener == nil {
		return
	}
	for range maxBacklog {
		if done, err := s.acceptOne(); !done || err != nil {
			return
		}
	}
}

// clientsWait reports whether clients wait to be accepted.
func (s *Server) clientsWait() bool {
	s.accepting.Lock()
	defer s.accepting.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.listener == nil {
		return false
	}
	fds := []unix.PollFd{{Fd: int32(s.listener.fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n == 1
}

// addClient starts to serve a new client. It is closed if its user has as many
// connections as a user may have: left in the queue it would keep others
// waiting.
func (s *Server) addClient(fd int) {
	cred, err := credentials(fd)
	if err == nil && !s.pools.descriptors.Acquire(int(cred.Uid), 1) {
		unix.Close(fd)
		return
	}
	var x *socket
	if err == nil {
		if x, err = newSocket(fd); err != nil {
			s.pools.descriptors.Release(int(cred.Uid), 1)
		}
	} else {
		unix.Close(fd)
	}
	if err != nil {
		s.log.Error("cannot serve client", "err", err)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addConn(&conn{sock: x, cred: cred, since: time.Now()})
}

// credentials returns the process that connected, as the kernel recorded it
// then.
func credentials(fd int) (*unix.Ucred, error) {
	cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return nil, fmt.Errorf("cannot identify client: %w", err)
	}
	return cred, nil
}
