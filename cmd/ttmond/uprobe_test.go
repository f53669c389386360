package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"

	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/model/apitype"
	apiclient "github.com/ttmon/ttmon/internal/node/api/client"
)

// startAllocating starts a program with a library that looks like tt-metal's;
// see internal/source/uprobe/testdata/fake. enter is a command that runs it
// elsewhere.
func startAllocating(t *testing.T, enter ...string) *client {
	t.Helper()
	name, library, err := programs.Allocating(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return startReady(t, append(append([]string{}, enter...), name, library))
}

// startReady starts a program and waits until it has loaded its library.
func startReady(t testing.TB, line []string) *client {
	t.Helper()
	c := startClient(t, line[0], line[1:]...)
	_, _ = c.out.ReadString('\n') // "ready"
	return c
}

// startWatched is startAllocating for a program that is watched from its start,
// however busy the machine is: another one has had the probes set.
func (h *host) startWatched() *client {
	h.t.Helper()
	name, library, err := programs.Allocating(h.t.TempDir())
	if err != nil {
		h.t.Fatal(err)
	}
	var c *client
	for range 2 {
		c = startReady(h.t, []string{name, library})
		path := fmt.Sprintf("/v1/processes/%d/blocks", c.pid())
		h.await("the program to be watched", func() bool { status, _ := h.get(path); return status == http.StatusOK })
	}
	return c
}

// watchState is the health of the watcher; a test that needs it is skipped
// where the machine does not allow it.
func (h *host) watchState() (st map[string]any) {
	h.t.Helper()
	h.await("the programs that run to be found", func() bool {
		st = h.tree("/v1/health")["uprobe"].(map[string]any)
		return st["state"] != string(apitype.WatchStarting)
	})
	return st
}

func TestBlocksSurviveTakeover(t *testing.T) {
	h := newHost(t)
	h.start()
	if st := h.watchState(); st["state"] != "on" {
		t.Skipf("the kernel does not let us watch: %v", st["reason"])
	}
	c := h.startWatched()
	path := fmt.Sprintf("/v1/processes/%d/blocks", c.pid())
	c.do("make %d 5", 1<<20)
	c.do("take 64")
	for range 3 {
		h.takeOver()
		c.do("take 128")
	}
	p := h.tree(path)["process"].(map[string]any)
	pool := p["allocators"].([]any)[0].(map[string]any)["pools"].([]any)[0].(map[string]any)
	if blocks := pool["blocks"].([]any); len(blocks) != 4 || pool["exact"] != true || p["late"] != false || p["lost_events"] != 0.0 {
		t.Errorf("after three takeovers: %v", p)
	}
}

// TestWaits: with --uprobe-waits what a program enqueues is in snapshots, also
// after a takeover; without, why it is not.
func TestWaits(t *testing.T) {
	for _, c := range []struct {
		name  string
		flags []string
		waits any
	}{
		{"on", []string{"--uprobe-waits"}, true},
		{"off", nil, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHost(t)
			h.start(c.flags...)
			st := h.watchState()
			if st["state"] != "on" {
				t.Skipf("the kernel does not let us watch: %v", st["reason"])
			}
			if st["waits"] != c.waits {
				t.Errorf("health: %v", st)
			}
			p := h.startWatched()
			for _, step := range []string{"make 1048576 5", "queue 100", "report 1 0 1", "enqueue 7 100"} {
				p.do(step)
			}
			if c.waits == nil {
				h.await("the reason", func() bool { return h.workOf(p.pid())["host_cause"] == "not_asked" })
				return
			}
			enqueued := func(n float64) func() bool {
				return func() bool {
					host, ok := h.workOf(p.pid())["host"].(map[string]any)
					return ok && host["enqueued"] == n
				}
			}
			h.await("what it enqueued", enqueued(7))
			h.takeOver()
			p.do("enqueue 1 100")
			h.await("what it enqueued, after a takeover", enqueued(8))
		})
	}
}

