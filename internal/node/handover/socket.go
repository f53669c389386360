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

// The protocol between two processes: a list of names, the descriptors, "taken" by
// the receiver when it could serve, "yours" by the sender, who is done. If the
// receiver goes or says anything else, the sender continues.

const (
	maxPerMessage = 200 // the kernel allows 253
	maxManifest   = 16 << 20

	// timeout bounds each step: clients wait meanwhile.
	timeout = 3 * time.Second
)

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
		return fmt.Errorf("the process at the other end belongs to another user, uid %d", cred.Uid)
	}
	return nil
}

// Send sends files, which the caller still owns, and returns nil when the other end
// serves in our place.
func Send(c *net.UnixConn, files []File) error {
	if err := checkPeer(c); err != nil {
		return err
	}
	if err := sendFiles(c, files); err != nil {
		return fmt.Errorf("handing over descriptors: %w", err)
	}
	err := expectWord(c, "taken")
	if err == nil {
		err = sendWord(c, "yours")
	}
	if err != nil {
		return fmt.Errorf("the successor did not take over: %w", err)
	}
	return nil
}

func sendFiles(c *net.UnixConn, files []File) error {
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
		if _, _, err := c.WriteMsgUnix([]byte{'f'}, unix.UnixRights(descriptorsOf(files[:n])...), nil); err != nil {
			return err
		}
		files = files[n:]
	}
	return nil
}

// Dial connects to the process that listens at path.
func Dial(path string) (*net.UnixConn, error) {
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("calling the process that keeps connections: %w", err)
	}
	return c, nil
}

// Receive receives files, which the caller then owns.
func Receive(c *net.UnixConn) (files []File, err error) {
	if err := checkPeer(c); err != nil {
		return nil, err
	}
	_ = c.SetDeadline(time.Now().Add(timeout))
	var names []string
	if err := readJSON(c, &names); err != nil {
		return nil, fmt.Errorf("receiving descriptors: %w", err)
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

// Take tells the sender that we could serve, and returns nil when it has agreed.
// Before that nothing may be read from the descriptors: if it fails, the sender
// continues with them.
func Take(c *net.UnixConn) error {
	err := sendWord(c, "taken")
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
func sendWord(c *net.UnixConn, word string) error {
	_ = c.SetDeadline(time.Now().Add(timeout))
	if _, err := c.Write([]byte(word + "\n")); err != nil {
		return fmt.Errorf("sending %q: %w", word, err)
	}
	return nil
}

// expectWord reads one line.
func expectWord(c *net.UnixConn, word string) error {
	_ = c.SetDeadline(time.Now().Add(timeout))
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
