package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
)

// asUser runs f as another user: on a thread that is thrown away after it.
func asUser(t *testing.T, uid int, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid))
		if errno != 0 {
			done <- errno
			return
		}
		f()
		done <- nil
	}()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
}

// What a client had dumped is for its user and root, whatever /proc hides.
func TestDumpsOfOthers(t *testing.T) {
	a := newArena(t)
	a.start()
	asUser(t, 60000, func() {
		c := a.dial()
		defer c.Close()
		_, _ = c.Write(append(frame(144, 1, 0, 1000, 0, 0, 0xabc0), frame(144, 5, 0, 0, 0, 0, 0)...))
	})
	dumps := func(uid int) (list []any) {
		asUser(t, uid, func() {
			c, err := net.Dial("unix", a.api)
			if err != nil {
				t.Error(err)
				return
			}
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return c, nil }}}
			r, err := client.Get("http://ttmond/v1/dumps")
			if err != nil {
				t.Error(err)
				return
			}
			defer r.Body.Close()
			var tree map[string]any
			if err := json.NewDecoder(r.Body).Decode(&tree); err != nil {
				t.Error(err)
				return
			}
			list, _ = tree["dumps"].([]any)
		})
		return list
	}
	a.await("the dump", func() bool { return len(dumps(0)) == 1 })
	if n := len(dumps(60000)); n != 1 {
		t.Errorf("its own user sees %d dumps", n)
	}
	if list := dumps(60001); len(list) != 0 {
		t.Errorf("another user sees %v", list)
	}
}

// A pid that another process had, which died while ttmond did not look: the
// dead one's memory goes, the live one is itself, also for a successor.
func TestPIDReused(t *testing.T) {
	const lastPID = "/proc/sys/kernel/ns_last_pid"
	a := newArena(t)
	a.start()
	a.tool("holder")
	first := a.play(60000, "holder")
	pid := first.Process.Pid
	a.awaitSums(7, sums{dram: 10})
	daemon := a.current.cmd.Process
	if err := daemon.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	goOn := func() { _ = daemon.Signal(syscall.SIGCONT) }
	t.Cleanup(goOn)
	await(t, "the daemon to stop", func() bool {
		s, err := proc.ReadStat(hostfs.Root{}, daemon.Pid)
		return err == nil && s.State == 'T'
	})
	a.end(first)
	var second *exec.Cmd
	await(t, "another process with that pid", func() bool {
		if err := os.WriteFile(lastPID, fmt.Append(nil, pid-1), 0); err != nil {
			t.Skipf("pids cannot be chosen here: %v", err)
		}
		cmd := a.play(60001, "holder")
		if cmd.Process.Pid != pid { // another process got the number
			a.end(cmd)
			return false
		}
		second = cmd
		return true
	})
	goOn()
	alive := func() bool {
		n, ours := 0, false
		for _, p := range a.tree("/v1/processes")["processes"].([]any) {
			p := p.(map[string]any)
			if p["pid"] == float64(pid) {
				n++
				ours = p["uid"] == 60001.0
			}
		}
		return n == 1 && ours
	}
	a.await("the live process, and it alone", alive)
	a.awaitSums(7, sums{dram: 10})
	a.takeOver()
	a.await("the live process after a takeover", alive)
	a.awaitSums(7, sums{dram: 10})
	a.end(second)
	a.awaitSums(7, sums{})
}
