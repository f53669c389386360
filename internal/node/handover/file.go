package handover

import (
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// File is an open descriptor with a name. Several may have the same name.
type File struct {
	Name string `json:"name"`
	FD   int    `json:"fd"`
}

// Extract removes the files with a name from the list and returns their
// descriptors, which the caller then owns.
func Extract(files *[]File, name string) (fds []int) {
	rest := (*files)[:0]
	for _, f := range *files {
		if f.Name == name {
			fds = append(fds, f.FD)
		} else {
			rest = append(rest, f)
		}
	}
	*files = rest
	return fds
}

// Close closes the files that were not extracted.
func Close(files []File) {
	for _, f := range files {
		unix.Close(f.FD)
	}
}

// Pair returns the two ends of a connection: one for us, and one that a process
// we start inherits.
func Pair() (ours *net.UnixConn, theirs *os.File, err error) {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("cannot connect to a successor: %w", err)
	}
	theirs = os.NewFile(uintptr(fds[1]), "successor")
	if ours, err = Conn(fds[0]); err != nil {
		theirs.Close()
		return nil, nil, err
	}
	return ours, theirs, nil
}

// Conn returns a connection for a descriptor, which it then owns.
func Conn(fd int) (*net.UnixConn, error) {
	f := os.NewFile(uintptr(fd), "handover")
	defer f.Close()
	c, err := net.FileConn(f)
	if err != nil {
		return nil, fmt.Errorf("connecting to a daemon: %w", err)
	}
	u, ok := c.(*net.UnixConn)
	if !ok {
		c.Close()
		return nil, fmt.Errorf("connecting to a daemon: descriptor %d is no Unix socket", fd)
	}
	return u, nil
}
