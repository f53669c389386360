package handover

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// What goes over the socket. The old process says hello. The new one says
// "give", and gets a pipe on which the old one streams what it knows while it
// goes on serving. When the new one has caught up it says "ready": now the old
// one pauses, sends the last changes and all descriptors, and waits. The new
// one says "taken" when it could serve; the old one says "yours" and is done.
// If the new one dies or says anything else, the old one goes on serving.

const (
	magic         = "ttmon.handover/2"
	maxPerMessage = 200 // the kernel allows 253
	maxManifest   = 16 << 20

	// Patience bounds what nobody has to wait for; PausePatience bounds the
	// steps during which clients wait.
	Patience      = 30 * time.Second
	PausePatience = 3 * time.Second
)

// Hello is what a daemon says about itself.
type Hello struct {
	Magic   string `json:"magic"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
	// Keeper is set by a process that only keeps the connections of a daemon
	// that was stopped: the next daemon takes them without being asked to.
	Keeper bool `json:"keeper"`
}

// ErrRefused is the error of a successor that gave up.
var ErrRefused = errors.New("the successor did not take over")

// ErrStranger is the error of a peer that belongs to another user.
var ErrStranger = errors.New("the process at the other end belongs to another user")

// Listen makes the socket on which a daemon can be asked to hand over. Only
// its own user and root can use it.
func Listen(path string) (*net.UnixListener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("listening for a successor: %s has more than %d bytes", path, maxPath)
	}
	_ = os.Remove(path) // left by a daemon that is gone: the caller holds the lock
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("listening for a successor: %w", err)
	}
	f := os.NewFile(uintptr(fd), path)
	defer f.Close()
	// The file gets the mode that the socket has when it is bound.
	if err = unix.Fchmod(fd, 0o600); err == nil {
		err = unix.Bind(fd, &unix.SockaddrUnix{Name: path})
	}
	if err == nil {
		err = unix.Listen(fd, 8)
	}
	if err != nil {
		return nil, fmt.Errorf("listening for a successor at %s: %w", path, err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listening for a successor at %s: %w", path, err)
	}
	return l.(*net.UnixListener), nil
}

// maxPath is what sockaddr_un holds, less the final zero.
const maxPath = 107

// trusted refuses a peer that is neither our user nor root.
func trusted(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	ctl := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(ctl, err); err != nil {
		return fmt.Errorf("asking who is at the other end: %w", err)
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("uid %d: %w", cred.Uid, ErrStranger)
	}
	return nil
}

// SendHello begins the old process's side: it returns nil when the other one asks
// to take over. One that only wanted the hello gives io.EOF.
func SendHello(c *net.UnixConn, h Hello) error {
	if err := trusted(c); err != nil {
		return err
	}
	h.Magic, h.PID = magic, os.Getpid()
	_ = c.SetDeadline(time.Now().Add(Patience))
	if err := writeJSON(c, h); err != nil {
		return err
	}
	return expect(c, "give")
}

// SendFiles sends descriptors, which stay the caller's.
func SendFiles(c *net.UnixConn, files []File, timeout time.Duration) error {
	names := make([]string, len(files))
	for i, f := range files {
		names[i] = f.Name
	}
	_ = c.SetDeadline(time.Now().Add(timeout))
	if err := writeJSON(c, names); err != nil {
		return err
	}
	for len(files) > 0 {
		n := min(len(files), maxPerMessage)
		fds := make([]int, n)
		for i := range fds {
			fds[i] = files[i].FD
		}
		if _, _, err := c.WriteMsgUnix([]byte{'f'}, unix.UnixRights(fds...), nil); err != nil {
			return fmt.Errorf("handing over descriptors: %w", err)
		}
		files = files[n:]
	}
	return nil
}

// AwaitReady waits until the successor has caught up.
func AwaitReady(c *net.UnixConn) error {
	_ = c.SetDeadline(time.Now().Add(Patience))
	if err := expect(c, "ready"); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// AwaitTaken waits until the successor could serve, and lets it. On an error
// the caller goes on serving; otherwise it must close what it sent.
func AwaitTaken(c *net.UnixConn) error {
	_ = c.SetDeadline(time.Now().Add(PausePatience))
	if err := expect(c, "taken"); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if _, err := c.Write([]byte("yours\n")); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// Dial asks the daemon at path who it is.
func Dial(path string) (*net.UnixConn, Hello, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, Hello{}, fmt.Errorf("calling the running daemon: %w", err)
	}
	h, err := ReadHello(c)
	if err != nil {
		c.Close()
		return nil, Hello{}, fmt.Errorf("calling the running daemon at %s: %w", path, err)
	}
	return c, h, nil
}

// ReadHello reads the hello of a daemon on a connection to it.
func ReadHello(c *net.UnixConn) (h Hello, err error) {
	if err := trusted(c); err != nil {
		return h, err
	}
	_ = c.SetDeadline(time.Now().Add(Patience))
	if err := readJSON(c, &h); err != nil {
		return h, err
	}
	if h.Magic != magic {
		return h, fmt.Errorf("it says %q, not %q: stop it first, then start this one", h.Magic, magic)
	}
	return h, nil
}

// Ask asks to take over.
func Ask(c *net.UnixConn) error { return say(c, "give", Patience) }

// Ready tells the old process that the new one has caught up.
func Ready(c *net.UnixConn) error { return say(c, "ready", PausePatience) }

// ReceiveFiles takes descriptors. They are the caller's.
func ReceiveFiles(c *net.UnixConn, timeout time.Duration) (files []File, err error) {
	_ = c.SetDeadline(time.Now().Add(timeout))
	var names []string
	if err := readJSON(c, &names); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			Close(files)
			files = nil
		}
	}()
	for len(files) < len(names) {
		fds, err := receive(c)
		for i, fd := range fds {
			name := ""
			if len(files) < len(names) {
				name = names[len(files)]
			}
			files = append(files, File{name, fds[i]})
			unix.CloseOnExec(fd)
		}
		switch {
		case err != nil:
			return files, fmt.Errorf("taking descriptors: %w", err)
		case len(files) > len(names):
			return files, errors.New("taking descriptors: more came than were announced")
		}
	}
	return files, nil
}

// Taken tells the old process that it may go, and returns nil when it has
// agreed. Before that nothing may be read from the descriptors: should this
// fail, the old process goes on with them.
func Taken(c *net.UnixConn) error {
	err := say(c, "taken", PausePatience)
	if err == nil {
		err = expect(c, "yours")
	}
	if err != nil {
		return fmt.Errorf("telling the old daemon to go: %w", err)
	}
	return nil
}

// receive takes one message of descriptors.
func receive(c *net.UnixConn) (fds []int, err error) {
	var b [1]byte
	oob := make([]byte, unix.CmsgSpace(4*maxPerMessage))
	n, oobn, flags, _, err := c.ReadMsgUnix(b[:], oob)
	if err != nil {
		return nil, err
	}
	msgs, err := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range msgs {
		rights, rerr := unix.ParseUnixRights(&msgs[i])
		fds = append(fds, rights...)
		err = errors.Join(err, rerr)
	}
	switch {
	case err != nil:
		return fds, err
	case flags&unix.MSG_CTRUNC != 0:
		return fds, errors.New("the kernel cut them off: raise the limit of open files")
	case n == 0 || len(fds) == 0:
		return fds, io.ErrUnexpectedEOF
	}
	return fds, nil
}

// say writes one line.
func say(c *net.UnixConn, word string, timeout time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write([]byte(word + "\n")); err != nil {
		return fmt.Errorf("saying %q: %w", word, err)
	}
	return nil
}

// expect reads one line.
func expect(c *net.UnixConn, word string) error {
	b := make([]byte, len(word)+1)
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if string(b) != word+"\n" {
		return fmt.Errorf("it says %q, not %q", b, word)
	}
	return nil
}

func writeJSON(c *net.UnixConn, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	_, err = c.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(b))), b...))
	return err
}

func readJSON(c *net.UnixConn, v any) error {
	var n [4]byte
	if _, err := io.ReadFull(c, n[:]); err != nil {
		return err
	}
	length := binary.LittleEndian.Uint32(n[:])
	if length > maxManifest {
		return fmt.Errorf("a list of %d bytes", length)
	}
	b := make([]byte, length)
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	return json.Unmarshal(b, v)
}
