package allocsock

import (
	"errors"
	"fmt"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// settleTime is how long the decoder waits for the rest of something that may
// be complete as it is.
const settleTime = 10 * time.Millisecond

// acceptRetry is how long connections wait in the kernel after descriptors
// have run out. They are not refused: a client that was would be none the
// wiser, but one whose connection was closed would die.
const acceptRetry = 100 * time.Millisecond

func (s *Server) loop() error {
	events := make([]unix.EpollEvent, 512)
	for {
		n, err := s.wait(events)
		if err != nil {
			return fmt.Errorf("waiting for clients: %w", err)
		}
		s.now = time.Now()
		if s.stopping.Load() {
			s.drainWake()
			return nil
		}
		for i := range events[:n] {
			s.dispatch(&events[i])
		}
		s.sweepIfDue()
		s.settle()
		s.endGraces()
		s.acceptAgain()
	}
}

// wait sleeps until something happens or the next deadline comes.
func (s *Server) wait(events []unix.EpollEvent) (int, error) {
	for {
		timeout := s.timeout()
		var n int
		var err error
		if timeout == 0 {
			n, err = epollNow(s.epoll, events)
		} else {
			n, err = epollWait(s.epoll, events, timeout)
		}
		if !errors.Is(err, unix.EINTR) {
			return n, err
		}
		s.now = time.Now()
	}
}

// timeout is the time to the next deadline; negative if there is none.
func (s *Server) timeout() time.Duration {
	next := time.Time{}
	sooner := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	if len(s.hot) > 0 {
		if s.pause == 0 {
			return 0
		}
		sooner(s.lastSweep.Add(s.pause))
	}
	for _, c := range s.settling {
		if !c.settleAt.IsZero() {
			sooner(c.settleAt)
		}
	}
	for _, p := range s.graces {
		if !p.graceEnd.IsZero() {
			sooner(p.graceEnd)
		}
	}
	if !s.resume.IsZero() {
		sooner(s.resume)
	}
	if next.IsZero() {
		return -1
	}
	return max(next.Sub(s.now), 0)
}

// epollNow asks without waiting, and without telling Go's scheduler: it
// returns before that could do anything about it.
func epollNow(epfd int, events []unix.EpollEvent) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_WAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// epollWait waits with the resolution of the clock where the kernel can
// (5.11), otherwise with that of a millisecond.
func epollWait(epfd int, events []unix.EpollEvent, timeout time.Duration) (int, error) {
	if timeout < 0 {
		return unix.EpollWait(epfd, events, -1)
	}
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	n, _, errno := unix.Syscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOSYS:
		return unix.EpollWait(epfd, events, int((timeout+time.Millisecond-1)/time.Millisecond))
	default:
		return 0, errno
	}
}

func (s *Server) dispatch(e *unix.EpollEvent) {
	fd := int(e.Fd)
	switch {
	case fd == s.wakeFD:
		s.drainWake()
		s.readMail()
		return
	case fd == s.listener:
		s.accept()
		return
	case fd >= len(s.watched):
		return
	}
	// A descriptor that was closed in this round may be another's already.
	// Then this is a wake for nothing, which does no harm.
	switch w := s.watched[fd]; {
	case w.proc != nil:
		if hasExited(w.proc.pidfd) {
			s.died(w.proc, "exited")
		}
	case w.conn != nil:
		s.ready(w.conn, e.Events)
	}
}

func (s *Server) drainWake() {
	var b [8]byte
	_, _ = unix.Read(s.wakeFD, b[:])
}

// watch adds a descriptor to the epoll set.
func (s *Server) watch(fd int, events uint32, w watch) error {
	if err := unix.EpollCtl(s.epoll, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watching a descriptor: %w", err)
	}
	for len(s.watched) <= fd {
		s.watched = append(s.watched, watch{})
	}
	s.watched[fd] = w
	return nil
}

// unwatch takes a descriptor out and closes it.
func (s *Server) unwatch(fd int) {
	s.watched[fd] = watch{}
	// Closing would take it out too, unless somebody else holds it: the
	// successor in a handover that failed.
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_DEL, fd, nil)
	unix.Close(fd)
}

// interest changes what a connection is woken for.
func (s *Server) interest(c *conn) {
	var events uint32
	if !c.swept && !c.ended {
		events |= unix.EPOLLIN
	}
	if len(c.out) > 0 {
		events |= unix.EPOLLOUT
	}
	if events == c.interest {
		return
	}
	c.interest = events
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

// maxAccepts bounds how long newcomers keep the others waiting.
const maxAccepts = 256

func (s *Server) accept() {
	for range maxAccepts {
		fd, _, err := unix.Accept4(s.listener, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		switch {
		case err == nil:
			s.count.accepted.Add(1)
			if err := s.adopt(&conn{fd: fd, since: s.now}); err != nil {
				s.log.Error("a client cannot be served", "err", err)
				unix.Close(fd)
			}
		case errors.Is(err, unix.EAGAIN):
			return
		case errors.Is(err, unix.EINTR), errors.Is(err, unix.ECONNABORTED):
		default:
			s.log.Warn("clients must wait to be accepted", "err", err, "connections", len(s.conns))
			_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, s.listener, &unix.EpollEvent{Fd: int32(s.listener)})
			s.resume = s.now.Add(acceptRetry)
			return
		}
	}
}

// Retire takes in whoever waits to be accepted and closes the listening
// socket. Run must have returned. Without it, closing the socket would close
// their connections.
func (s *Server) Retire() {
	if s.listener < 0 {
		return
	}
	s.now = time.Now()
	s.acceptAll()
	s.unwatch(s.listener)
	s.listener, s.resume = -1, time.Time{}
}

// acceptAll takes in whoever waits now.
func (s *Server) acceptAll() {
	if s.listener < 0 || !s.resume.IsZero() {
		return
	}
	for before := -1; before != len(s.conns); {
		before = len(s.conns)
		s.accept()
	}
}

func (s *Server) acceptAgain() {
	if s.resume.IsZero() || s.now.Before(s.resume) {
		return
	}
	s.resume = time.Time{}
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, s.listener, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.listener)})
}
