package allocsock

import (
	"log/slog"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A connection belongs to the process that opened it. But a child process
// inherits it, and then both may report on it, each for itself; or the parent
// exits and the child stays. So every read gets the writer from the kernel
// (SO_PASSCRED), which ends a read where another process's bytes begin.

// receiver reads with credentials. Its buffers are reused.
type receiver struct {
	msg unix.Msghdr
	iov unix.Iovec
	// oob has room for credentials and nothing else: descriptors that a client
	// sends do not fit, and the kernel drops them.
	oob [4]uint64
}

// readFrom reads from a connection without blocking, and without notifying Go's
// scheduler: it returns before that could act.
func (r *receiver) readFrom(c *conn, b []byte) (int, unix.Errno) {
	r.iov.Base = &b[0]
	r.iov.SetLen(len(b))
	r.msg = unix.Msghdr{Iov: &r.iov, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&r.oob[0]))}
	r.msg.SetControllen(8 * len(r.oob))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(c.sock.fd), uintptr(unsafe.Pointer(&r.msg)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, errno
	}
	c.writer = r.writer()
	return int(n), 0
}

// writer returns the process that wrote the bytes of the last read; the zero
// Ucred for bytes that were sent before SO_PASSCRED was set. The pid is 0 for
// another pid namespace.
func (r *receiver) writer() unix.Ucred {
	head := (*unix.Cmsghdr)(unsafe.Pointer(&r.oob[0]))
	if r.msg.Controllen < unix.SizeofCmsghdr+unix.SizeofUcred || head.Level != unix.SOL_SOCKET || head.Type != unix.SCM_CREDENTIALS {
		return unix.Ucred{}
	}
	return *(*unix.Ucred)(unsafe.Pointer(&r.oob[unix.SizeofCmsghdr/8]))
}

// maxInheritors bounds the processes that write on one connection of another's.
const maxInheritors = 64

// writerOf returns the process that wrote what is being decoded.
func (s *Server) writerOf(c *conn) *reporter {
	owner := s.ownerOf(c) // also if another process writes
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.writer.Pid == 0 || c.writer.Pid == c.cred.Pid {
		if sent := int(c.dec.sentPID); owner.sentPID != sent && sent != 0 {
			owner.sentPID = sent
			s.opt.Ledger.SetSentPID(owner.ledger, sent)
		}
		return owner
	}
	if p := c.inheritors[c.writer.Pid]; p != nil && !p.ended {
		return p
	}
	p := s.identifyInheritor(c)
	if p.ended {
		return p
	}
	if c.inheritors == nil {
		c.inheritors = map[int32]*reporter{}
	}
	c.inheritors[c.writer.Pid] = p
	if p.writes == nil {
		p.writes = map[*conn]struct{}{}
	}
	p.writes[c] = struct{}{}
	return p
}

// identifyInheritor identifies a process that writes on another's connection. With mu.
func (s *Server) identifyInheritor(c *conn) *reporter {
	if len(c.inheritors) >= maxInheritors {
		s.logFor(c.user, slog.LevelWarn, "too many processes on one connection; ignoring some", "pid", c.cred.Pid, "uid", c.cred.Uid)
		return s.ignoredReporter()
	}
	who := unidentified(&c.writer)
	var err error
	if who.pidfd, err = unix.PidfdOpen(who.PID, 0); err != nil {
		return s.ignoredReporter() // it exited before it could be identified
	}
	if who.identify(); who.exited {
		who.close()
		return s.ignoredReporter()
	}
	return s.register(who)
}

// ignoredReporter is a process whose reports are ignored.
func (s *Server) ignoredReporter() *reporter {
	return &reporter{ended: true, leaves: exited, ledger: s.opt.Ledger.Ignored(), conns: map[*conn]struct{}{}}
}
