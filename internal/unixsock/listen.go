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

// MaxPath is how long the path of a socket may be: what sockaddr_un holds,
// less the final zero.
const MaxPath = 107

// Lock locks the lock file of the socket at path: path.lock. It holds the pid
// of the owner, for people, and is left behind, since removing it would let
// two servers lock two files of one name. The lock is that of the open file:
// it can be handed to a successor, and goes with the last process that has it.
//
// The directory must be one where nobody else may write (see OwnDir), and only
// the owner can open the file: whoever can open it can lock it.
func Lock(path string) (fd int, err error) {
	name := path + ".lock"
	fd, err = unix.Open(name, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CREAT, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return -1, fmt.Errorf("locking %s: it is a symbolic link; remove it", name)
	}
	if err != nil {
		return -1, fmt.Errorf("opening the lock file %s: %w", name, err)
	}
	if err := checkLock(fd, name); err != nil {
		unix.Close(fd)
		return -1, err
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

// checkLock makes sure that a lock file is ours alone, and nothing else.
func checkLock(fd int, name string) error {
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return fmt.Errorf("looking at %s: %w", name, err)
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return fmt.Errorf("locking %s: it is not a regular file; remove it", name)
	case st.Nlink != 1:
		return fmt.Errorf("locking %s: it has other names (hard links); remove it", name)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("locking %s: it belongs to user %d; remove it", name, st.Uid)
	}
	if st.Mode&0o077 != 0 {
		if err := unix.Fchmod(fd, 0o600); err != nil {
			return fmt.Errorf("locking %s: %w", name, err)
		}
	}
	return nil
}

// OwnDir makes a directory if it is not there, and makes sure that nobody but
// its owner, who is us or root, may put anything into it.
func OwnDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("making the directory of a socket: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("looking at %s: %w", dir, err)
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: choose a directory that only root or you can write to", dir, st.Uid)
	}
	if st.Mode&0o022 != 0 {
		return fmt.Errorf("others may write to %s: choose a directory that only root or you can write to", dir)
	}
	return nil
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

// Listen makes the socket. It never takes it from a server that lives, never
// follows a symbolic link, and replaces only a socket that nobody serves.
func Listen(o Options) (fd int, err error) {
	if len(o.Path) > MaxPath {
		return -1, fmt.Errorf("%s: the path of a socket may have no more than %d bytes", o.Path, MaxPath)
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
	if err := allowClients(o); err != nil {
		return err
	}
	return unix.Listen(fd, backlog)
}

// allowClients gives the socket the mode and group that let others connect. It
// holds the file that it changes: a link that somebody puts in its place is not
// followed.
func allowClients(o Options) error {
	file, err := unix.Open(o.Path, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(file)
	var st unix.Stat_t
	if err := unix.Fstat(file, &st); err != nil {
		return err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFSOCK || int(st.Uid) != os.Geteuid() {
		return errors.New("somebody has put something else in its place")
	}
	if o.GID != 0 {
		if err := unix.Fchownat(file, "", -1, o.GID, unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("giving it to group %d: %w", o.GID, err)
		}
	}
	mode := o.Mode.Perm()
	if mode == 0 {
		mode = 0o666
	}
	return os.Chmod("/proc/self/fd/"+strconv.Itoa(file), mode)
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
		// It has no lock of ours: the old allocation server, or some other program.
		return fmt.Errorf("%s is served by pid %d: %w", path, pid, ErrLive)
	}
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the socket that a server left at %s: %w", path, err)
	}
	return nil
}

// probe reports whether somebody listens on a socket, and who. A connection that
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
