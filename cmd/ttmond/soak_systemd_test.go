package main

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// soakFor is how long the long tests go on; a test that is not asked for is
// skipped.
func soakFor(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv(soakVar)
	if text == "" {
		t.Skip("a long one: make soak T=10m")
	}
	length, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return length
}

// arenaIn is an arena whose daemon is a service of a real systemd.
func arenaIn(t *testing.T, s *systemd) *arena {
	t.Helper()
	a := &arena{host: s.host, t: t, apiThere: "/run/ttmon/ttmond.sock"}
	// After a crash everybody waits until systemd has started the next one.
	a.timeout = 15 * time.Second
	a.enter = []string{"nsenter", "-t", strconv.Itoa(s.pid1), "-m", "-p", "--"}
	a.makeTools()
	a.watchOver()
	return a
}

// The random adversary against the service of a real systemd, where ttmond is
// killed as well. What is promised then: root's workload keeps its connection,
// waits no longer than the start of the next ttmond takes, and its totals are
// exact as soon as it has reported again what it holds.
func TestSoakSystemd(t *testing.T) {
	length := soakFor(t) / 4
	s := newSystemd(t, "WatchdogSec=3s", "RestartSec=50ms", "Environment=GORACE=atexit_sleep_ms=0", "ExecStart=",
		"ExecStart="+program(t))
	a := arenaIn(t, s)
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d, for %v", seed, length)
	rnd := rand.New(rand.NewPCG(seed, 2))
	names := slices.DeleteFunc(attackNames(), func(name string) bool { return name == "paths" }) // systemd has them
	slices.Sort(names)
	counts := map[string]int{}
	var running []*exec.Cmd
	whole := func() bool {
		held, err := ask(a.alloc, rootDevice)
		return err == nil && (held == rootBytes || held == rootBytes-rootBytes/500)
	}
	replaced := func(what string, do func(pid string)) {
		before := s.main()
		do(before)
		a.await("another ttmond after "+what, func() bool {
			now := s.main()
			return now != before && now != "0" && s.show("ActiveState") == "active"
		})
	}
	signal := func(name string) func(string) {
		return func(pid string) { _ = s.inside("kill", "-"+name, pid).Run() }
	}
	// The workload has started it by connecting; before it is ready no watchdog
	// looks after it.
	a.await("the service", func() bool { return s.show("ActiveState") == "active" })
	for end := time.Now().Add(length); time.Now().Before(end) && !t.Failed(); {
		what := ""
		switch n := rnd.IntN(12); {
		case n < 4 && len(running) < 3:
			what = names[rnd.IntN(len(names))]
			cmd, err := a.tryPlay(60000+rnd.IntN(10), what)
			if err == nil {
				running = append(running, cmd)
			}
		case n < 6 && len(running) > 0:
			what = "end of an attack"
			i := rnd.IntN(len(running))
			a.end(running[i])
			running = slices.Delete(running, i, i+1)
		case n == 6 || n == 7:
			what = "SIGKILL"
			replaced(what, signal("KILL"))
		case n == 8:
			what = "restart"
			replaced(what, func(string) { s.must("restart", "ttmond.service") })
		case n == 9:
			what = "stop"
			replaced(what, func(string) {
				s.must("stop", "ttmond.service")
				s.must("start", "ttmond.service")
			})
		case n == 10:
			what = "reload"
			s.must("reload", "ttmond.service")
		case n == 11:
			what = "watchdog"
			replaced(what, signal("STOP"))
		default:
			time.Sleep(time.Duration(rnd.IntN(500)) * time.Millisecond)
			continue
		}
		counts[what]++
		a.await("exact totals after "+what, whole)
	}
	for _, cmd := range running {
		a.end(cmd)
	}
	t.Logf("done: %v", counts)
	a.await("exact totals", whole)
	a.await("health", func() bool { status, _, err := a.health(); return err == nil && status == http.StatusOK })
	a.settle()
}

