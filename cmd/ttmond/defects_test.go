package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// Each row of the old server's defects, through the real program.

func TestOneAddressOfTwoProcesses(t *testing.T) {
	h := newHost(t)
	h.start()
	a, b := h.cpp(144), h.cpp(144)
	a.do("alloc 0 4096 1000 0")
	b.do("alloc 0 4096 999 1")
	h.awaitSums(0, sums{dram: 1000, l1: 999})
	b.do("free 0 4096")
	h.awaitSums(0, sums{dram: 1000})
	b.do("alloc 0 4096 999 1")
	h.awaitSums(0, sums{dram: 1000, l1: 999})
	a.kill() // the other keeps what it has
	h.awaitSums(0, sums{l1: 999})
}

func TestRepeatsAndUnknowns(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	for _, line := range []string{
		"alloc 0 4096 1000 0", "alloc 0 4096 3000 0", // a missed free
		"free 0 8192",                                                      // unknown
		"alloc 0 64 0 0", "alloc 0 64 999999999999999 0", "alloc 0 64 5 9", // size 0, absurd, no such type
		"alloc -7 64 5 0", "alloc 1000000 64 5 0", // no such device
		"cb_alloc 1 9 1000", "cb_alloc 1 9 1000", "cb_alloc 1 9 1000", "cb_free 1 77 5000",
		"load 2 5 2000 0", "load 2 5 2000 0", "load 2 5 2000 0",
		"alloc 200 64 11 0",
	} {
		if got := c.do("%s", line); got != "ok" {
			t.Fatalf("%s: %q", line, got)
		}
	}
	h.awaitSums(200, sums{dram: 11})
	h.awaitSums(0, sums{dram: 3000})
	h.awaitSums(1, sums{cb: 1000})
	h.awaitSums(2, sums{kernel: 2000})
	c.do("cb_free 1 9 1000")
	c.do("unload 2 5 99999")
	c.do("free 0 4096")
	h.awaitSums(1, sums{})
	h.awaitSums(2, sums{})
	h.awaitSums(0, sums{})
}

// 20 messages of 72 bytes one by one, 20 of 112 in one write: all count.
func TestVersionsThatOldServersLost(t *testing.T) {
	h := newHost(t)
	h.start()
	one, burst := h.dial(), h.dial()
	defer one.Close()
	defer burst.Close()
	var all []byte
	for i := range uint64(20) {
		if _, err := one.Write(frame(72, 1, 0, 10, 0, os.Getpid(), 1<<32+i*64)); err != nil {
			t.Fatal(err)
		}
		all = append(all, frame(112, 1, 1, 10, 0, os.Getpid(), 1<<32+i*64)...)
	}
	if _, err := burst.Write(all); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(0, sums{dram: 200})
	h.awaitSums(1, sums{dram: 200})
}

