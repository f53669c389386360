package daemon

import (
	"errors"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"
)

// EndSignals are those that stop a daemon. SIGHUP is one only where it says that
// the terminal was closed; otherwise it asks for the configuration to be read
// again.
func EndSignals() []os.Signal {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if OnTerminal() && !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	return ends
}

// OnTerminal reports whether the log goes to a terminal.
func OnTerminal() bool {
	_, err := unix.IoctlGetTermios(int(os.Stderr.Fd()), unix.TCGETS)
	return err == nil
}

// Hangups listens for SIGHUP from now on and for good, except where that says
// that the terminal was closed. It is called before the configuration is read, so
// that no change of it is missed; it never stops, or a SIGHUP would kill a daemon that
// is ending.
func Hangups() <-chan os.Signal {
	if OnTerminal() {
		return nil
	}
	hups := make(chan os.Signal, 1)
	signal.Notify(hups, syscall.SIGHUP)
	return hups
}

// UsageError is an error of the command line or the configuration.
type UsageError struct{ error }

// Usage makes an error one of the command line or the configuration.
func Usage(err error) error { return UsageError{err} }

// Unwrap is for errors.Is.
func (e UsageError) Unwrap() error { return e.error }

// ExitCode is 2 for what the user can correct on the command line or in the
// configuration, 1 for the rest.
func ExitCode(err error) int {
	if _, ok := errors.AsType[UsageError](err); ok {
		return 2
	}
	return 1
}
