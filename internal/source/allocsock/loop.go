package allocsock

import (
	"errors"
	"fmt"
	"runtime"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// settleTime is how long the decoder waits for the rest of something that may
// be complete as it is.
const settleTime = 10 * time.Millisecond

// acceptRetry is how long connections wait in the kernel after descriptors
// have run out. They are left there: a client whose connection is closed dies.
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
		s.startTurn()
		for i := range events[:n] {
			s.dispatch(&events[i])
		}
		if n > 8 { // the clock costs more than serving a few
			s.mark(workEvents)
		}
		s.serveUsers()
		s.runPosted(false)
		s.decodeSettled()
		s.expireGraces()
		s.resumeAccepting()
		s.acceptDue()
		s.serveDying()
		s.storeDue()
		s.sendBeat()
		s.endTurn()
	}
}

// wait sleeps until something happens or the next deadline comes.
func (s *Server) wait(events []unix.EpollEvent) (int, error) {
	for {
		timeout := s.timeout()
		var n int
		var err error
		switch {
		case timeout == 0:
			n, err = epollNow(s.epoll, events)
		case timeout > 0 && timeout <= maxPause && runtime.GOMAXPROCS(0) > 1: // or others have to wait
			n, err = epollNap(s.epoll, events, timeout)
		default:
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
	if len(s.resuming) > 0 || s.hasPosted {
		return 0
	}
	if len(s.hot) > 0 {
		if s.pause == 0 {
			return 0
		}
		sooner(s.lastSweep.Add(s.pause))
	}
	if len(s.settling) > 0 {
		sooner(s.settling[0].at)
	}
	if len(s.dying) > 0 {
		sooner(s.now.Add(minPause))
	}
	if len(s.unstored) > 0 {
		sooner(s.storeAt)
	}
	if s.opt.Beat != nil {
		sooner(s.nextBeat)
	}
	for _, p := range s.graces {
		if !p.graceEnd.IsZero() {
			sooner(p.graceEnd)
		}
	}
	if !s.acceptAt.IsZero() {
		sooner(s.acceptAt)
	}
	if next.IsZero() {
		return -1
	}
	return max(next.Sub(s.now), 0)
}

// epollNow polls without blocking, and without notifying Go's scheduler: it
// returns before that could act.
func epollNow(epfd int, events []unix.EpollEvent) (int, error) {
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), nil
}

// epollNap is epollWait for the pauses of a sweep, and does not notify Go's
// scheduler either. Notified of thousands of waits a second, its monitor
// retakes our P in many of them, and polls for more every 20 µs: a twentieth of
// the CPU time of ttmond under load. Without that it has one P less for at most
// maxPause; when it wants to preempt us, its signal ends the wait.
func epollNap(epfd int, events []unix.EpollEvent, timeout time.Duration) (int, error) {
	ts := unix.NsecToTimespec(timeout.Nanoseconds())
	n, _, errno := unix.RawSyscall6(unix.SYS_EPOLL_PWAIT2, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])),
		uintptr(len(events)), uintptr(unsafe.Pointer(&ts)), 0, 0)
	switch errno {
	case 0:
		return int(n), nil
	case unix.ENOSYS:
		return epollWait(epfd, events, timeout)
	default:
		return 0, errno
	}
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
		s.hasPosted = true
		return
	case fd == s.listener:
		s.hasNewcomers = true
		return
	case fd >= len(s.watched):
		return
	}
	// A descriptor that was closed in this round may be another's already. Then
	// this is a spurious wake-up, which is harmless.
	switch w := s.watched[fd]; {
	case w.reporter != nil:
		if hasExited(w.reporter.pidfd) {
			s.addDying(w.reporter, "exited")
		}
	case w.user != nil:
		w.user.woken = true
		s.schedule(w.user)
	}
}

// sendBeat notifies the watchdog that the loop is running.
func (s *Server) sendBeat() {
	if s.opt.Beat != nil && !s.now.Before(s.nextBeat) {
		s.nextBeat = s.now.Add(s.opt.BeatEvery)
		s.opt.Beat()
	}
}

func (s *Server) drainWake() {
	var b [8]byte
	_, _ = unix.Read(s.wakeFD, b[:])
}

// watch adds a descriptor to the epoll set of the loop.
func (s *Server) watch(fd int, events uint32, w watch) error {
	return s.watchIn(s.epoll, fd, events, w)
}

// watchIn adds a descriptor to an epoll set.
func (s *Server) watchIn(set, fd int, events uint32, w watch) error {
	if err := unix.EpollCtl(set, unix.EPOLL_CTL_ADD, fd, &unix.EpollEvent{Events: events, Fd: int32(fd)}); err != nil {
		return fmt.Errorf("watching a descriptor: %w", err)
	}
	for len(s.watched) <= fd {
		s.watched = append(s.watched, watch{})
	}
	s.watched[fd] = w
	return nil
}

