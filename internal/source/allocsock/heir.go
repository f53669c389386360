package allocsock

import (
	"log/slog"
	"unsafe"

	"golang.org/x/sys/unix"
)

// A connection belongs to the process that made it. But a child process
// inherits it, and then both may report on it, each for itself; or the parent
// goes and the child stays. So every read asks the kernel who wrote
// (SO_PASSCRED); it ends a read where another process's bytes begin.

// receiver reads with credentials. Its buffers are used again and again.
type receiver struct {
	msg unix.Msghdr
	iov unix.Iovec
	// oob has room for credentials and nothing else: descriptors that
	// somebody sends do not fit, and the kernel drops them.
	oob [4]uint64
}

// from reads from a connection without waiting, and without telling Go's
// scheduler: it returns before that could do anything about it.
func (r *receiver) from(c *conn, b []byte) (int, unix.Errno) {
	r.iov.Base = &b[0]
	r.iov.SetLen(len(b))
	r.msg = unix.Msghdr{Iov: &r.iov, Iovlen: 1, Control: (*byte)(unsafe.Pointer(&r.oob[0]))}
	r.msg.SetControllen(8 * len(r.oob))
	n, _, errno := unix.RawSyscall(unix.SYS_RECVMSG, uintptr(c.fd), uintptr(unsafe.Pointer(&r.msg)), unix.MSG_DONTWAIT)
	if errno != 0 {
		return 0, errno
	}
	c.writer = r.writer()
	return int(n), 0
}

// writer is who wrote the bytes of the last read; the zero Ucred for bytes that
// were sent before we asked. The pid is 0 for another pid namespace.
func (r *receiver) writer() unix.Ucred {
	head := (*unix.Cmsghdr)(unsafe.Pointer(&r.oob[0]))
	if r.msg.Controllen < unix.SizeofCmsghdr+unix.SizeofUcred || head.Level != unix.SOL_SOCKET || head.Type != unix.SCM_CREDENTIALS {
		return unix.Ucred{}
	}
	return *(*unix.Ucred)(unsafe.Pointer(&r.oob[unix.SizeofCmsghdr/8]))
}

// maxHeirs bounds the processes that write on one connection of another's.
const maxHeirs = 64

// writerOf returns the process that wrote what is being decoded.
func (s *Server) writerOf(c *conn) *reporter {
	if c.writer.Pid == 0 || c.writer.Pid == c.cred.Pid {
		return s.ownerOf(c)
	}
	if p := c.heirs[c.writer.Pid]; p != nil && !p.ended {
		return p
	}
	s.ownerOf(c) // the connection is its, whoever writes
	p := s.heir(c)
	if p.ended {
		return p
	}
	if c.heirs == nil {
		c.heirs = map[int32]*reporter{}
	}
	c.heirs[c.writer.Pid] = p
	if p.writes == nil {
		p.writes = map[*conn]struct{}{}
	}
	p.writes[c] = struct{}{}
	return p
}

// heir identifies a process that writes on another's connection.
func (s *Server) heir(c *conn) *reporter {
	if len(c.heirs) >= maxHeirs {
		s.say(c.user, slog.LevelWarn, "too many processes on one connection; ignoring some", "pid", c.cred.Pid, "uid", c.cred.Uid)
		return s.nobody()
	}
	who := unidentified(&c.writer)
	var err error
	if who.pidfd, err = unix.PidfdOpen(who.PID, 0); err != nil {
		return s.nobody() // gone before it could be told from the next with its pid
	}
	if who.identify(); who.exited {
		unix.Close(who.pidfd)
		return s.nobody()
	}
	return s.enrol(who)
}

// nobody is a process whose reports are ignored.
func (s *Server) nobody() *reporter {
	return &reporter{ended: true, exited: true, pidfd: -1, ledger: s.opt.Ledger.Nobody(), conns: map[*conn]struct{}{}}
}
