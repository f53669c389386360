package allocsock

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// The loop's system calls, none of which blocks. They do not notify Go's
// scheduler: it could give our P to another goroutine meanwhile, and then all
// clients would wait behind that.

func rawAccept(listener int) (fd int, errno unix.Errno) {
	r, _, errno := unix.RawSyscall6(unix.SYS_ACCEPT4, uintptr(listener), 0, 0, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0, 0)
	if errno != 0 {
		return -1, errno
	}
	return int(r), 0
}

// rawSend sends as much as the socket accepts. The peer may have disconnected:
// no SIGPIPE.
func rawSend(fd int, b []byte) (int, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_SENDTO, uintptr(fd), uintptr(unsafe.Pointer(&b[0])), uintptr(len(b)),
		unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL, 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

func rawClose(fd int) { _, _, _ = unix.RawSyscall(unix.SYS_CLOSE, uintptr(fd), 0, 0) }

// rawCredentials is SO_PEERCRED.
func rawCredentials(fd int, cred *unix.Ucred) unix.Errno {
	size := uint32(unix.SizeofUcred)
	_, _, errno := unix.RawSyscall6(unix.SYS_GETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PEERCRED,
		uintptr(unsafe.Pointer(cred)), uintptr(unsafe.Pointer(&size)), 0)
	return errno
}

// rawPassCredentials is SO_PASSCRED. Without it, all is the owner's.
func rawPassCredentials(fd int) {
	on := int32(1)
	_, _, _ = unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_PASSCRED, uintptr(unsafe.Pointer(&on)), 4, 0)
}

// rawSendBuffer is SO_SNDBUF.
func rawSendBuffer(fd, size int) {
	n := int32(size)
	_, _, _ = unix.RawSyscall6(unix.SYS_SETSOCKOPT, uintptr(fd), unix.SOL_SOCKET, unix.SO_SNDBUF, uintptr(unsafe.Pointer(&n)), 4, 0)
}
