package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

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
	args := []string{"-c", script, program(m.t), "--alloc-socket", h.alloc, "--socket", h.api, "--state-dir", h.dir + "/state", "--root", h.root, "--listen", "off"}
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
