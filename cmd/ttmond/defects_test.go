package main

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
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

// A message that names another process is booked for who sent it.
func TestNobodyReportsForAnother(t *testing.T) {
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

// A process of another user that ttmond may not signal is alive.
func TestOtherUsersAreAlive(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to run ttmond as nobody")
	}
	h := newHost(t)
	bin := program(t)
	// nobody must be able to run it and to make its sockets.
	for _, dir := range []string{h.dir, strings.TrimSuffix(bin, "/ttmond")} {
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
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
	h.await("the leftovers in the log", func() bool { return strings.Contains(i.log.String(), "without freeing everything") })
	if log := i.log.String(); strings.Count(log, "without freeing everything") != 1 ||
		!strings.Contains(log, "buffers=1001 bytes=223456 largest=123456") {
		t.Errorf("log:\n%s", log)
	}
}

// A client that disconnects and lives still holds what it holds.
func TestDisconnectIsNotDeath(t *testing.T) {
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

// A script that reports and exits before anybody looks at it is heard.
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

// A viewer that asks and asks and never reads keeps nobody from anything, not
// even itself.
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
	if second.err == nil || !strings.Contains(second.log.String(), "--takeover") || !strings.Contains(second.log.String(), fmt.Sprint(first.cmd.Process.Pid)) {
		t.Errorf("the second one says %q, %v", second.log, second.err)
	}
	h.awaitSums(0, sums{})
}

// A server of another kind is left alone.
func TestForeignServer(t *testing.T) {
	h := newHost(t)
	l, err := net.Listen("unix", h.alloc)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	i := h.launch()
	h.await("ttmond to end", i.ended)
	if i.err == nil || !strings.Contains(i.log.String(), fmt.Sprintf("served by pid %d", os.Getpid())) {
		t.Errorf("ttmond says %q, %v", i.log, i.err)
	}
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

// Random bytes, cut anywhere, from many connections: nothing is believed,
// nothing breaks, and those who speak sense are heard.
func TestNoise(t *testing.T) {
	h := newHost(t)
	i := h.start()
	good := h.cpp(144)
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		c := h.dial()
		b := make([]byte, rnd.IntN(3000))
		for j := range b {
			b[j] = byte(rnd.Uint32())
			if rnd.IntN(3) == 0 {
				b[j] = byte(rnd.IntN(13)) // so that types and zeros are common
			}
		}
		for len(b) > 0 {
			n := min(1+rnd.IntN(500), len(b))
			if _, err := c.Write(b[:n]); err != nil {
				t.Fatalf("round %d: the connection was closed on a client: %v", round, err)
			}
			b = b[n:]
		}
		c.Close()
		good.do("alloc 40 %d 10 0", 1<<32+64*round)
	}
	h.awaitSums(40, sums{dram: 3000})
	if i.ended() {
		t.Fatalf("ttmond ended: %v", i.err)
	}
}

// After noise on its own connection, a client is understood again.
func TestNoiseThenSense(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.dial()
	defer c.Close()
	noise := bytes.Repeat([]byte{0xff, 7, 0x80}, 333)
	for i := range uint64(3) {
		msg := append(frame(112, 1, 0, 100, 0, os.Getpid(), 1<<32+i*64), noise...)
		if _, err := c.Write(msg); err != nil {
			t.Fatal(err)
		}
	}
	h.awaitSums(0, sums{dram: 300})
}

// A ttmond that was stopped holds its clients up only as long as it is, and
// loses nothing.
func TestStoppedServer(t *testing.T) {
	h := newHost(t)
	i := h.start()
	c := h.dial().(*net.UnixConn)
	defer c.Close()
	_ = i.cmd.Process.Signal(syscall.SIGSTOP)
	const n = 20_000 // more than the socket holds
	done := make(chan error, 1)
	go func() {
		for k := range uint64(n) {
			if _, err := c.Write(frame(144, 1, 0, 10, 0, os.Getpid(), 1<<32+k*64)); err != nil {
				done <- err
				return
			}
		}
		done <- nil
	}()
	_ = i.cmd.Process.Signal(syscall.SIGCONT)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	h.awaitSums(0, sums{dram: 10 * n})
}

// A stopped client holds nobody up.
func TestStoppedClient(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4096 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	_ = c.cmd.Process.Signal(syscall.SIGSTOP)
	for range 50 {
		h.awaitSums(0, sums{dram: 1000})
	}
	_ = c.cmd.Process.Signal(syscall.SIGCONT)
	c.do("free 0 4096")
	h.awaitSums(0, sums{})
}

// A log that cannot be written is no reason to stop.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skipf("no /dev/full: %v", err)
	}
	defer full.Close()
	h := newHost(t, "-v")
	cmd := exec.Command(program(t), "--alloc-socket", h.alloc, "--socket", h.api, "--state-dir", h.dir+"/state", "--root", h.root, "-v")
	cmd.Stderr = full
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	h.await("the socket", func() bool {
		c, err := net.Dial("unix", h.alloc)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	for range 30 {
		c := h.cpp(144)
		c.do("alloc 0 4096 1000 0")
		h.awaitSums(0, sums{dram: 1000})
		c.kill()
		h.awaitSums(0, sums{})
	}
}

// A log that nobody reads must not hold up anybody either.
func TestStuckLog(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	fd := int(w.Fd()) // blocking from now on, as the daemon will see it
	if err := unix.SetNonblock(fd, true); err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := unix.Write(fd, make([]byte, 4096)); err != nil {
			break // it is full
		}
	}
	if err := unix.SetNonblock(fd, false); err != nil {
		t.Fatal(err)
	}
	h := newHost(t)
	cmd := exec.Command(program(t), "--alloc-socket", h.alloc, "--socket", h.api, "--state-dir", h.dir+"/state", "--root", h.root, "-v")
	cmd.Stderr = w
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	defer func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	h.await("the socket", func() bool {
		c, err := net.Dial("unix", h.alloc)
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	for range 20 {
		dump := h.dial()
		_, _ = dump.Write(frame(72, 5, 0, 0, 0, 0, 0))
		dump.Close()
	}
	h.awaitSums(0, sums{})
}

// Connections that say nothing, by the thousand, and those between them that
// say something.
func TestTenThousandConnections(t *testing.T) {
	const n = 10_000
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil || limit.Max < n+500 {
		t.Skipf("only %d descriptors are allowed here", limit.Max)
	}
	h := newHost(t)
	i := h.start()
	fdsBefore := countFDs(t, i)
	conns := make([]net.Conn, n)
	for k := range conns {
		conns[k] = h.dial()
		if k%10 == 0 {
			if _, err := conns[k].Write(frame(144, 1, 0, 1, 0, os.Getpid(), 1<<32+uint64(k)*64)); err != nil {
				t.Fatal(err)
			}
		}
	}
	h.awaitSums(0, sums{dram: n / 10})
	t.Logf("with %d connections: %s", n, memory(t, i))
	for _, c := range conns {
		c.Close()
	}
	h.await("all descriptors to be closed", func() bool { return countFDs(t, i) <= fdsBefore+1 }) // one is our pidfd
	h.awaitSums(0, sums{dram: n / 10})
}

// When descriptors have run out, clients wait to be accepted. None is turned
// away, and what they send meanwhile is heard in the end.
func TestOutOfDescriptors(t *testing.T) {
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit on this machine")
	}
	h := newHost(t)
	i := h.start()
	if out, err := exec.Command(prlimit, "--pid", fmt.Sprint(i.cmd.Process.Pid), "--nofile=60:60").CombinedOutput(); err != nil {
		t.Skipf("the limit cannot be lowered: %v %s", err, out)
	}
	const n = 100
	conns := make([]net.Conn, n)
	for k := range conns {
		conns[k] = h.dial()
		if _, err := conns[k].Write(frame(144, 1, 0, 1, 0, os.Getpid(), 1<<32+uint64(k)*64)); err != nil {
			t.Fatal(err)
		}
	}
	h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "must wait to be accepted") })
	for _, c := range conns[:70] {
		c.Close()
	}
	h.awaitSums(0, sums{dram: n})
	for k, c := range conns[70:] {
		if _, err := c.Write(frame(144, 2, 0, 0, 0, os.Getpid(), 1<<32+uint64(70+k)*64)); err != nil {
			t.Fatalf("client %d was turned away: %v", 70+k, err)
		}
	}
	h.awaitSums(0, sums{dram: 70})
}

func countFDs(t testing.TB, i *instance) int {
	t.Helper()
	names, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", i.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	return len(names)
}

func memory(t testing.TB, i *instance) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", i.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, "VmRSS") {
			return strings.TrimSpace(line)
		}
	}
	return ""
}

// The same work again and again leaves nothing behind.
func TestNothingLeaks(t *testing.T) {
	h := newHost(t)
	i := h.start()
	round := func() {
		c := h.cpp(144)
		c.do("many 2000")
		c.do("alloc 1 4096 10 0")
		h.awaitSums(1, sums{dram: 10})
		c.kill()
		h.awaitSums(0, sums{})
		h.awaitSums(1, sums{})
	}
	round()
	fds := countFDs(t, i)
	for range 20 {
		round()
	}
	h.await("descriptors as before", func() bool { return countFDs(t, i) <= fds })
}
