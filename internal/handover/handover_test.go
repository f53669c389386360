package handover

import (
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hermetic"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// old plays the running daemon: it gives files and reports how that went.
func old(t *testing.T, files []File) (path string, result <-chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "h")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done := make(chan error, 1)
	go func() {
		c, err := l.AcceptUnix()
		if err == nil {
			defer c.Close()
			if err = SendHello(c, Hello{Version: "9", Keeper: true}); err == nil {
				err = playOld(c, files)
			}
		}
		done <- err
	}()
	return path, done
}

// playOld plays the old process, which has nothing to stream.
func playOld(c *net.UnixConn, files []File) error {
	if err := AwaitReady(c); err != nil {
		return err
	}
	if err := SendFiles(c, files, PauseTimeout); err != nil {
		return err
	}
	return AwaitTaken(c)
}

// playNew plays the new one, up to the point where it has everything.
func playNew(c *net.UnixConn) ([]File, error) {
	if err := errors.Join(RequestTakeover(c), SendReady(c)); err != nil {
		return nil, err
	}
	return ReceiveFiles(c, PauseTimeout)
}

func memfd(t *testing.T, text string) int {
	t.Helper()
	fd, err := unix.MemfdCreate("test", unix.MFD_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := unix.Pwrite(fd, []byte(text), 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	return fd
}

// read reads a memfd and closes it.
func read(t *testing.T, fd int) string {
	t.Helper()
	b := make([]byte, 100)
	n, err := unix.Pread(fd, b, 0)
	unix.Close(fd)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

// More descriptors than fit in one message arrive, in order and by name.
func TestHandover(t *testing.T) {
	files := []File{{"state", memfd(t, "the state")}}
	for range 3*maxPerMessage + 7 {
		files = append(files, File{"client", memfd(t, "x")})
	}
	files = append(files, File{"last", memfd(t, "the last")})
	path, result := old(t, files)
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	c, hello, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if hello.PID != os.Getpid() || hello.Version != "9" || !hello.Keeper {
		t.Errorf("hello %+v", hello)
	}
	got, err := playNew(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := SendTaken(c); err != nil {
		t.Fatal(err)
	}
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if s := Extract(&got, "state"); len(s) != 1 || read(t, s[0]) != "the state" {
		t.Errorf("state %v", s)
	}
	if s := Extract(&got, "last"); len(s) != 1 || read(t, s[0]) != "the last" {
		t.Errorf("last %v", s)
	}
	if len(got) != 3*maxPerMessage+7 {
		t.Errorf("%d clients", len(got))
	}
	for _, f := range got {
		if flags, err := unix.FcntlInt(uintptr(f.FD), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Fatalf("descriptor %d: flags %x, %v", f.FD, flags, err)
		}
	}
	Close(got)
}

// A successor that exits at any point leaves everything to the old one.
func TestSuccessorGivesUp(t *testing.T) {
	for name, until := range map[string]func(c *net.UnixConn) error{
		"after the hello":       func(*net.UnixConn) error { return nil },
		"after asking":          func(c *net.UnixConn) error { return RequestTakeover(c) },
		"having caught up":      func(c *net.UnixConn) error { return errors.Join(RequestTakeover(c), SendReady(c)) },
		"after the descriptors": func(c *net.UnixConn) error { f, err := playNew(c); Close(f); return err },
		"with another word": func(c *net.UnixConn) error {
			f, err := playNew(c)
			Close(f)
			_, werr := io.WriteString(c, "maybe\n")
			return errors.Join(err, werr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fd := memfd(t, "mine")
			path, result := old(t, []File{{"state", fd}})
			c, _, err := Dial(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := until(c); err != nil {
				t.Fatal(err)
			}
			c.Close()
			if err := <-result; err == nil {
				t.Error("the old one believes that it was replaced")
			}
			if _, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil {
				t.Errorf("its descriptor is gone: %v", err)
			}
		})
	}
}

// Conversely, an old process that exits in the middle is an error.
func TestPredecessorDies(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	l, err := Listen(path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.AcceptUnix()
		if err != nil {
			return
		}
		defer c.Close()
		_ = writeJSON(c, Hello{Magic: magic})
		_ = expectWord(c, "give")
		_ = expectWord(c, "ready")
		_ = writeJSON(c, []string{"a", "b"})
	}()
	c, _, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if files, err := playNew(c); err == nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestDialAnythingElse(t *testing.T) {
	path := filepath.Join(t.TempDir(), "h")
	if _, _, err := Dial(path); err == nil {
		t.Error("no daemon there, and no error")
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		_, _ = c.Write(append([]byte{2, 0, 0, 0}, "{}"...))
	}()
	if _, _, err := Dial(path); err == nil {
		t.Error("a hello of another user was accepted")
	}
}

// What is stored with systemd is sent with its name.
func TestStore(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("TTMOND_FDSTORE", "")
	if HasStore() {
		t.Error("a store that was not announced")
	}
	t.Setenv("FDSTORE", "100")
	if !HasStore() {
		t.Error("systemd 254 says that there is a store")
	}
	type message struct {
		text string
		fds  int
	}
	got := make(chan message, 4)
	go func() {
		b, oob := make([]byte, 4096), make([]byte, 4096)
		for {
			n, oobn, _, _, err := c.ReadMsgUnix(b, oob)
			if err != nil {
				close(got)
				return
			}
			m := message{text: string(b[:n])}
			msgs, _ := unix.ParseSocketControlMessage(oob[:oobn])
			for i := range msgs {
				fds, _ := unix.ParseUnixRights(&msgs[i])
				m.fds += len(fds)
				for _, fd := range fds {
					unix.Close(fd)
				}
			}
			got <- m
		}
	}()
	if err := errors.Join(Store(File{"client", memfd(t, "x")}), Notify("READY=1")); err != nil {
		t.Fatal(err)
	}
	for _, want := range []message{{"FDSTORE=1\nFDNAME=client", 1}, {"READY=1", 0}} {
		if m := <-got; m != want {
			t.Errorf("%+v, want %+v", m, want)
		}
	}
	c.Close()
	for range got {
	}
	t.Setenv("NOTIFY_SOCKET", "")
	if err := Notify("READY=1"); err != nil {
		t.Errorf("without a service manager: %v", err)
	}
}

// A service manager that is busy makes no client wait.
func TestBusyManager(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // it never reads
	t.Setenv("NOTIFY_SOCKET", path)
	for range 100_000 {
		if err = Notify("WATCHDOG=1"); err != nil {
			break
		}
	}
	if !errors.Is(err, unix.EAGAIN) {
		t.Errorf("error %v, want EAGAIN", err)
	}
	if err := Store(File{"client", memfd(t, "x")}); !errors.Is(err, unix.EAGAIN) {
		t.Errorf("storing: error %v, want EAGAIN", err)
	}
}

// A process that is started finds its connection.
func TestPair(t *testing.T) {
	ours, theirs, err := Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()
	dup, err := unix.Dup(int(theirs.Fd()))
	theirs.Close()
	if err != nil {
		t.Fatal(err)
	}
	c, err := Conn(dup)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	done := make(chan error, 1)
	go func() { done <- SendHello(ours, Hello{Version: "1"}) }()
	if h, err := ReadHello(c); err != nil || h.Version != "1" {
		t.Errorf("%+v, %v", h, err)
	}
	if err := errors.Join(RequestTakeover(c), <-done); err != nil {
		t.Error(err)
	}
	if _, err := Conn(memfd(t, "x")); err == nil {
		t.Error("a file passed for a connection")
	}
}
