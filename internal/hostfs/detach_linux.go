//go:build linux && (amd64 || arm64)

package hostfs

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// stackSize is what the detached reader gets as a stack. It never uses it:
// the loop is a handful of instructions and all signals are blocked.
const stackSize = 4096

// detach creates a process that runs the reads and exits. Two things
// distinguish it from a thread of ours, and are the reason for it:
//
//   - It is not in our thread group. The kernel does not let a process exit
//     while one of its threads is in an uninterruptible read; our exit does
//     not wait for a process of its own.
//   - It shares our memory, so that making it costs no copy of the page
//     tables (about 20 µs), but not our descriptors: it closes its copies of
//     all it does not read, so that pipes, sockets and locks of ours end with
//     us, however long it is blocked.
//
// It runs no Go code, only the loop in detach_*.s, so the Go runtime need not
// know of it. All signals are blocked in it: a handler of the runtime must
// never run there.
//
// fd is a pidfd: readable when the reader has exited.
func detach(entries []entry, shut []fdRange, stack []byte) (pid, fd int, err error) {
	var pidfd int32
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	var all, old unix.Sigset_t
	for i := range all.Val {
		all.Val[i] = ^uint64(0)
	}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &all, &old); err != nil {
		return 0, -1, err
	}
	r := cloneReader(unix.CLONE_VM|unix.CLONE_PIDFD,
		(uintptr(unsafe.Pointer(&stack[0]))+uintptr(len(stack)))&^15,
		&pidfd, &entries[0], len(entries), &shut[0], len(shut))
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &old, nil); err != nil {
		panic("BUG: restoring the signal mask: " + err.Error())
	}
	if r < 0 {
		return 0, -1, unix.Errno(-r)
	}
	return r, int(pidfd), nil
}

// cloneReader makes the process and returns its pid, or a negated errno.
// entries and shut must not be on Go's heap: the process reads them long after
// we have returned.
//
//go:noescape
func cloneReader(flags, stack uintptr, pidfd *int32, entries *entry, n int, shut *fdRange, m int) int
