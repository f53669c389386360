package act

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/proc"
)

// Signal sends a signal to a process, and to no other that got its pid since.
//
// It holds the process by a pidfd first and looks at the start time behind
// the pid after that: if the time is still the one of the target, the target
// has had the pid all along, and the pidfd means it.
func Signal(t Target, sig syscall.Signal) error {
	if t.PID <= 0 || t.StartTicks == 0 {
		return errors.New("not a process that can be told from others")
	}
	fd, err := unix.PidfdOpen(t.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return errGone
	case err != nil:
		return fmt.Errorf("taking hold of the process: %w", err)
	}
	defer unix.Close(fd)
	start, err := startTicks(t.PID)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return errGone
	case err != nil:
		return err
	case start != t.StartTicks:
		return errReused
	}
	switch err := unix.PidfdSendSignal(fd, unix.Signal(sig), nil, 0); {
	case errors.Is(err, unix.ESRCH):
		return errGone
	case errors.Is(err, unix.EPERM):
		return errors.New("not yours: only its owner and root may signal it")
	case err != nil:
		return fmt.Errorf("sending %s: %w", unix.SignalName(unix.Signal(sig)), err)
	}
	return nil
}

var (
	errGone   = errors.New("it is gone already")
	errReused = errors.New("it is gone; another process has its pid now")
)

// startTicks is when a process started, in clock ticks after boot.
func startTicks(pid int) (uint64, error) {
	path := "/proc/" + strconv.Itoa(pid) + "/stat"
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, fmt.Errorf("checking the start time: %w", err)
	}
	s, err := proc.ParseStat(b)
	if err != nil {
		return 0, fmt.Errorf("reading %s: %w", path, err)
	}
	return s.Start, nil
}

// maxEnviron is more than the kernel gives a process for its environment.
const maxEnviron = 4 << 20

// Environ reads the environment a process was started with. It looks at the
// start time afterwards: what was read belongs to the target or to nobody.
func Environ(t Target) ([]string, error) {
	f, err := os.Open("/proc/" + strconv.Itoa(t.PID) + "/environ")
	switch {
	case errors.Is(err, os.ErrNotExist):
		return nil, errGone
	case errors.Is(err, os.ErrPermission):
		return nil, errors.New("denied: only its owner and root may see it")
	case err != nil:
		return nil, err
	}
	defer f.Close()
	b := make([]byte, 0, 8<<10)
	for len(b) < maxEnviron {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err != nil || n == 0 {
			break
		}
	}
	if start, err := startTicks(t.PID); err != nil || start != t.StartTicks {
		return nil, errReused
	}
	var out []string
	for kv := range bytes.SplitSeq(b, []byte{0}) {
		if len(kv) > 0 {
			out = append(out, string(kv))
		}
	}
	return out, nil
}
