package daemon

import (
	"os"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// timerSlack is by how much the kernel may delay a timer of a daemon. While Go works,
// its monitor thread wakes every 20 µs for the first 50 times: with Linux's own 50 µs
// that is a fifth of what a daemon takes that works for some milliseconds in each
// second.
const timerSlack = time.Millisecond

// CoarseTimers lets the kernel delay the timers of this process by timerSlack. Go has
// started its monitor thread already, and threads keep what they were started with,
// so it executes the program again, as the same process. It must be the first that a
// program does. Where systemd or a ttmond that started us has set as much, or where
// it cannot be set, it does nothing.
func CoarseTimers() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if slack() >= timerSlack {
		return
	}
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, uintptr(timerSlack), 0, 0, 0)
	if slack() < timerSlack {
		return // threads of real-time scheduling have none; again would be for ever
	}
	if exe, err := os.Readlink("/proc/self/exe"); err == nil {
		_ = syscall.Exec(exe, os.Args, os.Environ())
	}
}

// slack is that of the calling thread.
func slack() time.Duration {
	n, err := unix.PrctlRetInt(unix.PR_GET_TIMERSLACK, 0, 0, 0, 0)
	if err != nil {
		return timerSlack
	}
	return time.Duration(n)
}
