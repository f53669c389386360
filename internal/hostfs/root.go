package hostfs

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Root is the directory that stands for "/" of the host being watched. The
// zero Root is the host itself; another one is a container's mount of the
// host, or a tree made by ttmon-sim.
type Root struct{ dir string }

// At returns the root at dir; "" and "/" are the host itself.
func At(dir string) Root {
	dir = filepath.Clean(dir)
	if dir == "/" || dir == "." {
		return Root{}
	}
	return Root{dir}
}

// String is the root as a user would write it.
func (r Root) String() string {
	if r.dir == "" {
		return "/"
	}
	return r.dir
}

// CheckDir returns an error that names dir where it cannot stand for the root of a
// host: a host without any file would look like one without boards.
func CheckDir(dir string) error {
	st, err := os.Stat(dir)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a directory", dir)
	}
	return nil
}

// Path turns a path of the watched host ("/sys/class/…") into one of ours.
func (r Root) Path(path string) string {
	if r.dir == "" {
		return path
	}
	return r.dir + path
}

// Open opens a file for reading. It refuses every path below /dev but /dev/shm,
// and follows links: it is for files of the kernel and of root. A file that any
// user may have created is opened through a Dir, which follows none. The caller
// closes the descriptor.
func (r Root) Open(path string) (fd int, err error) {
	if mayBeNode(path) {
		return -1, fmt.Errorf("opening %s: device nodes are never opened", path)
	}
	for {
		fd, err = unix.Open(r.Path(path), unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOCTTY, 0)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return -1, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return fd, nil
}

// mayBeNode reports whether opening a path could open a device: a node, seen
// from the host or from a process's root, or a process's descriptor of one.
func mayBeNode(path string) bool {
	if strings.HasPrefix(path, "/proc/") && strings.Contains(path, "/fd/") {
		return true
	}
	i := strings.Index(path+"/", "/dev/")
	return i >= 0 && !strings.HasPrefix(path, "/sys/") && !strings.HasPrefix(path[i:], "/dev/shm/")
}

// Read returns what a small file holds, at most limit bytes of it. It is for
// pseudo files, whose size is unknown and which must not be passed to Go's
// poller: drivers that return EAGAIN would make it wait for ever.
func (r Root) Read(path string, limit int) ([]byte, error) {
	fd, err := r.Open(path)
	if err != nil {
		return nil, err
	}
	defer unix.Close(fd)
	buf := make([]byte, 0, min(limit, 512))
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			buf = slices.Grow(buf, min(limit-len(buf), cap(buf)))
		}
		n, err := unix.Read(fd, buf[len(buf):min(cap(buf), limit)])
		switch {
		case err == unix.EINTR:
			continue
		case err != nil:
			return nil, &fs.PathError{Op: "read", Path: path, Err: err}
		case n == 0:
			return buf, nil
		}
		buf = buf[:len(buf)+n]
	}
	return buf, nil
}

// ReadString is Read for one-line files: the content without the line break.
func (r Root) ReadString(path string) (string, error) {
	b, err := r.Read(path, 4096)
	return strings.TrimRight(string(b), "\n"), err
}

// Readlink returns the target of a symbolic link.
func (r Root) Readlink(path string) (string, error) {
	var buf [4096]byte
	n, err := unix.Readlink(r.Path(path), buf[:])
	if err != nil {
		return "", &fs.PathError{Op: "readlink", Path: path, Err: err}
	}
	return string(buf[:n]), nil
}

// Stat follows links.
func (r Root) Stat(path string) (unix.Stat_t, error) {
	var st unix.Stat_t
	if err := unix.Stat(r.Path(path), &st); err != nil {
		return st, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return st, nil
}

// Exists reports whether path exists; false if we may not stat it.
func (r Root) Exists(path string) bool {
	_, err := r.Stat(path)
	return err == nil
}

// MayUse reports whether the calling user may read and write path. It asks the
// kernel and opens nothing, so it is safe for a device node.
func (r Root) MayUse(path string) bool {
	return unix.Faccessat(unix.AT_FDCWD, r.Path(path), unix.R_OK|unix.W_OK, unix.AT_EACCESS) == nil
}
