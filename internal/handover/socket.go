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

// The protocol. The old process sends a hello. The new one sends "give", and
// gets a pipe on which the old one streams its state while it continues
// serving. When the new one has caught up it sends "ready": now the old one
// pauses, sends the last changes and all descriptors, and waits. The new one
// sends "taken" when it could serve; the old one sends "yours" and is done. If
// the new one exits or sends anything else, the old one continues serving.

const (
	magic         = "ttmon.handover/2"
	maxPerMessage = 200 // the kernel allows 253
	maxManifest   = 16 << 20

	// Timeout bounds the steps during which no client waits; PauseTimeout bounds
	// those during which clients wait.
	Timeout      = 30 * time.Second
	PauseTimeout = 3 * time.Second
)

// Hello describes a daemon to its successor.
type Hello struct {
	Magic   string `json:"magic"`
	PID     int    `json:"pid"`
	Version string `json:"version"`
	// Keeper is set by a process that only keeps the connections of a daemon that
	// was stopped: the next daemon takes over without a request.
	Keeper bool `json:"keeper"`
}

// ErrRefused means that the successor gave up.
var ErrRefused = errors.New("the successor did not take over")

// ErrOtherUser means that the peer belongs to another user.
var ErrOtherUser = errors.New("the process at the other end belongs to another user")

// Listen creates the socket on which a successor can request a takeover. Only
// its own user and root can use it.
func Listen(path string) (*net.UnixListener, error) {
	if len(path) > maxPath {
		return nil, fmt.Errorf("listening for a successor: %s has more than %d bytes", path, maxPath)
	}
	_ = os.Remove(path) // left by a daemon that has exited: the caller holds the lock
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

// checkPeer rejects a peer that is neither our user nor root.
func checkPeer(c *net.UnixConn) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return err
	}
	var cred *unix.Ucred
	ctl := raw.Control(func(fd uintptr) { cred, err = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED) })
	if err = errors.Join(ctl, err); err != nil {
		return fmt.Errorf("cannot identify the peer: %w", err)
	}
	if cred.Uid != 0 && int(cred.Uid) != os.Geteuid() {
		return fmt.Errorf("uid %d: %w", cred.Uid, ErrOtherUser)
	}
	return nil
}

// SendHello starts the old process's side: it returns nil when the other one
// requests a takeover. It returns io.EOF if that only wanted the hello.
func SendHello(c *net.UnixConn, h Hello) error {
	if err := checkPeer(c); err != nil {
		return err
	}
	h.Magic, h.PID = magic, os.Getpid()
	_ = c.SetDeadline(time.Now().Add(Timeout))
	if err := writeJSON(c, h); err != nil {
		return err
	}
	return expectWord(c, "give")
}

// SendFiles sends descriptors, which the caller still owns.
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
	_ = c.SetDeadline(time.Now().Add(Timeout))
	if err := expectWord(c, "ready"); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// AwaitTaken waits until the successor could serve, and confirms. On an error
// the caller continues serving; otherwise it must close what it sent.
func AwaitTaken(c *net.UnixConn) error {
	_ = c.SetDeadline(time.Now().Add(PauseTimeout))
	if err := expectWord(c, "taken"); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	if _, err := c.Write([]byte("yours\n")); err != nil {
		return fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return nil
}

// Dial connects to the daemon at path and reads its hello.
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
	if err := checkPeer(c); err != nil {
		return h, err
	}
	_ = c.SetDeadline(time.Now().Add(Timeout))
	if err := readJSON(c, &h); err != nil {
		return h, err
	}
	if h.Magic != magic {
		return h, fmt.Errorf("it speaks %q, not %q: stop it first, then start this one", h.Magic, magic)
	}
	return h, nil
}

// RequestTakeover requests a takeover.
func RequestTakeover(c *net.UnixConn) error { return sendWord(c, "give", Timeout) }

// SendReady tells the old process that the new one has caught up.
func SendReady(c *net.UnixConn) error { return sendWord(c, "ready", PauseTimeout) }

// ReceiveFiles receives descriptors, which the caller then owns.
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
		fds, err := receiveDescriptors(c)
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
			return files, fmt.Errorf("receiving descriptors: %w", err)
		case len(files) > len(names):
			return files, errors.New("receiving descriptors: more than announced")
		}
	}
	return files, nil
}

// SendTaken tells the old process that it may exit, and returns nil when it has
// agreed. Before that nothing may be read from the descriptors: if it fails,
// the old process continues with them.
func SendTaken(c *net.UnixConn) error {
	err := sendWord(c, "taken", PauseTimeout)
	if err == nil {
		err = expectWord(c, "yours")
	}
	if err != nil {
		return fmt.Errorf("confirming the takeover: %w", err)
	}
	return nil
}

// receiveDescriptors receives one message of descriptors.
func receiveDescriptors(c *net.UnixConn) (fds []int, err error) {
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
		return fds, errors.New("the kernel truncated them: raise the limit of open files")
	case n == 0 || len(fds) == 0:
		return fds, io.ErrUnexpectedEOF
	}
	return fds, nil
}

// sendWord writes one line.
func sendWord(c *net.UnixConn, word string, timeout time.Duration) error {
	_ = c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write([]byte(word + "\n")); err != nil {
		return fmt.Errorf("sending %q: %w", word, err)
	}
	return nil
}

// expectWord reads one line.
func expectWord(c *net.UnixConn, word string) error {
	b := make([]byte, len(word)+1)
	if _, err := io.ReadFull(c, b); err != nil {
		return err
	}
	if string(b) != word+"\n" {
		return fmt.Errorf("got %q, want %q", b, word)
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
