package handover

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

func TestMain(m *testing.M) {
	if stage := os.Getenv(stageVariable); stage != "" {
		os.Exit(playExec(stage))
	}
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// old plays the running daemon: it gives files and reports how that went.
func old(t *testing.T, files []File) (path string, result <-chan error) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "h")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	done := make(chan error, 1)
	go func() {
		c, err := l.AcceptUnix()
		if err == nil {
			defer c.Close()
			err = Send(c, files)
		}
		done <- err
	}()
	return path, done
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
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	got, err := Receive(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := Take(c); err != nil {
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
		"at once":               func(*net.UnixConn) error { return nil },
		"after the descriptors": func(c *net.UnixConn) error { f, err := Receive(c); Close(f); return err },
		"with another word": func(c *net.UnixConn) error {
			f, err := Receive(c)
			Close(f)
			_, werr := io.WriteString(c, "maybe\n")
			return errors.Join(err, werr)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fd := memfd(t, "mine")
			path, result := old(t, []File{{"state", fd}})
			c, err := Dial(path)
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
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
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
		_ = writeJSON(c, []string{"a", "b"})
	}()
	c, err := Dial(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if files, err := Receive(c); err == nil || len(files) != 0 {
		t.Errorf("%v, %v", files, err)
	}
}

func TestDialNothing(t *testing.T) {
	if _, err := Dial(filepath.Join(t.TempDir(), "h")); !errors.Is(err, unix.ENOENT) {
		t.Errorf("no process there, and %v", err)
	}
}

// stageVariable has the test's program play a daemon that is executed again.
const stageVariable = "TTMON_HANDOVER_STAGE"

// playExec opens a file and executes the program in its own place; there it reads what
// it has inherited, and says what else is open.
func playExec(stage string) int {
	if stage == "before" {
		os.Setenv(stageVariable, "after")
		fd, err := MemoryFile("test", []byte("what was known"))
		if err == nil {
			err = Exec("/proc/self/exe", os.Args, []File{{"state", fd}}, unix.SIGHUP)
		}
		fmt.Println(err)
		return 1
	}
	files := Inherited()
	for _, f := range files {
		b, err := ReadMemory(f.FD)
		flags, ferr := unix.FcntlInt(uintptr(f.FD), unix.F_GETFD, 0)
		fmt.Printf("%s: %s, close-on-exec %v, %v\n", f.Name, b, flags&unix.FD_CLOEXEC != 0, errors.Join(err, ferr))
	}
	open, _ := os.ReadDir("/proc/self/fd")
	for _, e := range open {
		fd, _ := strconv.Atoi(e.Name())
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && fd > 2 && flags&unix.FD_CLOEXEC == 0 {
			fmt.Println("open, too:", e.Name())
		}
	}
	fmt.Printf("pid %d, SIGHUP ignored %v\n", os.Getpid(), signal.Ignored(unix.SIGHUP))
	return 0
}

// A program that is executed in our place has what we left open for it, and nothing
// else.
func TestExec(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), stageVariable+"=before", "LISTEN_FDS=1", "LISTEN_PID=1")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v: %s", err, &out)
	}
	want := fmt.Sprintf("state: what was known, close-on-exec true, <nil>\npid %d, SIGHUP ignored true\n", cmd.Process.Pid)
	if out.String() != want {
		t.Errorf("it says\n%swant\n%s", &out, want)
	}
}

// A child has copies of what is lent to it.
func TestLend(t *testing.T) {
	cmd := exec.Command("/proc/self/exe")
	fd := memfd(t, "what is known")
	returned, err := Lend(cmd, []File{{"state", fd}})
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, stageVariable+"=after")
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Start()
	returned()
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil || !strings.HasPrefix(out.String(), "state: what is known, close-on-exec true, <nil>\npid ") {
		t.Errorf("%v: it says\n%s", err, &out)
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
	go func() { done <- Send(ours, nil) }()
	if files, err := Receive(c); err != nil || len(files) > 0 {
		t.Errorf("%v, %v", files, err)
	}
	if err := errors.Join(Take(c), <-done); err != nil {
		t.Error(err)
	}
	if _, err := Conn(memfd(t, "x")); err == nil {
		t.Error("a file passed for a connection")
	}
}
