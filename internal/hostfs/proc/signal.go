package proc

import (
	"bytes"
	"errors"
	"fmt"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
)

// Errors for a process given by its identity.
var (
	ErrGone   = errors.New("the process has exited")
	ErrReused = errors.New("the process has exited; another process has its pid now")
)

// Signal sends a signal to a process of our own pid namespace, never to another
// that reused its pid. It opens a pidfd first and reads the start time of the
// pid after that: if it is the target's, the pid was not reused, and the pidfd
// refers to the target.
func Signal(id model.ProcessID, sig syscall.Signal) error {
	if id.PID <= 0 || id.StartTicks == 0 {
		return errors.New("incomplete process identity: need a pid and a start time")
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	switch {
	case errors.Is(err, unix.ESRCH):
		return ErrGone
	case err != nil:
		return fmt.Errorf("opening a pidfd: %w", err)
	}
	defer unix.Close(fd)
	switch s, err := ReadStat(hostfs.Root{}, id.PID); {
	case noProcess(err):
		return ErrGone
	case err != nil:
		return fmt.Errorf("checking the start time: %w", err)
	case s.Start != id.StartTicks:
		return ErrReused
	}
	switch err := unix.PidfdSendSignal(fd, unix.Signal(sig), nil, 0); {
	case errors.Is(err, unix.ESRCH):
		return ErrGone
	case errors.Is(err, unix.EPERM):
		return errors.New("permission denied: only its owner and root may signal it")
	case err != nil:
		return fmt.Errorf("sending %s: %w", unix.SignalName(unix.Signal(sig)), err)
	}
	return nil
}

// EnvironOf returns the whole environment that a process of this host was
// started with, as NAME=value. It waits up to a second for the kernel.
func EnvironOf(id model.ProcessID) ([]string, error) {
	r := New(hostfs.Root{})
	defer r.Close()
	r.Guard = NewGuard(time.Second)
	p, err := r.Process(id.PID)
	switch {
	case noProcess(err):
		return nil, ErrGone
	case err != nil:
		return nil, err
	case p.StartTicks != id.StartTicks:
		return nil, ErrReused
	}
	b, err := r.Guard.read(p, "environ", nil, maxEnviron)
	switch {
	case noProcess(err):
		return nil, ErrGone
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		return nil, errors.New("permission denied: only its owner and root may read it")
	case err != nil:
		return nil, fmt.Errorf("reading the environment: %w", err)
	}
	var out []string
	for variable := range bytes.SplitSeq(b, []byte{0}) {
		if len(variable) > 0 {
			out = append(out, string(variable))
		}
	}
	return out, nil
}
