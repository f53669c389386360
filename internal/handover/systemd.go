package handover

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/coreos/go-systemd/v22/activation"
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

// StoreOutlivesStop tells whether it keeps them while the service is stopped,
// too. Only versions that know FileDescriptorStorePreserve do, from 254 on.
func StoreOutlivesStop() bool { return HasStore() && os.Getenv("FDSTORE") != "" }

// Store has systemd keep descriptors for the next start of the service. It
// forgets them by itself when the other end closes.
func Store(files []File) error {
	for _, f := range files {
		if err := notify("FDSTORE=1\nFDNAME="+f.Name, []int{f.FD}); err != nil {
			return fmt.Errorf("storing a descriptor with systemd: %w", err)
		}
	}
	return nil
}

// Forget has systemd drop the descriptors with a name.
func Forget(name string) error { return notify("FDSTOREREMOVE=1\nFDNAME="+name, nil) }

// Barrier waits until systemd has taken in all that was sent before.
func Barrier(timeout time.Duration) error {
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("waiting for systemd: %w", err)
	}
	defer r.Close()
	err = notify("BARRIER=1", []int{int(w.Fd())})
	w.Close()
	if err != nil {
		return fmt.Errorf("waiting for systemd: %w", err)
	}
	_ = r.SetReadDeadline(time.Now().Add(timeout))
	var b [1]byte
	if _, err := r.Read(b[:]); errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("waiting for systemd: %w", err)
	}
	return nil
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
		err := unix.Sendmsg(fd, []byte(state), oob, &unix.SockaddrUnix{Name: path}, unix.MSG_NOSIGNAL)
		if !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}
