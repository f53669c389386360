package unixsock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// ErrLive is the error of a socket that another server is serving.
var ErrLive = errors.New("a server is running there already")

// Options say how a socket is made.
type Options struct {
	Path string
	Mode fs.FileMode // who may connect; 0 is 0666: every user
	GID  int         // group of the socket; 0 is that of the process
}

// maxPath is what sockaddr_un holds, less the final zero.
const maxPath = 107

// Lock locks the lock file of the socket at path: path.lock. It holds the pid
// of the owner, for people, and is left behind, since removing it would let
// two servers lock two files of one name. The lock is that of the open file:
// it can be handed to a successor, and goes with the last process that has it.
func Lock(path string) (fd int, err error) {
	name := path + ".lock"
	const flags = unix.O_RDWR | unix.O_CLOEXEC | unix.O_NOFOLLOW | unix.O_NONBLOCK
	// Twice: the file may come between the two ways to open it. Never O_CREAT
	// without O_EXCL: in a sticky directory the kernel refuses that for a
	// file of another user, whatever its mode.
	for range 2 {
		fd, err = unix.Open(name, flags, 0)
		if errors.Is(err, unix.EACCES) {
			fd, err = unix.Open(name, flags&^unix.O_RDWR|unix.O_RDONLY, 0)
		}
		if errors.Is(err, unix.ENOENT) {
			fd, err = unix.Open(name, flags|unix.O_CREAT|unix.O_EXCL, 0o644)
		}
		if !errors.Is(err, unix.EEXIST) {
			break
		}
	}
	if errors.Is(err, unix.ELOOP) {
		return -1, fmt.Errorf("locking %s: it is a symbolic link; remove it", name)
	}
	if err != nil {
		return -1, fmt.Errorf("opening the lock file %s: %w", name, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		unix.Close(fd)
		return -1, fmt.Errorf("locking %s: it is not a regular file; remove it", name)
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		owner := readOwner(fd)
		unix.Close(fd)
		if errors.Is(err, unix.EWOULDBLOCK) {
			return -1, fmt.Errorf("locking %s%s: %w", name, owner, ErrLive)
		}
		return -1, fmt.Errorf("locking %s: %w", name, err)
	}
	Sign(fd)
	return fd, nil
}

// Sign writes our pid into a lock file.
func Sign(fd int) {
	// In this order, so that it is never empty.
	text := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if n, err := unix.Pwrite(fd, text, 0); err == nil {
		_ = unix.Ftruncate(fd, int64(n))
	}
}

// readOwner says who holds a lock, as the end of a phrase.
func readOwner(fd int) string {
	var b [32]byte
	n, _ := unix.Pread(fd, b[:], 0)
	line, _, _ := strings.Cut(string(b[:max(n, 0)]), "\n")
	pid, err := strconv.Atoi(line)
	if err != nil {
		return ""
	}
	return fmt.Sprintf(" (held by pid %d)", pid)
}

// Listen makes the socket, whose lock the caller holds. It never takes it from
// a server that lives, never follows a symbolic link, and replaces only a
// socket that nobody serves.
func Listen(o Options) (fd int, err error) {
	if len(o.Path) > maxPath {
		return -1, fmt.Errorf("%s: the path of a socket may have no more than %d bytes", o.Path, maxPath)
	}
	if err := makeRoom(o.Path); err != nil {
		return -1, err
	}
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("making a socket: %w", err)
	}
	if err := bind(fd, o); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listening at %s: %w", o.Path, err)
	}
	return fd, nil
}

func bind(fd int, o Options) error {
	// Nobody may connect before mode and group are what they shall be. The
	// file gets the mode that the socket has.
	if err := unix.Fchmod(fd, 0o600); err != nil {
		return err
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: o.Path}); err != nil {
		return err
	}
	if o.GID != 0 {
		if err := unix.Lchown(o.Path, -1, o.GID); err != nil {
			return fmt.Errorf("giving it to group %d: %w", o.GID, err)
		}
	}
	mode := o.Mode.Perm()
	if mode == 0 {
		mode = 0o666
	}
	if err := os.Chmod(o.Path, mode); err != nil {
		return err
	}
	return unix.Listen(fd, backlog)
}

// backlog is how many clients may wait to be accepted; the kernel lowers it
// to net.core.somaxconn.
const backlog = 4096

// makeRoom removes a socket that nobody serves. Anything else in its place is an
// error.
func makeRoom(path string) error {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("looking at %s: %w", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
	case unix.S_IFLNK:
		return fmt.Errorf("%s is a symbolic link: it is not followed; remove it", path)
	default:
		return fmt.Errorf("%s is not a socket; remove it, or choose another path", path)
	}
	pid, live, err := probe(path)
	switch {
	case err != nil:
		return fmt.Errorf("trying %s: %w", path, err)
	case live:
		// It has no lock of ours: the old allocation server, or a friend.
		return fmt.Errorf("%s is served by pid %d: %w", path, pid, ErrLive)
	}
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the socket that a server left at %s: %w", path, err)
	}
	return nil
}

// probe tells whether somebody listens on a socket, and who. A connection that
// ends without a word does no server any harm.
func probe(path string) (pid int, live bool, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return 0, false, err
	}
	defer unix.Close(fd)
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); {
	case err == nil:
		if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(cred.Pid)
		}
		return pid, true, nil
	case errors.Is(err, unix.EAGAIN): // its queue is full
		return 0, true, nil
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		return 0, false, nil
	default:
		return 0, false, err
	}
}