// A message that names another process counts for the one that sent it.
func TestReportForAnother(t *testing.T) {
	h := newHost(t)
	h.start()
	victim := h.cpp(144)
	victim.do("alloc 0 4096 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	c := h.dial()
	if _, err := c.Write(append(frame(144, 2, 0, 0, 0, victim.pid(), 4096), frame(144, 1, 0, 5, 1, victim.pid(), 64)...)); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(0, sums{dram: 1000, l1: 5})
	victim.kill()
	h.awaitSums(0, sums{l1: 5})
	c.Close()
}

// Two processes on one connection, as after a fork, are two processes; and the
// child continues when the parent has exited.
func TestInheritedConnection(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.python("forked")
	line, err := c.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	child := strings.TrimSpace(line)
	held := func() (by map[string]float64) {
		by = map[string]float64{}
		for _, p := range h.tree("/v1/processes")["processes"].([]any) {
			p := p.(map[string]any)
			for _, u := range p["devices"].([]any) {
				by[fmt.Sprint(p["pid"])] += u.(map[string]any)["now"].(map[string]any)["dram_bytes"].(float64)
			}
		}
		return by
	}
	parent := fmt.Sprint(c.pid())
	c.do("alloc 0 100 64")
	c.do("child alloc 0 7 64") // the same address
	c.do("alloc 0 10 128")
	c.do("child alloc 0 1 128")
	h.awaitSums(0, sums{dram: 118})
	if by := held(); by[parent] != 110 || by[child] != 8 {
		t.Errorf("held %v, want %s 110 and %s 8", by, parent, child)
	}
	h.takeOver()
	c.do("child free 0 128")
	c.do("free 0 128")
	h.awaitSums(0, sums{dram: 107})
	c.do("exit")
	h.awaitSums(0, sums{dram: 7})
	if got := c.do("alloc 0 5 128"); got != "ok" {
		t.Fatalf("the child: %q", got)
	}
	h.awaitSums(0, sums{dram: 12})
	h.takeOver()
	c.do("free 0 64")
	h.awaitSums(0, sums{dram: 5})
	if by := held(); by[child] != 5 {
		t.Errorf("held %v, want %s 5", by, child)
	}
	c.in.Close() // the child ends
	h.awaitSums(0, sums{})
}

// A process of another user that ttmond may not signal is alive.
func TestOtherUsersAreAlive(t *testing.T) {
	t.Parallel()
	if os.Getuid() != 0 {
		t.Skip("needs root, to run ttmond as another user")
	}
	h := newHost(t)
	bin := program(t)
	// The other user must be able to run it and to make its sockets.
	if err := errors.Join(os.Chown(h.dir, 65534, 65534), os.Chmod(h.dir, 0o755), os.Chmod(filepath.Dir(bin), 0o755)); err != nil {
		t.Fatal(err)
	}
	h.credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	h.start()
	c := h.cpp(144) // root's
	c.do("alloc 0 4096 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	// Longer than the old server took to erase it. There is nothing to wait
	// for: nothing must happen.
	time.Sleep(3 * time.Second)
	h.awaitSums(0, sums{dram: 1000})
	c.kill()
	h.awaitSums(0, sums{})
}

// A process in a pid namespace calls itself 1 or so; it is still itself.
func TestContainerPids(t *testing.T) {
	if out, err := exec.Command("unshare", "--pid", "--fork", "true").CombinedOutput(); err != nil {
		t.Skipf("no pid namespaces here: %v %s", err, out)
	}
	h := newHost(t)
	h.start()
	a := startClient(t, "unshare", "--pid", "--fork", "--kill-child", cpp(t, 144), h.alloc)
	b := startClient(t, "unshare", "--pid", "--fork", "--kill-child", cpp(t, 112), h.alloc)
	a.do("alloc 0 4096 1000 0")
	a.do("cb_alloc 0 102400 7")
	b.do("alloc 0 4096 10 0")
	h.awaitSums(0, sums{dram: 1010, cb: 7})
	a.kill()
	h.awaitSums(0, sums{dram: 10})
	b.kill()
	h.awaitSums(0, sums{})
}

// A dead process is gone at once, zombie or not, and what it left is said once.
func TestDeath(t *testing.T) {
	h := newHost(t)
	i := h.start()
	c := h.cpp(144)
	c.do("many 1000")
	c.do("alloc 3 4096 123456 1")
	h.awaitSums(0, sums{dram: 100_000})
	before := time.Now()
	_ = c.cmd.Process.Kill() // not waited for: a zombie
	h.awaitSums(0, sums{})
	t.Logf("gone %v after the kill", time.Since(before))
	h.await("the leftovers in the log", func() bool { return strings.Contains(i.log.String(), "with buffers still allocated") })
	if log := i.log.String(); strings.Contains(log, "outlives") || strings.Count(log, "with buffers still allocated") != 1 ||
		!strings.Contains(log, "buffers=1001 bytes=223456 largest=123456") {
		t.Errorf("log:\n%s", log)
	}
}

// A client that disconnects and lives still holds what it holds.
func TestDisconnectIsNotDeath(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.start()
	c := h.dial()
	if _, err := c.Write(frame(144, 1, 0, 55, 0, os.Getpid(), 64)); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(0, sums{dram: 55})
	c.Close()
	time.Sleep(2500 * time.Millisecond) // longer than any grace; nothing must happen
	h.awaitSums(0, sums{dram: 55})
	again := h.dial() // and may go on where it was
	defer again.Close()
	if _, err := again.Write(frame(144, 2, 0, 0, 0, os.Getpid(), 64)); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(0, sums{})
}

// A script that reports and exits before ttmond inspects it is accounted.
func TestShortLived(t *testing.T) {
	h := newHost(t)
	i := h.start()
	_ = i.cmd.Process.Signal(syscall.SIGSTOP)
	c := h.cpp(144)
	c.do("alloc 0 4096 1000 0")
	c.kill()
	_ = i.cmd.Process.Signal(syscall.SIGCONT)
	h.await("its leftovers in the log", func() bool { return strings.Contains(i.log.String(), "bytes=1000") })
	h.awaitSums(0, sums{})
}

// A viewer that leaves between question and answer does no harm.
func TestViewerLeaves(t *testing.T) {
	h := newHost(t)
	i := h.start()
	for range 500 {
		c := h.dial()
		_, _ = c.Write(frame(144, 3, 0, 0, 0, 0, 0))
		c.Close()
	}
	h.awaitSums(0, sums{})
	if i.ended() {
		t.Fatalf("ttmond ended: %v", i.err)
	}
}

// A viewer that sends requests and never reads blocks no client, not even itself.
func TestViewerThatNeverReads(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.dial()
	defer c.Close()
	questions := bytes.Repeat(frame(144, 3, 0, 0, 0, 0, 0), 1000)
	for range 30 {
		if _, err := c.Write(questions); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.Write(frame(144, 1, 0, 42, 0, os.Getpid(), 64)); err != nil {
		t.Fatal(err)
	}
	h.awaitSums(0, sums{dram: 42})
	// What it does read at last are whole replies.
	f := make([]byte, 144)
	for range 100 {
		if _, err := io.ReadFull(c, f); err != nil || f[0] != 4 {
			t.Fatalf("reply of type %d, %v", f[0], err)
		}
	}
}

func TestSecondServer(t *testing.T) {
	h := newHost(t)
	first := h.start()
	second := h.launch()
	h.await("the second ttmond to end", second.ended)
	if second.err == nil || !strings.Contains(second.log.String(), "--reload") || !strings.Contains(second.log.String(), fmt.Sprint(first.cmd.Process.Pid)) {
		t.Errorf("the second one says %q, %v", second.log, second.err)
	}
	h.awaitSums(0, sums{})
}

// A server of another kind is left alone: ttmond serves without the socket, and
// takes it when it becomes free.
func TestForeignServer(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	l, err := net.Listen("unix", h.alloc)
	if err != nil {
		t.Fatal(err)
	}
	i := h.start()
	if !strings.Contains(i.log.String(), fmt.Sprintf("served by pid %d", os.Getpid())) {
		t.Errorf("ttmond says %q", i.log)
	}
	l.Close()
	h.await("the socket", func() bool { return strings.Contains(i.log.String(), "allocation socket bound") })
	c := h.cpp(144)
	c.do("alloc 0 4096 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	h.takeOver()
	h.awaitSums(0, sums{dram: 1000})
}

// Clients of any user may report.
func TestSocketMode(t *testing.T) {
	old := unix.Umask(0o077)
	defer unix.Umask(old)
	h := newHost(t)
	h.start()
	st, err := os.Stat(h.alloc)
	if err != nil || st.Mode().Perm() != 0o666 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
}
