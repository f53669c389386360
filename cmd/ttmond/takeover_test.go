package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// takeOver starts a new ttmond in the place of the running one.
func (h *host) takeOver() (old *instance) {
	h.t.Helper()
	old = h.current
	h.start("--takeover")
	h.await("the old ttmond to end", old.ended)
	if old.err != nil {
		h.t.Fatalf("the old ttmond ended badly: %v\n%s", old.err, old.log)
	}
	return old
}

// Clients report without a pause while ttmond is replaced again and again, in
// pieces that end in the middle of messages. Not a byte is lost, and nobody
// notices.
func TestTakeoverUnderLoad(t *testing.T) {
	h := newHost(t)
	h.start()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	sent := make([]uint64, 4)
	conns := make([]net.Conn, len(sent))
	for w := range sent {
		conns[w] = h.dial()
		_ = conns[w].SetDeadline(time.Time{})
		defer conns[w].Close()
		size := []int{72, 112, 128, 144}[w]
		writers.Go(func() {
			var rest []byte
			for k := uint64(0); ; k++ {
				select {
				case <-stop:
					if _, err := conns[w].Write(rest); err != nil {
						t.Errorf("writer %d: %v", w, err)
					}
					return
				default:
				}
				rest = append(rest, frame(size, 1, int32(w), 10, 0, os.Getpid(), 1<<32+k%5000*64)...)
				if k >= 5000 {
					rest = append(rest, frame(size, 2, int32(w), 0, 0, os.Getpid(), 1<<32+k%5000*64)...)
					rest = append(rest, frame(size, 1, int32(w), 10, 0, os.Getpid(), 1<<32+k%5000*64)...)
				}
				sent[w] = min(k+1, 5000)
				n := len(rest) * 2 / 3
				if _, err := conns[w].Write(rest[:n]); err != nil {
					t.Errorf("writer %d: %v", w, err)
					return
				}
				rest = append(rest[:0], rest[n:]...)
			}
		})
	}
	for range 5 {
		time.Sleep(100 * time.Millisecond) // let some load pass through each
		h.takeOver()
	}
	close(stop)
	writers.Wait()
	for w := range sent {
		h.awaitSums(int32(w), sums{dram: sent[w] * 10})
	}
}

// What a successor knows is what the old one knew: processes, their ends,
// replies under way, half a message.
func TestTakeoverKeepsEverything(t *testing.T) {
	h := newHost(t)
	h.start()
	c, py := h.cpp(144), h.python("client112")
	fds := c.do("fds")
	c.do("alloc 0 4194304 1000 0")
	c.do("load 0 77 50 0")
	py.do("alloc 3 5 3")
	half := h.dial()
	defer half.Close()
	msg := frame(144, 1, 1, 99, 0, os.Getpid(), 64)
	if _, err := half.Write(msg[:30]); err != nil {
		t.Fatal(err)
	}
	gone := h.dial() // a process that lives, without a connection
	if _, err := gone.Write(frame(144, 1, 2, 7, 0, os.Getpid(), 64)); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(2, sums{dram: 7})
	gone.Close()
	h.awaitSums(0, sums{dram: 1000, kernel: 50})
	h.awaitSums(3, sums{trace: 5})

	h.takeOver()
	if _, err := half.Write(msg[30:]); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(1, sums{dram: 99})
	h.awaitSums(2, sums{dram: 7})
	h.awaitSums(3, sums{trace: 5})
	if got := c.do("query 0"); !strings.HasPrefix(got, "4 0 1000 0 0 0 0 50 ") {
		t.Errorf("the client's own query: %q", got)
	}
	if got := py.do("free 1"); got != "ok" {
		t.Errorf("the Python client: %q", got)
	}
	h.awaitSums(3, sums{})
	if got := c.do("fds"); got != fds {
		t.Errorf("the client has %s descriptors open, at first %s: it reconnected", got, fds)
	}
	c.kill()
	h.awaitSums(0, sums{})
}

