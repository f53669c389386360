package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// takeOver has the running ttmond executed again, in the same process.
func (h *host) takeOver() {
	h.t.Helper()
	cmd := h.command("--reload")
	if out, err := cmd.CombinedOutput(); err != nil {
		h.t.Fatalf("the reload: %v: %s\n%s", err, out, h.current.log)
	}
	if h.current.ended() {
		h.t.Fatalf("ttmond ended: %v\n%s", h.current.err, h.current.log)
	}
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

// A program that cannot take over is not executed: the running one says why, and
// serves on.
func TestReloadFails(t *testing.T) {
	t.Parallel()
	script := func(text string) func(t *testing.T, h *host, program string) {
		return func(t *testing.T, _ *host, program string) {
			if err := errors.Join(os.Remove(program), os.WriteFile(program, []byte(text), 0o755)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range []struct {
		name  string
		spoil func(t *testing.T, h *host, program string)
		says  string
	}{
		{"a mistake in the configuration", func(t *testing.T, h *host, _ string) {
			if err := os.WriteFile(filepath.Join(h.dir, "ttmond.toml"), []byte("[log\nlevle"), 0o600); err != nil {
				t.Fatal(err)
			}
		}, "ttmond.toml"},
		{"no program", func(t *testing.T, _ *host, program string) {
			if err := os.Remove(program); err != nil {
				t.Fatal(err)
			}
		}, "no such file"},
		{"not a program", script("garbage"), "exec format error"},
		{"a program that does not read the state", script("#!/bin/sh\necho what state >&2; exit 1\n"), "what state"},
		{"a program that says nothing", script("#!/bin/sh\nexit 0\n"), "cannot take over"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			h.program = filepath.Join(h.dir, "ttmond")
			// By another process: what is open for writing cannot be executed.
			if out, err := exec.Command("cp", program(t), h.program).CombinedOutput(); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
			config := filepath.Join(h.dir, "ttmond.toml")
			if err := os.WriteFile(config, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			h.extraArgs = append(h.extraArgs, "--config", config)
			i := h.start()
			client := h.cpp(144)
			client.do("alloc 0 4194304 1000 0")
			c.spoil(t, h, h.program)
			if err := os.WriteFile(filepath.Join(h.dir, "other.toml"), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			ask := exec.Command(program(t), "--reload", "--socket", h.api, "--config", filepath.Join(h.dir, "other.toml"))
			if out, err := ask.CombinedOutput(); err == nil || !strings.Contains(string(out), c.says) {
				t.Errorf("the reload: %v: %s", err, out)
			}
			if err := i.cmd.Process.Signal(syscall.SIGHUP); err != nil {
				t.Fatal(err)
			}
			h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "reload failed; continuing as before") })
			if got := client.do("alloc 0 8388608 1 0"); got != "ok" {
				t.Fatalf("report after a reload that failed: %q", got)
			}
			h.awaitSums(0, sums{dram: 1001})
			h.program = ""
		})
	}
}

// Signals to reload in a row, and at once, do no harm: not one connection is lost.
func TestManyHangups(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	i := h.start()
	c := h.cpp(144)
	fds := c.do("fds")
	for k := range 300 {
		if err := i.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		if got := c.do("alloc 0 %d 10 0", 4194304+64*k); got != "ok" {
			t.Fatalf("report %d: %q\n%s", k, got, i.log)
		}
		if k >= 100 {
			time.Sleep(5 * time.Millisecond)
		}
	}
	h.awaitSums(0, sums{dram: 3000})
	if got := c.do("fds"); got != fds {
		t.Errorf("the client has %s descriptors open, at first %s: it reconnected", got, fds)
	}
	if n := strings.Count(i.log.String(), "resumed from previous ttmond"); n == 0 || i.ended() {
		t.Errorf("%d restarts; ended: %v", n, i.ended())
	}
}

// What a shell has started before it became ttmond is not ended, and waited for when it
// ends.
func TestReloadSparesOthers(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.wrapper = []string{"sh", "-c", `sleep 1000 & echo "child $!" >&2; exec "$0" "$@"`}
	i := h.start()
	h.wrapper = nil
	h.takeOver()
	h.takeOver()
	var child int
	if _, err := fmt.Sscanf(i.log.String(), "child %d", &child); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(child, 0); err != nil {
		t.Fatalf("the child of the shell has gone: %v", err)
	}
	if err := syscall.Kill(child, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	h.await("it to be waited for", func() bool { return syscall.Kill(child, 0) != nil })
}

// A reload leaves nothing open, and no child that is not waited for.
func TestReloadLeavesNothing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	i := h.start("--no-uprobe") // programs of other tests would be followed
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.takeOver()
	open := func() (names []string) {
		all, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", i.cmd.Process.Pid))
		for _, fd := range all {
			to, _ := os.Readlink(fd)
			name, _, _ := strings.Cut(to, ":[")
			names = append(names, name)
		}
		slices.Sort(names)
		return names
	}
	settledFDs(t, i)
	before := open()
	for range 5 {
		h.takeOver()
	}
	settledFDs(t, i)
	if after := open(); len(after) > len(before) {
		t.Errorf("open after five reloads:\n%q\nbefore:\n%q", after, before)
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", i.cmd.Process.Pid, i.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	for field := range strings.FieldsSeq(string(children)) {
		status, _ := os.ReadFile("/proc/" + field + "/stat")
		if strings.Contains(string(status), ") Z ") {
			t.Errorf("a child was left: %s", status)
		}
	}
}

// Only root and the user that ttmond runs as may have it executed again.
func TestReloadByAnotherUser(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	h := newHost(t)
	h.start()
	if err := errors.Join(os.Chmod(h.dir, 0o755), os.Chmod(filepath.Dir(program(t)), 0o755)); err != nil {
		t.Fatal(err)
	}
	cmd := h.command("--reload")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "only root") {
		t.Errorf("another user's reload: %v: %s", err, out)
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
