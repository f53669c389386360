package hostfs

import "golang.org/x/sys/unix"

// CloseAll closes descriptors of the caller. Files that were opened one after
// the other have consecutive numbers, and each run of them takes one system
// call: 25 files of each chip are kept open. A run has no number that is not in
// fds, so it closes no descriptor that another goroutine has opened.
func CloseAll(fds []int) {
	for len(fds) > 0 {
		n := 1
		for n < len(fds) && fds[n] == fds[n-1]+1 {
			n++
		}
		closeRun(fds[:n])
		fds = fds[n:]
	}
}

// closeRun closes consecutive descriptors.
func closeRun(fds []int) {
	// Kernels before 5.9 do not know close_range, and a seccomp filter may refuse it.
	if len(fds) > 1 && unix.CloseRange(uint(fds[0]), uint(fds[len(fds)-1]), 0) == nil {
		return
	}
	for _, fd := range fds {
		unix.Close(fd)
	}
}
