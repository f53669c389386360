package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// The tests of this package run the real program and real clients.

var (
	buildOnce  = sync.OnceValues(func() (dir string, err error) { return programs.Build(raceDetector, "ttmond") })
	buildOther = sync.OnceValues(func() (dir string, err error) { return programs.Build(false, "ttmon", "ttmon-sim") })
)

func TestMain(m *testing.M) {
	all := 45 * time.Minute // attacks, and with the race detector
	if length, err := time.ParseDuration(os.Getenv(soakVar)); err == nil {
		all += length
	}
	hermetic.Enter(hermetic.Options{Limit: all, Parallel: 6})
	os.Exit(m.Run())
}

func program(t testing.TB) string {
	t.Helper()
	programs.Depend(t)
	dir, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "ttmond")
}

// released is one of the other programs, as it is released.
func released(t testing.TB, name string) string {
	t.Helper()
	programs.Depend(t)
	dir, err := buildOther()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// host is a place where a ttmond runs.
type host struct {
	t                       testing.TB
	dir, alloc, api, root   string
	current                 *instance
	extraArgs, extraEnviron []string
	credential              *syscall.Credential // whom ttmond runs as; nil: us
	wrapper                 []string            // a command that runs ttmond; nil: none
	program                 string              // an older ttmond; "": ours
}

// instance is one ttmond process.
type instance struct {
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{} // closed when it has ended
	err  error         // how; read after done
}

// syncBuffer is a bytes.Buffer for two goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newHost returns a place without a ttmond. Its directory is short: the path
// of a socket may have no more than 107 bytes.
func newHost(t testing.TB, args ...string) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "ttmond")
	if err != nil {
		t.Fatal(err)
	}
	root := filepath.Join(dir, "root")
	if err := os.MkdirAll(root, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &host{t: t, dir: dir, alloc: filepath.Join(dir, "alloc.sock"), api: filepath.Join(dir, "api.sock"), root: root, extraArgs: args}
	t.Cleanup(func() {
		if h.current != nil {
			h.current.kill()
		}
		h.endKeeper()
		if t.Failed() && h.current != nil {
			t.Logf("log of ttmond:\n%s", h.current.log)
		}
		os.RemoveAll(dir)
	})
	return h
}

// start starts ttmond and waits until it is ready.
func (h *host) start(args ...string) *instance {
	h.t.Helper()
	i := h.launch(args...)
	h.await("ttmond to be ready", func() bool {
		if i.ended() {
			h.t.Fatalf("ttmond ended: %v\n%s", i.err, i.log)
		}
		return i.ready()
	})
	h.current = i
	return i
}

// ready reports whether it has said that it serves.
func (i *instance) ready() bool {
	s := i.log.String()
	return strings.Contains(s, "ttmond is ready") || strings.Contains(s, "resumed from previous ttmond")
}

func (h *host) launch(args ...string) *instance {
	h.t.Helper()
	i := &instance{cmd: h.command(args...), log: new(syncBuffer), done: make(chan struct{})}
	i.cmd.Stderr = i.log
	if h.credential != nil {
		i.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: h.credential}
	}
	h.run(i)
	return i
}

// command is a ttmond with arguments.
func (h *host) command(args ...string) *exec.Cmd {
	h.t.Helper()
	bin := h.program
	if bin == "" {
		bin = program(h.t)
	}
	line := append(append(slices.Clone(h.wrapper), bin), h.args(args...)...)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Env = append(os.Environ(), append(h.extraEnviron, "HOME="+h.dir)...) // no configuration of the user's
	return cmd
}

// startOnTerminal starts ttmond in the foreground of a terminal, whose other
// end it returns.
func (h *host) startOnTerminal() (*os.File, *instance) {
	h.t.Helper()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		h.t.Skipf("no terminals here: %v", err)
	}
	fd := int(terminal.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		h.t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		h.t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|syscall.O_NOCTTY, 0)
	if err != nil {
		h.t.Skipf("no terminals here: %v", err)
	}
	defer tty.Close()
	i := &instance{cmd: exec.Command(program(h.t), h.args()...), log: new(syncBuffer), done: make(chan struct{})}
	i.cmd.Stdin, i.cmd.Stdout, i.cmd.Stderr = tty, tty, tty
	i.cmd.Env = append(os.Environ(), "HOME="+h.dir)
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	h.run(i)
	h.current = i
	h.await("the socket", func() bool {
		c, err := net.Dial("unix", h.alloc)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	return terminal, i
}

// args are those of every ttmond of a host.
func (h *host) args(more ...string) []string {
	all := append([]string{"--alloc-socket", h.alloc, "--socket", h.api, "--state-dir", filepath.Join(h.dir, "state"), "--root", h.root}, h.extraArgs...)
	return append(all, more...)
}

func (h *host) run(i *instance) {
	h.t.Helper()
	if err := i.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		i.err = i.cmd.Wait()
		close(i.done)
	}()
}

func (i *instance) kill() {
	_ = i.cmd.Process.Kill()
	<-i.done
}

// stop ends ttmond as a user would, and expects it to end well.
func (h *host) stop() {
	h.t.Helper()
	i := h.current
	if err := i.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		h.t.Fatal(err)
	}
	h.await("ttmond to end", func() bool { return i.ended() })
	if i.err != nil {
		h.t.Fatalf("ttmond ended badly: %v\n%s", i.err, i.log)
	}
}

