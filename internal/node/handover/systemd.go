package handover

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// firstListen is the first descriptor that systemd passes.
const firstListen = 3

// Inherited returns the descriptors that were passed at startup, by their names: by
// the program before us in this process, or by systemd (the sockets of the socket
// unit, and what was stored before). Variables about them are removed from the
// environment of processes that this one starts.
func Inherited() (files []File) {
	if files, err := leftOpen(); err == nil {
		return files
	}
	pid, errPID := strconv.Atoi(os.Getenv("LISTEN_PID"))
	n, err := strconv.Atoi(os.Getenv("LISTEN_FDS"))
	names := strings.Split(os.Getenv("LISTEN_FDNAMES"), ":")
	for _, name := range []string{"LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"} {
		os.Unsetenv(name)
	}
	if errPID != nil || err != nil || pid != os.Getpid() || n < 0 || n > maxListen {
		return nil
	}
	for i := range n {
		unix.CloseOnExec(firstListen + i)
		name := "LISTEN_FD_" + strconv.Itoa(firstListen+i)
		if i < len(names) && names[i] != "" {
			name = names[i]
		}
		// A duplicate, which no other part of the process closes.
		fd, err := unix.FcntlInt(uintptr(firstListen+i), unix.F_DUPFD_CLOEXEC, 0)
		if err == nil {
			files = append(files, File{name, fd})
		}
		unix.Close(firstListen + i)
	}
	return files
}

// maxListen is more than systemd ever passes.
const maxListen = 1 << 16

// HasStore reports whether systemd keeps descriptors for this service while it
// restarts: from version 254 on FDSTORE is set with FileDescriptorStoreMax;
// before that the unit sets TTMOND_FDSTORE=1.
func HasStore() bool {
	return os.Getenv("NOTIFY_SOCKET") != "" && (os.Getenv("FDSTORE") != "" || os.Getenv("TTMOND_FDSTORE") == "1")
}

// Store has systemd keep a descriptor for the next start of the service.
// systemd drops it when the other end closes. It does not block: EAGAIN means
// that systemd is busy.
func Store(f File) error { return notify("FDSTORE=1\nFDNAME="+f.Name, []int{f.FD}) }

// Notify sends a state to systemd. It does not block: EAGAIN means that systemd
// is busy. Without systemd it does nothing.
func Notify(state string) error {
	if os.Getenv("NOTIFY_SOCKET") == "" {
		return nil
	}
	return notify(state, nil)
}

// WatchdogEvery is the watchdog interval of systemd; 0: none.
func WatchdogEvery() time.Duration {
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 63)
	if err != nil || us <= 0 || us > math.MaxInt64/int64(time.Microsecond) {
		return 0
	}
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	return time.Duration(us) * time.Microsecond
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
		// A leading @ stands for the abstract namespace, as in Go.
		err := unix.Sendmsg(fd, []byte(state), oob, &unix.SockaddrUnix{Name: path}, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, unix.EINTR):
			return fmt.Errorf("notifying systemd: %w", err)
		}
	}
}
