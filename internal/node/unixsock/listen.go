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

// ErrLive means that another server is serving the socket.
var ErrLive = errors.New("another server is already running there")

// Options configure a socket.
type Options struct {
	Path string
	Mode fs.FileMode // which users may connect; 0 is 0666: all
	GID  int         // group of the socket; 0 is that of the process
}

// MaxPath is how long the path of a socket may be: what sockaddr_un holds,
// less the final zero.
const MaxPath = 107

// Lock locks the lock file of the socket at path: path.lock. It holds the pid
// of the owner, for people, and is not removed, since that would let two
// servers lock two files of one name. The lock belongs to the open file: it can
// be handed to a successor, and is released with the last process that has it.
// The directory must be one where no other user may write (see OwnDir), and
// only the owner may open the file: a user who can open it can lock it.
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
	WritePID(fd)
	return fd, nil
}

// checkLock makes sure that a lock file is ours alone, and nothing else.
func checkLock(fd int, name string) error {
	var st unix.Stat_t
	switch err := unix.Fstat(fd, &st); {
	case err != nil:
		return fmt.Errorf("cannot stat %s: %w", name, err)
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

// OwnDir creates a directory if it does not exist, and makes sure that only its
// owner, which is us or root, may create files in it.
func OwnDir(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("creating the directory of a socket: %w", err)
	}
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return fmt.Errorf("cannot stat %s: %w", dir, err)
	}
	if st.Uid != 0 && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to user %d: choose a directory that only root or you can write to", dir, st.Uid)
	}
	if st.Mode&0o022 != 0 {
		return fmt.Errorf("others may write to %s: choose a directory that only root or you can write to", dir)
	}
	return nil
}

// WritePID writes our pid into a lock file.
func WritePID(fd int) {
	// In this order, so that it is never empty.
	text := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if n, err := unix.Pwrite(fd, text, 0); err == nil {
		_ = unix.Ftruncate(fd, int64(n))
	}
}

// readOwner returns which process holds a lock, as the end of a phrase.
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

// Listen creates the socket. It never replaces that of a running server, never
// follows a symbolic link, and replaces only a socket without a server.
func Listen(o Options) (fd int, err error) {
	if len(o.Path) > MaxPath {
		return -1, fmt.Errorf("%s: the path of a socket may have no more than %d bytes", o.Path, MaxPath)
	}
	if err := removeStale(o.Path); err != nil {
		return -1, err
	}
	fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return -1, fmt.Errorf("creating a socket: %w", err)
	}
	if err := bind(fd, o); err != nil {
		unix.Close(fd)
		return -1, fmt.Errorf("listening at %s: %w", o.Path, err)
	}
	return fd, nil
}

func bind(fd int, o Options) error {
	// No client may connect before mode and group are set. The file gets the mode
	// that the socket has.
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

// allowClients sets the mode and group that let others connect. It pins the
// file that it changes: a link that replaces it is not followed.
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
		return errors.New("another user has replaced it")
	}
	if o.GID != 0 {
		if err := unix.Fchownat(file, "", -1, o.GID, unix.AT_EMPTY_PATH); err != nil {
			return fmt.Errorf("changing its group to %d: %w", o.GID, err)
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

// removeStale removes a socket without a server. Anything else at its path is
// an error.
func removeStale(path string) error {
	var st unix.Stat_t
	switch err := unix.Lstat(path, &st); {
	case errors.Is(err, unix.ENOENT):
		return nil
	case err != nil:
		return fmt.Errorf("cannot stat %s: %w", path, err)
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFSOCK:
	case unix.S_IFLNK:
		return fmt.Errorf("%s is a symbolic link: it is not followed; remove it", path)
	default:
		return fmt.Errorf("%s is not a socket; remove it, or choose another path", path)
	}
	peer, live, err := probe(path)
	switch {
	case err != nil:
		return fmt.Errorf("connecting to %s: %w", path, err)
	case live:
		// It has no lock of ours: the old allocation server, or some other program.
		return fmt.Errorf("%s is served by pid %d: %w", path, peer.Pid, ErrLive)
	}
	if err := unix.Unlink(path); err != nil && !errors.Is(err, unix.ENOENT) {
		return fmt.Errorf("removing the socket that a server left at %s: %w", path, err)
	}
	return nil
}

// Peer is the process that listens on a socket, as the kernel says; its pid is 0 where
// this process cannot see it.
func Peer(path string) (unix.Ucred, error) {
	cred, live, err := probe(path)
	if err == nil && !live {
		err = unix.ECONNREFUSED
	}
	return cred, err
}

// probe reports whether a process listens on a socket, and which. A
// connection that closes without sending anything does no server any harm.
func probe(path string) (peer unix.Ucred, live bool, err error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return peer, false, err
	}
	defer unix.Close(fd)
	switch err := unix.Connect(fd, &unix.SockaddrUnix{Name: path}); {
	case err == nil:
		if cred, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			peer = *cred
		}
		return peer, true, nil
	case errors.Is(err, unix.EAGAIN): // its queue is full
		return peer, true, nil
	case errors.Is(err, unix.ECONNREFUSED), errors.Is(err, unix.ENOENT):
		return peer, false, nil
	default:
		return peer, false, err
	}
}