// unwatch removes a descriptor from the loop's set and closes it.
func (s *Server) unwatch(fd int) { s.unwatchIn(s.epoll, fd) }

// unwatchIn removes a descriptor from a set and closes it.
func (s *Server) unwatchIn(set, fd int) {
	s.watched[fd] = watch{}
	// Closing would remove it, too, unless another process holds it: the successor
	// in a handover that failed.
	_ = unix.EpollCtl(set, unix.EPOLL_CTL_DEL, fd, nil)
	rawClose(fd)
}

// updateInterest sets the events that a connection is woken for.
func (s *Server) updateInterest(c *conn) {
	if c.parked {
		return // unpark watches it again
	}
	events := wantedEvents(c)
	if events == c.interest {
		return
	}
	c.interest = events
	_ = unix.EpollCtl(c.user.set, unix.EPOLL_CTL_MOD, c.fd, &unix.EpollEvent{Events: events, Fd: int32(c.fd)})
}

func wantedEvents(c *conn) (events uint32) {
	if !c.swept && !c.ended {
		events |= unix.EPOLLIN
	}
	if len(c.out) > 0 {
		events |= unix.EPOLLOUT
	}
	return events
}

// acceptDue accepts new clients, once in a turn.
func (s *Server) acceptDue() {
	// A process that has exited may have written on one that waits.
	if s.hasNewcomers || len(s.dying) > 0 && s.listener >= 0 && s.acceptAt.IsZero() {
		s.hasNewcomers = false
		s.accept()
		s.mark(workAccept)
	}
}

// accept accepts new clients, for as long as that may take in a turn. All users
// wait in one queue: so it is longer than for other chores.
func (s *Server) accept() {
	for start := time.Now(); time.Since(start) < acceptTime; {
		fd, errno := rawAccept(s.listener)
		switch errno {
		case 0:
			s.count.accepted.Add(1)
			s.serveNewClient(fd)
		case unix.EAGAIN:
			s.emptied++
			return
		case unix.EINTR, unix.ECONNABORTED:
		default:
			s.log.Warn("cannot accept client; will retry", "err", errno, "connections", len(s.conns))
			_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, s.listener, &unix.EpollEvent{Fd: int32(s.listener)})
			s.acceptAt = s.now.Add(acceptRetry)
			return
		}
	}
}

// serveNewClient starts to serve a new client. It is closed if its user has as
// many connections as a user may have: left in the queue it would keep others
// waiting.
func (s *Server) serveNewClient(fd int) {
	c := &conn{fd: fd, since: s.now}
	var err error
	if c.cred, err = credentials(fd); err == nil {
		if !s.pools.descriptors.Acquire(int(c.cred.Uid), 1) {
			rawClose(fd)
			return
		}
		if err = s.addConn(c); err != nil {
			s.pools.descriptors.Release(int(c.cred.Uid), 1)
		}
	}
	if err != nil {
		s.log.Error("cannot serve client", "err", err)
		unix.Close(fd)
	}
}

// Listen starts to accept clients on a socket, which the server then owns. It
// may be called from any goroutine while Run is running.
func (s *Server) Listen(fd int) {
	s.post(func() {
		if s.listener >= 0 {
			unix.Close(fd)
			return
		}
		if err := s.listen(fd); err != nil {
			s.log.Error("cannot accept clients", "err", err)
			unix.Close(fd)
		}
	})
}

// backlog is how many clients wait to be accepted at most. All users wait in
// one queue, and a client that connects when it is full waits for a place in
// it: a longer one would only be a longer wait behind a client that connects in
// a loop.
const backlog = 512

func (s *Server) listen(fd int) error {
	_ = unix.Listen(fd, backlog) // its creator may have allowed more
	// Newer kernels have accepted sockets inherit it, from the first byte.
	_ = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1)
	if err := s.watch(fd, unix.EPOLLIN, watch{}); err != nil {
		return err
	}
	s.listener = fd
	return nil
}

// Listener returns the socket on which clients are accepted, -1 for none. Run
// must have returned.
func (s *Server) Listener() int { return s.listener }

// AcceptAll accepts all waiting clients: without it, closing the socket would
// close their connections. Run must have returned.
func (s *Server) AcceptAll() {
	if s.listener < 0 {
		return
	}
	s.now = time.Now()
	for n, emptied := 0, s.emptied; n < maxBacklog && s.emptied == emptied && s.acceptAt.IsZero(); n++ {
		s.accept()
	}
}

func (s *Server) resumeAccepting() {
	if s.acceptAt.IsZero() || s.now.Before(s.acceptAt) {
		return
	}
	s.acceptAt = time.Time{}
	_ = unix.EpollCtl(s.epoll, unix.EPOLL_CTL_MOD, s.listener, &unix.EpollEvent{Events: unix.EPOLLIN, Fd: int32(s.listener)})
}