// hog holds 8 MB in the cgroup of the service.
const hog = `echo $$ >"$1/cgroup.procs" || exit 1
x=$(head -c 8000000 /dev/zero | tr '\0' x)
echo ready; sleep 1000`

// The kernel kills the service for its memory: the connections of clients are
// systemd's, and the next ttmond serves them.
func TestSoakMemoryMax(t *testing.T) {
	soakFor(t)
	s := newSystemd(t, "MemoryMax=160M", "RestartSec=1s", "Environment=GORACE=atexit_sleep_ms=0", "ExecStart=",
		"ExecStart="+program(t))
	c := s.client()
	fds := c.do("fds")
	c.do("alloc 0 4194304 1000 0")
	s.awaitSums(0, sums{dram: 1000})
	// It keeps within its memory by itself, whatever is reported.
	a := arenaIn(t, s)
	first := s.main()
	filler := a.play(0, "buffers")
	a.await("a full account", func() bool { return strings.Contains(s.said(), "more than is kept account of") })
	if !strings.Contains(s.said(), "does not fit into the memory limit") {
		t.Errorf("nothing was said of the limit:\n%s", s.said())
	}
	if s.main() != first {
		t.Fatal("killed by reports alone")
	}
	a.end(filler)
	cgroup := ""
	for _, base := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		if dir := filepath.Join(base, s.show("ControlGroup")); cgroup == "" && s.inside("test", "-w", dir+"/cgroup.procs").Run() == nil {
			cgroup = dir
		}
	}
	if cgroup == "" {
		t.Skipf("no memory cgroup %s here", s.show("ControlGroup"))
	}
	var hogs []*exec.Cmd
	t.Cleanup(func() {
		for _, h := range hogs {
			a.end(h)
		}
	})
	s.await("the kernel to kill it", func() bool {
		if s.main() != first {
			return true
		}
		h := s.inside("sh", "-c", hog, "sh", cgroup)
		h.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := h.Start(); err != nil {
			t.Fatal(err)
		}
		hogs = append(hogs, h)
		time.Sleep(300 * time.Millisecond) // for it to take its memory
		return false
	})
	t.Logf("killed with %d hogs of 8 MB beside it: %s", len(hogs), s.show("Result"))
	if got := c.do("alloc 0 8388608 20 0"); got != "ok" {
		t.Fatalf("the client: %q", got)
	}
	for _, h := range hogs {
		a.end(h)
	}
	hogs = nil
	s.await("the next one", func() bool { return s.show("ActiveState") == "active" && s.main() != first && s.main() != "0" })
	s.awaitSums(0, sums{dram: 20})
	if got := c.do("fds"); got != fds {
		t.Errorf("the client has %s descriptors open, at first %s: it reconnected", got, fds)
	}
}

// The largest table that is configured by default fits the unit's limit of
// memory, and a takeover of it as well.
func TestSoakLargestTable(t *testing.T) {
	soakFor(t)
	a := newArena(t)
	a.memoryMax = 2 << 30
	a.wrapper = nil
	a.limit()
	a.extraArgs = nil // the default
	a.start()
	for range 4 {
		a.play(0, "buffers")
	}
	const all = 8 << 20
	held := func() float64 { return a.tree("/v1/health")["ledger"].(map[string]any)["buffers"].(float64) }
	a.await("a full account", func() bool { return held() == all })
	for range 3 {
		a.takeOver()
		if got := held(); got != all {
			t.Errorf("%v buffers after a takeover, want %d", got, all)
		}
		tree := a.tree("/v1/health")
		fmt.Printf("FIGURE takeover of %d buffers: clients waited %v s, %d MiB at most of 2048, heap %v MiB\n", all, tree["takeover_pause_s"], a.memory()>>20, tree["heap_bytes"].(float64)/(1<<20))
	}
	if got := a.memory(); got > 2<<30*9/10 {
		t.Errorf("%d MiB were used, 2048 are allowed", got>>20)
	}
}