func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// endKeeper ends the process that a stopped ttmond may have left: it is the
// one that holds the lock.
func (h *host) endKeeper() {
	b, err := os.ReadFile(h.api + ".lock")
	if err != nil {
		return
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		return
	}
	if exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); exe == program(h.t) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// limit is how long tests wait for what must come. Only those that fail do.
const limit = 5 * time.Minute

// await waits for something that must come.
func (h *host) await(what string, ok func() bool) {
	h.t.Helper()
	await(h.t, what, ok)
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// dial connects to the allocation socket.
func (h *host) dial() net.Conn {
	h.t.Helper()
	c, err := net.Dial("unix", h.alloc)
	for errors.Is(err, syscall.EAGAIN) { // Go does not wait for a place in the queue, as clients do
		time.Sleep(time.Millisecond)
		c, err = net.Dial("unix", h.alloc)
	}
	if err != nil {
		h.t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(limit))
	return c
}

// sums are the six counters of a QUERY reply.
type sums struct{ dram, l1, l1Small, trace, cb, kernel uint64 }

// frame packs an AllocMessage.
func frame(size int, typ byte, dev int32, bytes uint64, bufferType byte, pid int, id uint64) []byte {
	f := make([]byte, size)
	f[0], f[16] = typ, bufferType
	binary.LittleEndian.PutUint32(f[4:], uint32(dev))
	binary.LittleEndian.PutUint64(f[8:], bytes)
	binary.LittleEndian.PutUint32(f[20:], uint32(pid))
	binary.LittleEndian.PutUint64(f[24:], id)
	return f
}

// query asks as a viewer does, on a connection of its own.
func (h *host) query(dev int32) sums {
	h.t.Helper()
	c := h.dial()
	defer c.Close()
	if _, err := c.Write(frame(144, 3, dev, 0, 0, 0, 0)); err != nil {
		h.t.Fatal(err)
	}
	f := make([]byte, 144)
	if _, err := io.ReadFull(c, f); err != nil {
		h.t.Fatalf("reading the reply: %v", err)
	}
	if f[0] != 4 || int32(binary.LittleEndian.Uint32(f[4:])) != dev {
		h.t.Fatalf("reply of type %d for device %d", f[0], binary.LittleEndian.Uint32(f[4:]))
	}
	v := func(i int) uint64 { return binary.LittleEndian.Uint64(f[40+8*i:]) }
	return sums{v(0), v(1), v(2), v(3), v(4), v(5)}
}

// awaitSums waits until a device holds what it should. Reports have no reply,
// so that is the only way to know that they have been read.
func (h *host) awaitSums(dev int32, want sums) {
	h.t.Helper()
	var got sums
	end := time.Now().Add(limit)
	for got = h.query(dev); got != want; got = h.query(dev) {
		if time.Now().After(end) {
			h.t.Fatalf("device %d holds %+v, want %+v", dev, got, want)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// client is an old client that takes commands.
type client struct {
	t   testing.TB
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startClient(t testing.TB, name string, args ...string) *client {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	c := &client{t: t, cmd: exec.CommandContext(ctx, name, args...)}
	var err error
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out = bufio.NewReader(out)
	c.cmd.Stderr = os.Stderr
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cancel()
		_ = c.cmd.Wait()
	})
	return c
}

// do sends a command and returns the answer; an empty one if the client died.
func (c *client) do(format string, args ...any) string {
	c.t.Helper()
	fmt.Fprintf(c.in, format+"\n", args...)
	line, _ := c.out.ReadString('\n')
	return strings.TrimSpace(line)
}

func (c *client) pid() int { return c.cmd.Process.Pid }

// kill ends a client as the kernel's memory killer would.
func (c *client) kill() {
	_ = c.cmd.Process.Kill()
	_ = c.cmd.Wait()
}

const oldClients = "../../testdata/oldclients"

// cppClients are the C++ clients that were compiled, by the size of their
// messages.
var cppClients = struct {
	sync.Mutex
	bySize map[int]string
}{bySize: map[int]string{}}

// cpp compiles the C++ client for messages of a size.
func cpp(t testing.TB, size int) string {
	t.Helper()
	gxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("no g++ on this machine: the C++ client cannot be built")
	}
	cppClients.Lock()
	defer cppClients.Unlock()
	if bin := cppClients.bySize[size]; bin != "" {
		return bin
	}
	bin := filepath.Join(filepath.Dir(program(t)), fmt.Sprintf("client%d", size))
	out, err := exec.Command(gxx, "-O1", "-Wall", "-Werror", fmt.Sprintf("-DMESSAGE_SIZE=%d", size), "-o", bin, oldClients+"/alloc_client.cpp").CombinedOutput()
	if err != nil {
		t.Fatalf("compiling the C++ client: %v\n%s", err, out)
	}
	cppClients.bySize[size] = bin
	return bin
}

// python returns the interpreter itself: a wrapper would be another process.
func python(t testing.TB) string {
	t.Helper()
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	if err != nil {
		t.Skip("no python3 on this machine: the Python clients cannot run")
	}
	return strings.TrimSpace(string(out))
}

// runPython runs one of the Python clients to its end.
func (h *host) runPython(args ...string) string {
	h.t.Helper()
	out, err := exec.Command(python(h.t), append([]string{oldClients + "/clients.py", h.alloc}, args...)...).CombinedOutput()
	if err != nil {
		h.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (h *host) cpp(size int) *client { h.t.Helper(); return startClient(h.t, cpp(h.t, size), h.alloc) }

func (h *host) python(kind string, args ...string) *client {
	h.t.Helper()
	return startClient(h.t, python(h.t), append([]string{oldClients + "/clients.py", h.alloc, kind}, args...)...)
}
