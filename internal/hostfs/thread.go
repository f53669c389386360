package hostfs

import (
	"errors"
	"runtime"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readInThread is for systems where no process can be detached (a strict
// seccomp filter, a process limit): a thread of ours does the reads. A blocked
// one then delays our exit, but nothing else.
func readInThread(entries []entry) (doneFD int, err error) {
	done, err := unix.Eventfd(0, unix.EFD_CLOEXEC)
	if err != nil {
		return -1, err
	}
	signal, err := unix.FcntlInt(uintptr(done), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		unix.Close(done)
		return -1, err
	}
	// The caller may close its descriptors once Start returns. One that cannot
	// be kept is the result of its read.
	fds := make([]int, len(entries))
	for i := range entries {
		if entries[i].name != 0 {
			continue
		}
		var err error
		if fds[i], err = unix.FcntlInt(uintptr(entries[i].fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
			var errno unix.Errno
			errors.As(err, &errno)
			fds[i] = -1
			atomic.StoreInt64(&entries[i].result, -int64(errno))
		}
	}
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread may be stuck for good
		var dir string
		for i := range entries {
			e := &entries[i]
			if e.dir != 0 {
				dir = stringAt(e.dir)
			}
			if e.name != 0 {
				fds[i] = e.open(dir)
			}
			if fds[i] < 0 {
				continue
			}
			n, _, errno := unix.Syscall6(unix.SYS_PREAD64, uintptr(fds[i]), e.buf, uintptr(e.size), uintptr(e.offset), 0, 0)
			result := int64(n)
			if errno != 0 {
				result = -int64(errno)
			}
			atomic.StoreInt64(&e.result, result)
			unix.Close(fds[i])
		}
		unix.Write(signal, []byte{1, 0, 0, 0, 0, 0, 0, 0})
		unix.Close(signal)
	}()
	return done, nil
}

// open opens the file of an entry in a directory, by its path: a thread has no
// current directory of its own.
func (e *entry) open(dir string) (fd int) {
	for {
		fd, err := unix.Open(dir+"/"+stringAt(e.name), int(e.fd), 0)
		switch err {
		case nil:
			return fd
		case unix.EINTR:
		default:
			var errno unix.Errno
			errors.As(err, &errno)
			e.unopened = 1
			atomic.StoreInt64(&e.result, -int64(errno))
			return -1
		}
	}
}

// stringAt is a string that addString stored.
func stringAt(at uintptr) string {
	return unix.BytePtrToString(*(**byte)(unsafe.Pointer(&at)))
}
