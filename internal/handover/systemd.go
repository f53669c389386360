package handover

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/coreos/go-systemd/v22/daemon"
	"golang.org/x/sys/unix"
)

// Inherited returns the descriptors that systemd passed at the start: the
// sockets of the socket unit and what was stored before, by their names.
func Inherited() (files []File) {
	for _, f := range activation.Files(true) {
		// Out of the file, which would close it some day; and never into
		// Go's poller.
		fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			files = append(files, File{f.Name(), fd})
		}
		f.Close()
	}
	return files
}

// HasStore tells whether systemd keeps descriptors for this service while it
// restarts: with FileDescriptorStoreMax it says so from version 254 on; before
// that the unit says it with TTMOND_FDSTORE=1.
func HasStore() bool {
	return os.Getenv("NOTIFY_SOCKET") != "" && (os.Getenv("FDSTORE") != "" || os.Getenv("TTMOND_FDSTORE") == "1")
}

// Store has systemd keep a descriptor for the next start of the service. It
// forgets it by itself when the other end closes. It does not wait: EAGAIN says
// that systemd is busy.
func Store(f File) error { return notify("FDSTORE=1\nFDNAME="+f.Name, []int{f.FD}) }

// Notify tells systemd something. It does not wait: EAGAIN says that systemd is
// busy. Without systemd it does nothing.
func Notify(state string) error {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	return notify(state, nil)
}

// WatchdogEvery is how often systemd wants to hear from us; 0: never.
func WatchdogEvery() time.Duration {
	every, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return 0
	}
	return every
}

// notify sends a message to the service manager.
func notify(state string, fds []int) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return errors.New("NOTIFY_SOCKET is not set")
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	var oob []byte
	if len(fds) > 0 {
		oob = unix.UnixRights(fds...)
	}
	for {
		// A leading @ stands for the abstract namespace, here as there.
		err := unix.Sendmsg(fd, []byte(state), oob, &unix.SockaddrUnix{Name: path}, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("telling systemd: %w", err)
		}
	}
}
