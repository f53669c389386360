package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/handover"
)

// takeOver starts a new ttmond in the place of the running one. Clients are
// not made to wait long for a takeover: on a busy machine one may fail, the old
// ttmond continues, and one tries again.
func (h *host) takeOver(args ...string) (old *instance) {
	h.t.Helper()
	old = h.current
	h.await("a takeover", func() bool {
		next := h.launch(append(args, "--takeover")...)
		h.await("the new ttmond to be ready, or to give up", func() bool { return next.ready() || next.ended() })
		if next.ended() {
			h.t.Logf("it did not take over: %v\n%s", next.err, next.log)
			return false
		}
		h.current = next
		return true
	})
	h.await("the old ttmond to end", old.ended)
	if old.err != nil {
		h.t.Fatalf("the old ttmond ended badly: %v\n%s", old.err, old.log)
	}
	return old
}

// Clients report without a pause while ttmond is replaced again and again, in
// pieces that end in the middle of messages. Not a byte is lost, and no
// client notices.
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

// A successor that fails at any point leaves the old one serving.
func TestTakeoverFails(t *testing.T) {
	h := newHost(t)
	old := h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	for k, step := range []string{"met", "asked", "streaming", "ready", "everything"} {
		conn, _, err := handover.Dial(h.api + ".handover")
		if err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if err := failAfter(conn, step); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		conn.Close()
		if got := c.do("alloc 0 %d 1 0", 8388608+64*k); got != "ok" {
			t.Fatalf("after a successor had %s: %q", step, got)
		}
		h.awaitSums(0, sums{dram: 1001 + uint64(k)})
	}
	if old.ended() {
		t.Fatalf("the old one ended: %v", old.err)
	}
	h.takeOver() // and now for good
	h.awaitSums(0, sums{dram: 1005})
}

// pausedBySuccessor has a successor take everything and then say nothing: the
// old one has paused until the connection is closed or its timeout ends.
func pausedBySuccessor(t *testing.T, h *host) *net.UnixConn {
	t.Helper()
	conn, _, err := handover.Dial(h.api + ".handover")
	if err != nil {
		t.Fatal(err)
	}
	err = handover.RequestTakeover(conn)
	var files []handover.File
	if err == nil {
		files, err = handover.ReceiveFiles(conn, handover.Timeout)
	}
	if err != nil {
		t.Fatal(err)
	}
	stream := os.NewFile(uintptr(handover.Extract(&files, "stream")[0]), "stream")
	t.Cleanup(func() { stream.Close() })
	go io.Copy(io.Discard, stream)
	if err := handover.SendReady(conn); err != nil {
		t.Fatal(err)
	}
	rest, err := handover.ReceiveFiles(conn, handover.Timeout)
	handover.Close(rest)
	if err != nil {
		t.Fatal(err)
	}
	return conn
}

// failAfter is a successor that gives up.
func failAfter(conn *net.UnixConn, step string) error {
	if step == "met" {
		return nil
	}
	if err := handover.RequestTakeover(conn); err != nil || step == "asked" {
		return err
	}
	files, err := handover.ReceiveFiles(conn, handover.Timeout)
	defer func() { handover.Close(files) }()
	if err != nil || step == "streaming" {
		return err
	}
	stream := os.NewFile(uintptr(handover.Extract(&files, "stream")[0]), "stream")
	defer stream.Close()
	go io.Copy(io.Discard, stream)
	if err := handover.SendReady(conn); err != nil || step == "ready" {
		return err
	}
	rest, err := handover.ReceiveFiles(conn, handover.Timeout)
	handover.Close(rest)
	return err
}

func TestTakeoverWithoutPredecessor(t *testing.T) {
	h := newHost(t)
	i := h.start("--takeover")
	if !strings.Contains(i.log.String(), "starting without its state") {
		t.Errorf("log:\n%s", i.log)
	}
}

// Another user cannot take the place of a daemon.
func TestTakeoverByAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	h := newHost(t)
	h.start()
	if err := os.Chmod(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Dir(program(t)), 0o755); err != nil {
		t.Fatal(err)
	}
	h.credential = &syscall.Credential{Uid: 65534, Gid: 65534}
	next := h.launch("--takeover")
	h.await("the other user's ttmond to exit", next.ended)
	if next.err == nil {
		t.Errorf("the other user's ttmond says %q", next.log)
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
	// Again, and now the client exits while only the keeper runs.
	h.stop()
	c.kill()
	h.start()
	h.awaitSums(0, sums{})
	h.awaitSums(1, sums{dram: 5})
}

// A keeper exits when no client is left, and not before: a SIGHUP that was meant
// for ttmond does not end it.
func TestKeeperEnds(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	h.stop()
	var pid int
	h.await("the keeper's name on the lock", func() bool { // it signs when it has everything
		b, err := os.ReadFile(h.api + ".lock")
		if err == nil {
			_, err = fmt.Sscan(string(b), &pid)
		}
		return err == nil && syscall.Kill(pid, 0) == nil
	})
	if err := syscall.Kill(pid, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	for k := range 5 { // an old client would die of a closed connection
		if got := c.do("alloc 0 %d 10 0", 8388608+64*k); got != "ok" {
			t.Fatalf("report to a keeper that got a SIGHUP: %q", got)
		}
	}
	c.kill()
	h.await("the keeper to end", func() bool { return syscall.Kill(pid, 0) != nil })
	h.start()
	h.awaitSums(0, sums{})
}

// A stop without clients leaves nothing but the lock files.
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

// After SIGKILL the connections are gone: a client that reconnects is accounted
// from then on, and an old one's SIGPIPE cannot be helped.
func TestKilledDaemon(t *testing.T) {
	t.Parallel()
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

// A terminal that closes stops ttmond as Ctrl-C does: clients stay connected.
func TestHangup(t *testing.T) {
	if signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP is ignored here (nohup), and ttmond inherits that")
	}
	h := newHost(t)
	terminal, i := h.startOnTerminal()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	terminal.Close()
	h.await("ttmond to end", i.ended)
	if got := c.do("alloc 0 4194368 1 0"); got != "ok" {
		t.Fatalf("report after the hangup: %q", got)
	}
	h.start()
	h.awaitSums(0, sums{dram: 1001})
}
