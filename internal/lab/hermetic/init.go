package hermetic

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/signal"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// runInit runs as pid 1 inside. args are the mount namespace outside and the
// arguments of the program; cover hides what the tests must not see. It returns
// the program's exit code; the kernel then kills what is still running.
func runInit(args []string, cover func() error) (code int) {
	report := os.NewFile(3, "report")
	setCloseOnExec()
	if err := mountAll(args, cover); err != nil {
		fmt.Fprint(report, err)
		return 1
	}
	report.Close()
	// Pid 1 gets only the signals that it handles.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP)
	pid, err := startTests(args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "hermetic: starting the tests:", err)
		return 1
	}
	go func() {
		for s := range signals {
			if s != unix.SIGINT { // the terminal has sent it to them
				_ = unix.Kill(pid, s.(syscall.Signal))
			}
		}
	}()
	return reap(pid)
}

// setCloseOnExec sets close-on-exec for all descriptors but the first three:
// the tests must not inherit what was left open outside, such as a lock.
func setCloseOnExec() {
	_ = unix.CloseRange(3, math.MaxInt32, unix.CLOSE_RANGE_CLOEXEC) // Linux 5.11
}

// mountAll mounts what the tests see. Nothing is mounted in a namespace of the
// machine.
func mountAll(args []string, cover func() error) error {
	here, err := os.Readlink("/proc/self/ns/mnt")
	if err != nil {
		return err
	}
	if len(args) < 2 || args[0] == here || os.Getpid() != 1 {
		return errors.New("BUG: not in namespaces of our own, nothing is mounted")
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("making the mounts private: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return fmt.Errorf("mounting /proc: %w", err)
	}
	if err := cover(); err != nil {
		return err
	}
	if err := unix.Sethostname([]byte("testhost")); err != nil {
		return fmt.Errorf("setting the host name: %w", err)
	}
	if Inside() { // the mark of those in whose file systems a single test runs
		return nil
	}
	return os.WriteFile(mark, nil, 0o444)
}

// startTests starts the program again, without the capability that an ordinary
// user's pid 1 was given.
func startTests(args []string) (pid int, err error) {
	runtime.LockOSThread() // ambient capabilities are a thread's
	defer runtime.UnlockOSThread()
	if err := unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); err != nil {
		return 0, fmt.Errorf("dropping capabilities: %w", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	return syscall.ForkExec(exe, args, &syscall.ProcAttr{Env: os.Environ(), Files: []uintptr{0, 1, 2}})
}

// reap waits for the program, and for the orphans that pid 1 inherits.
func reap(pid int) (code int) {
	for {
		var status unix.WaitStatus
		ended, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			fmt.Fprintln(os.Stderr, "hermetic: waiting for the tests:", err)
			return 1
		case ended == pid && status.Signaled():
			fmt.Fprintln(os.Stderr, "hermetic: the tests were killed:", status.Signal())
			return 2
		case ended == pid:
			return status.ExitStatus()
		}
	}
}