// A successor that fails leaves the old one serving.
func TestTakeoverFails(t *testing.T) {
	h := newHost(t)
	old := h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	// It gets all descriptors, then cannot make its API socket.
	busy := filepath.Join(h.dir, "not-a-socket")
	if err := os.WriteFile(busy, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	next := h.launch("--takeover", "--socket", busy)
	h.await("the successor to end", next.ended)
	if next.err == nil || !strings.Contains(next.log.String(), "not a socket") {
		t.Errorf("the successor says %q, %v", next.log, next.err)
	}
	c.do("alloc 0 4194368 1 0")
	h.awaitSums(0, sums{dram: 1001})
	if old.ended() {
		t.Fatalf("the old one ended: %v", old.err)
	}
	// A successor that hangs up in the middle.
	conn, err := net.Dial("unix", h.alloc+".handover")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Write([]byte("give\n")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(20 * time.Millisecond)
	conn.Close()
	c.do("free 0 4194368")
	h.awaitSums(0, sums{dram: 1000})
	h.takeOver() // and now for good
	h.awaitSums(0, sums{dram: 1000})
}

func TestTakeoverOfNobody(t *testing.T) {
	h := newHost(t)
	i := h.start("--takeover")
	if !strings.Contains(i.log.String(), "starting afresh") {
		t.Errorf("log:\n%s", i.log)
	}
}

// Another user cannot take the place of a daemon.
func TestTakeoverByAStranger(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to be somebody else")
	}
	h := newHost(t)
	h.start()
	if err := os.Chmod(h.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(program(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	h.credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	next := h.launch("--takeover")
	h.await("the stranger to end", next.ended)
	if next.err == nil {
		t.Errorf("the stranger says %q", next.log)
	}
	h.awaitSums(0, sums{})
}

// Stopping ttmond does not kill an idle C++ client, and what it reports
// meanwhile is not lost.
func TestStopAndStart(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	fds := c.do("fds")
	c.do("alloc 0 4194304 1000 0")
	waiting := h.dial() // connected, but has said nothing yet
	defer waiting.Close()
	h.awaitSums(0, sums{dram: 1000})
	h.stop()
	if _, err := os.Lstat(h.alloc); err == nil {
		t.Error("the socket is still there")
	}
	for i := range 5 {
		if got := c.do("alloc 0 %d 10 0", 8388608+64*i); got != "ok" {
			t.Fatalf("report to a stopped ttmond: %q", got)
		}
	}
	if _, err := waiting.Write(frame(72, 1, 1, 5, 0, os.Getpid(), 64)); err != nil {
		t.Fatal(err)
	}
	h.start() // takes over from the keeper by itself
	h.awaitSums(0, sums{dram: 1050})
	h.awaitSums(1, sums{dram: 5})
	if got := c.do("fds"); got != fds {
		t.Errorf("the client has %s descriptors open, at first %s: it reconnected", got, fds)
	}
	// Once more, and now the client ends while nobody but the keeper looks.
	h.stop()
	c.kill()
	h.start()
	h.awaitSums(0, sums{})
	h.awaitSums(1, sums{dram: 5})
}

// A keeper with nobody left to keep goes too.
func TestKeeperEnds(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	h.stop()
	b, err := os.ReadFile(h.alloc + ".lock")
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(string(b), &pid); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, 0); err != nil {
		t.Fatalf("there is no keeper: %v", err)
	}
	c.kill()
	h.await("the keeper to end", func() bool { return syscall.Kill(pid, 0) != nil })
	h.start()
	h.awaitSums(0, sums{})
}

// A stop with nobody connected leaves nothing but the lock files.
func TestCleanStop(t *testing.T) {
	h := newHost(t)
	h.start()
	h.stop()
	left, err := filepath.Glob(h.dir + "/*.sock*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range left {
		if !strings.HasSuffix(name, ".lock") {
			t.Errorf("%s was left", name)
		}
	}
}

// After SIGKILL the connections are gone: a client that reconnects is heard
// from then on, and an old one's SIGPIPE cannot be helped.
func TestKilledDaemon(t *testing.T) {
	h := newHost(t)
	i := h.start()
	c := h.python("client72") // Python ignores SIGPIPE
	c.do("alloc 0 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	i.kill()
	h.start() // the stale socket is replaced
	h.awaitSums(0, sums{})
	again := h.python("client72")
	again.do("alloc 0 5 0")
	h.awaitSums(0, sums{dram: 5})
}

// manager plays systemd: it owns the sockets, stores what it is sent, and
// passes everything to the next start.
type manager struct {
	t      *testing.T
	h      *host
	notify *net.UnixConn
	mu     sync.Mutex
	stored []storedFD
	ready  int
}

type storedFD struct {
	name string
	fd   int
}

// newManager plays systemd 254, or an older one, which forgets at a stop.
func newManager(t *testing.T, h *host, older bool) *manager {
	t.Helper()
	addr := &net.UnixAddr{Name: filepath.Join(h.dir, "notify"), Net: "unixgram"}
	c, err := net.ListenUnixgram("unixgram", addr)
	if err != nil {
		t.Fatal(err)
	}
	m := &manager{t: t, h: h, notify: c}
	h.extraEnviron = append(h.extraEnviron, "NOTIFY_SOCKET="+addr.Name, "TTMOND_FDSTORE=1")
	if !older {
		h.extraEnviron = append(h.extraEnviron, "FDSTORE=16384")
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		m.listen()
	}()
	t.Cleanup(func() {
		c.Close()
		<-done
		for _, s := range m.stored {
			unix.Close(s.fd)
		}
	})
	return m
}

func (m *manager) listen() {
	b, oob := make([]byte, 4096), make([]byte, 4096)
	for {
		n, oobn, _, _, err := m.notify.ReadMsgUnix(b, oob)
		if err != nil {
			return
		}
		var fds []int
		msgs, _ := unix.ParseSocketControlMessage(oob[:oobn])
		for i := range msgs {
			got, _ := unix.ParseUnixRights(&msgs[i])
			fds = append(fds, got...)
		}
		m.handle(string(b[:n]), fds)
	}
}

func (m *manager) handle(state string, fds []int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	fields := map[string]string{}
	for line := range strings.Lines(state) {
		k, v, _ := strings.Cut(strings.TrimSpace(line), "=")
		fields[k] = v
	}
	switch {
	case fields["FDSTORE"] == "1":
		for _, fd := range fds {
			m.stored = append(m.stored, storedFD{fields["FDNAME"], fd})
		}
		return
	case fields["FDSTOREREMOVE"] == "1":
		var rest []storedFD
		for _, s := range m.stored {
			if s.name == fields["FDNAME"] {
				unix.Close(s.fd)
			} else {
				rest = append(rest, s)
			}
		}
		m.stored = rest
	case fields["READY"] == "1":
		m.ready++
	}
	for _, fd := range fds { // a barrier
		unix.Close(fd)
	}
}

// start starts ttmond with the listening sockets and all that is stored.
func (m *manager) start(listeners map[string]*os.File) *instance {
	m.t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	var names []string
	var files []*os.File
	for name, f := range listeners {
		names, files = append(names, name), append(files, f)
	}
	for _, s := range m.stored {
		fd, err := unix.Dup(s.fd)
		if err != nil {
			m.t.Fatal(err)
		}
		f := os.NewFile(uintptr(fd), s.name)
		defer f.Close()
		names, files = append(names, s.name), append(files, f)
	}
	h := m.h
	script := `LISTEN_PID=$$ exec "$0" "$@"`
	args := []string{"-c", script, program(m.t), "--alloc-socket", h.alloc, "--socket", h.api, "--state-dir", h.dir + "/state", "--root", h.root}
	i := &instance{cmd: exec.Command("sh", args...), log: new(syncBuffer), done: make(chan struct{})}
	i.cmd.Stderr, i.cmd.ExtraFiles = i.log, files
	i.cmd.Env = append(os.Environ(), h.extraEnviron...)
	i.cmd.Env = append(i.cmd.Env, fmt.Sprintf("LISTEN_FDS=%d", len(files)), "LISTEN_FDNAMES="+strings.Join(names, ":"), "HOME="+h.dir)
	if err := i.cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	go func() {
		i.err = i.cmd.Wait()
		close(i.done)
	}()
	h.current = i
	return i
}

// forget drops everything stored, as older versions do at a stop.
func (m *manager) forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.stored {
		unix.Close(s.fd)
	}
	m.stored = nil
}

func (m *manager) awaitReady(n int) {
	m.t.Helper()
	await(m.t, "READY=1", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.ready == n
	})
}

// Under systemd, connections survive a stop and a restart, and they survive
// even a crash: then what was held is not known, but nobody dies.
func TestFDStore(t *testing.T) {
	for _, older := range []bool{false, true} {
		t.Run(fmt.Sprintf("older=%v", older), func(t *testing.T) { testFDStore(t, older) })
	}
}

func testFDStore(t *testing.T, older bool) {
	h := newHost(t)
	m := newManager(t, h, older)
	listeners := map[string]*os.File{}
	for name, path := range map[string]string{"alloc": h.alloc, "api": h.api} {
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		f, err := l.File()
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		listeners[name] = f
	}
	m.start(listeners)
	m.awaitReady(1)
	c := h.cpp(144)
	fds := c.do("fds")
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	h.stop()
	if older {
		m.forget()
	}
	if _, err := os.Lstat(h.alloc); err != nil {
		t.Errorf("the socket unit's socket was removed: %v", err)
	}
	if got := c.do("alloc 0 4194368 1 0"); got != "ok" { // while nobody runs
		t.Fatalf("report to a stopped ttmond: %q", got)
	}
	late := h.dial() // waits at the socket unit's socket
	defer late.Close()
	if _, err := late.Write(frame(72, 1, 1, 5, 0, os.Getpid(), 64)); err != nil {
		t.Fatal(err)
	}
	m.start(listeners)
	m.awaitReady(2)
	h.awaitSums(0, sums{dram: 1001})
	h.awaitSums(1, sums{dram: 5})
	c.do("free 0 4194304")
	h.awaitSums(0, sums{dram: 1})

	h.current.kill() // a crash
	if got := c.do("alloc 0 4194432 20 0"); got != "ok" {
		t.Fatalf("report to a ttmond that crashed: %q", got)
	}
	m.start(listeners)
	m.awaitReady(3)
	h.awaitSums(0, sums{dram: 20}) // what it held before is not known any more
	if got := c.do("fds"); got != fds {
		t.Errorf("the client has %s descriptors open, at first %s: it reconnected", got, fds)
	}
	c.kill()
	h.awaitSums(0, sums{})
}