// workOf is what a snapshot has of the work of a process.
func (h *host) workOf(pid int) map[string]any {
	list, _ := h.tree("/v1/snapshot")["processes"].([]any)
	for _, x := range list {
		if p := x.(map[string]any); p["pid"] == float64(pid) {
			work, _ := p["work"].(map[string]any)
			return work
		}
	}
	return nil
}

// Without the privilege, or switched off, all else works and says so.
func TestWithoutWatching(t *testing.T) {
	t.Run("switched off", func(t *testing.T) {
		h := newHost(t)
		h.start("--no-uprobe")
		if st := h.watchState(); st["state"] != "off" || st["reason"] == "" {
			t.Errorf("%v", st)
		}
		if status, body := h.get("/v1/processes/1/blocks"); status != http.StatusNotFound {
			t.Errorf("%d %s", status, body)
		}
	})
	t.Run("a kernel without BPF", func(t *testing.T) {
		h := newHost(t)
		h.wrapper = []string{withoutBPF(t)}
		i := h.start()
		st := h.watchState()
		if st["state"] != "unavailable" || !strings.Contains(st["reason"].(string), "the kernel has no BPF") {
			t.Errorf("%v", st)
		}
		if n := strings.Count(i.log.String(), "uprobes disabled"); n != 1 {
			t.Errorf("it was said %d times:\n%s", n, i.log)
		}
	})
	t.Run("unprivileged", func(t *testing.T) {
		if syscall.Geteuid() != 0 {
			t.Skip("needs root to become another user")
		}
		h := newHost(t)
		h.wrapper = []string{"setpriv", "--bounding-set=-bpf,-perfmon,-sys_admin", "--inh-caps=-all"}
		i := h.start()
		st := h.watchState()
		if st["state"] != "unavailable" || !strings.Contains(st["reason"].(string), "CAP_BPF") {
			t.Errorf("%v", st)
		}
		if n := strings.Count(i.log.String(), "uprobes disabled"); n != 1 {
			t.Errorf("it was said %d times:\n%s", n, i.log)
		}
	})
}

// withoutBPF compiles a command that runs another one for which the kernel has
// no system call bpf.
func withoutBPF(t *testing.T) string {
	t.Helper()
	const source = `
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
		return 99;
	execvp(argv[1], argv + 1);
	return 98;
}
`
	dir := t.TempDir()
	file, program := filepath.Join(dir, "without.c"), filepath.Join(dir, "without")
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("gcc", "-o", program, file).CombinedOutput(); err != nil {
		t.Fatalf("compiling: %v\n%s", err, out)
	}
	return program
}

// A follower of allocations learns from a successor how many were missed: it
// continues the count of its predecessor.
func TestChangesSurviveTakeover(t *testing.T) {
	h := newHost(t)
	h.start()
	if st := h.watchState(); st["state"] != "on" {
		t.Skipf("the kernel does not let us watch: %v", st["reason"])
	}
	c := startAllocating(t)
	h.await("the program to be watched", func() bool {
		status, _ := h.get(fmt.Sprintf("/v1/processes/%d/blocks", c.pid()))
		return status == http.StatusOK
	})
	state := func() *changes.State {
		t.Helper()
		h.get(fmt.Sprintf("/v1/processes/%d/blocks", c.pid())) // after which ttmond knows all that happened
		stream, err := apiclient.FollowChanges(t.Context(), h.api)
		if err != nil {
			t.Fatal(err)
		}
		defer stream.Close()
		for {
			b, err := stream.Next()
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range b.States {
				if s.PID == c.pid() {
					return s
				}
			}
		}
	}
	c.do("make %d 5", 1<<20)
	c.do("take 64")
	before := state()
	h.takeOver()
	c.do("take 128")
	after := state()
	if after.N != before.N+1 || len(after.Lists) != 1 || after.Lists[0].ID != before.Lists[0].ID || len(after.Lists[0].Blocks) != 2 {
		t.Errorf("before %+v, after %+v", before, after)
	}
}
