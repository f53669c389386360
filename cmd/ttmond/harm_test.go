package main

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// Random bytes, cut anywhere, from many connections: nothing is believed,
// nothing breaks, and those who speak sense are heard.
func TestNoise(t *testing.T) {
	h := newHost(t)
	i := h.start()
	good := h.cpp(144)
	rnd := rand.New(rand.NewPCG(1, 2))
	for round := range 300 {
		c := h.dial()
		b := noise(rnd)
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
	h.awaitSums(41, sums{})
	if i.ended() {
		t.Fatalf("ttmond ended: %v", i.err)
	}
}

// noise is random bytes, some of which look like messages: those with a byte
// or a field that is wrong find more than pure chance does.
func noise(rnd *rand.Rand) (b []byte) {
	for range 1 + rnd.IntN(6) {
		switch rnd.IntN(4) {
		case 0:
			for range rnd.IntN(800) {
				b = append(b, byte(rnd.Uint32()))
			}
		case 1:
			for range rnd.IntN(300) {
				b = append(b, byte(rnd.IntN(13))) // types and zeros
			}
		case 2:
			texts := []string{"\n", "QUERY_ALL\n", "GET / HTTP/1.1\r\n\r\n", strings.Repeat("x", 400), "\x02" + strings.Repeat("\x00", 23)}
			b = append(b, texts[rnd.IntN(len(texts))]...)
		default:
			size := []int{72, 112, 120, 128, 144, 32, 50}[rnd.IntN(7)]
			f := frame(144, byte(rnd.IntN(14)), int32(rnd.IntN(12))-2, rnd.Uint64N(1<<30), byte(rnd.IntN(6)), rnd.IntN(3)*os.Getpid(), rnd.Uint64N(4096)*32)
			b = append(b, f[:size]...)
		}
	}
	return b
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
	t.Parallel()
	h := newHost(t)
	i := h.start()
	c := h.dial().(*net.UnixConn)
	defer c.Close()
	if err := i.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	await(t, "the server to stop", func() bool {
		s, err := proc.ReadStat(hostfs.Root{}, i.cmd.Process.Pid)
		return err == nil && s.State == 'T'
	})
	const n = 20_000 // more than the socket holds
	sent, blocked := uint64(0), false
	for ; sent < n && !blocked; sent++ {
		_ = c.SetWriteDeadline(time.Now().Add(time.Second))
		wrote, err := c.Write(frame(144, 1, 0, 10, 0, os.Getpid(), 1<<32+sent*64))
		if blocked = errors.Is(err, os.ErrDeadlineExceeded); blocked {
			sent-- // this one is to come
		} else if err != nil {
			t.Fatal(err)
		}
		if blocked && wrote != 0 {
			t.Fatalf("half a message of %d bytes was taken", wrote)
		}
	}
	if !blocked {
		t.Fatalf("a stopped server took %d messages", n)
	}
	if err := i.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	_ = c.SetWriteDeadline(time.Time{})
	for ; sent < n; sent++ {
		if _, err := c.Write(frame(144, 1, 0, 10, 0, os.Getpid(), 1<<32+sent*64)); err != nil {
			t.Fatal(err)
		}
	}
	h.awaitSums(0, sums{dram: 10 * n})
}

// A stopped client blocks no other.
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

// A log without a reader must not block clients either.
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
	fdsBefore := settledFDs(t, i)
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
// away, and what they send meanwhile is read in the end.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	prlimit, err := exec.LookPath("prlimit")
	if err != nil {
		t.Skip("no prlimit on this machine")
	}
	h := newHost(t)
	i := h.start("--no-uprobe") // programs of other tests would take descriptors
	limit := settledFDs(t, i) + 40
	if out, err := exec.Command(prlimit, "--pid", fmt.Sprint(i.cmd.Process.Pid), fmt.Sprintf("--nofile=%d:%d", limit, limit)).CombinedOutput(); err != nil {
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
	h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "cannot accept client") })
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

// settledFDs waits until a ttmond that has just started has opened what it
// opens: history and the watch over allocators come after it is ready.
func settledFDs(t testing.TB, i *instance) (n int) {
	t.Helper()
	for same := 0; same < 20; time.Sleep(50 * time.Millisecond) {
		if now := countFDs(t, i); now == n {
			same++
		} else {
			n, same = now, 0
		}
	}
	return n
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

// The same work again and again leaves nothing behind: not one descriptor or
// goroutine after ten rounds. A leak shows after every ten of them, but what a
// busy machine opens late, and then keeps, shows once.
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
	count := func() (descriptors, goroutines int) {
		return settledFDs(t, i), int(h.tree("/v1/health")["goroutines"].(float64))
	}
	const tries = 5
	fds, routines := count()
	for range tries {
		for range 10 {
			round()
		}
		fdsThen, routinesThen := fds, routines
		if fds, routines = count(); fds <= fdsThen && routines <= routinesThen {
			return
		}
		t.Logf("after ten rounds %d descriptors instead of %d, %d goroutines instead of %d", fds, fdsThen, routines, routinesThen)
	}
	t.Errorf("more is left after every ten rounds, %d times in a row", tries)
}
