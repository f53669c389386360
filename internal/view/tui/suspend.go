package tui

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// stopWait is how long to wait for a stop signal to take effect before
// concluding that it did not.
const stopWait = 300 * time.Millisecond

// suspend gives the terminal back, stops the whole job like Ctrl-Z in any
// other program, and takes the terminal again when the shell continues it.
func (l *loop) suspend() {
	if orphaned() {
		return // no shell could continue us
	}
	if err := l.screen.Suspend(); err != nil {
		return
	}
	for len(l.signals) > 0 { // an old SIGCONT must not wake us
		<-l.signals
	}
	// SIGSTOP and not SIGTSTP: once asked for, Go's runtime catches the latter
	// for good. Signals reach us some time after kill returns; taking the
	// terminal back in between would leave it raw under the shell, so wait for
	// the continue.
	if err := syscall.Kill(0, syscall.SIGSTOP); err == nil {
		l.continued()
	}
	// The terminal may be gone by now; then reading from it says so.
	_ = l.screen.Resume()
}

// continued waits for SIGCONT. Time spent stopped does not count.
func (l *loop) continued() {
	timeout := time.After(stopWait)
	for {
		select {
		case s := <-l.signals:
			if s == syscall.SIGCONT {
				return
			}
		case <-timeout:
			return
		}
	}
}

// orphaned reports whether no process could continue our process group:
// no member has a parent in another group of the same session. The kernel
// ignores SIGTSTP for such groups; SIGSTOP is up to us.
func orphaned() bool {
	group, session := unix.Getpgrp(), sessionOf(0)
	for pid := unix.Getppid(); pid > 1; pid = parentOf(pid) {
		if g, err := unix.Getpgid(pid); err != nil || g != group {
			return err != nil || sessionOf(pid) != session
		}
	}
	return true
}

func sessionOf(pid int) int {
	sid, err := unix.Getsid(pid)
	if err != nil {
		return -1
	}
	return sid
}

// parentOf is the parent of a process; 0 if it cannot be told.
func parentOf(pid int) int {
	s, err := proc.ReadStat(hostfs.Root{}, pid)
	if err != nil {
		return 0
	}
	return s.PPID
}
