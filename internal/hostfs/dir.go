package hostfs

import (
	"io/fs"
	"slices"

	"golang.org/x/sys/unix"
)

// Names lists a directory, sorted, without "." and "..".
func (r Root) Names(path string) ([]string, error) {
	names, err := r.AppendNames(nil, path)
	slices.Sort(names)
	return names, err
}

// AppendNames is Names without the order, for callers that reuse a slice.
func (r Root) AppendNames(names []string, path string) ([]string, error) {
	fd, err := unix.Open(r.Path(path), unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return names, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	defer unix.Close(fd)
	if names, err = appendNames(names, fd); err != nil {
		return names, &fs.PathError{Op: "readdirent", Path: path, Err: err}
	}
	return names, nil
}

// NamesAt lists a pinned directory (O_PATH), in no order.
func NamesAt(pinned int) ([]string, error) {
	fd, err := unix.Openat(pinned, ".", dirFlags, 0)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	return appendNames(nil, fd)
}

func appendNames(names []string, fd int) ([]string, error) {
	var buf [16 << 10]byte
	for {
		n, err := unix.ReadDirent(fd, buf[:])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return names, err
		case n <= 0:
			return names, nil
		}
		_, _, names = unix.ParseDirent(buf[:n], -1, names)
	}
}
