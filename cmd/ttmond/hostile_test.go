package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	apiclient "github.com/ttmon/ttmon/internal/node/api/client"
)

// Each attack, by a user of its own, three at a time.
func TestHostile(t *testing.T) {
	hermetic.Long(t)
	for _, group := range []struct {
		attacks []string
		expect  []string // in the daemon's log
	}{
		{attacks: []string{"inherited", "forks", "deaths"}},
		{attacks: []string{"dumps", "mappings", "noise"}},
		{attacks: []string{"devices", "device-zero", "flood"}},
		{attacks: []string{"slow-reads", "unread", "api"}, expect: []string{"budget=api_", "budget=unread_bytes"}},
		{attacks: []string{"connections", "buffers", "connects"}, expect: []string{"budget=descriptors", "buffer limit reached"}},
		{attacks: []string{"libraries", "ledgers", "descriptors"}},
		{attacks: []string{"blocks", "jobs", "fifos"}},
	} {
		t.Run(strings.Join(group.attacks, ","), func(t *testing.T) {
			a := newArena(t)
			a.begin()
			for k, name := range group.attacks {
				a.play(60000+k, name)
			}
			time.Sleep(time.Second) // of attack
			for _, text := range group.expect {
				a.await(text+" in the log", func() bool { return strings.Contains(a.current.log.String(), text) })
				if !strings.Contains(a.current.log.String(), "uid=6000") {
					t.Errorf("no uid in the log:\n%s", a.current.log)
				}
			}
			a.settle()
			if size := len(a.current.log.String()); size > 256<<10 {
				t.Errorf("the attack made ttmond write %d bytes of log", size)
			}
		})
	}
}

// Libraries and ledgers of all kinds: root's program is watched from its first
// allocation, no other user speaks for root's processes, and when the attackers
// have exited nothing of them is left.
func TestHostileFiles(t *testing.T) {
	hermetic.Long(t)
	a := newArena(t)
	a.begin()
	watching := a.watchState()["state"] == "on"
	heapPeak := a.sampleHeap()
	attackers := []*exec.Cmd{a.play(60000, "libraries"), a.play(60001, "libraries"), a.play(60002, "ledgers")}
	if watching {
		a.await("libraries to be refused", func() bool { return strings.Contains(a.current.log.String(), "skipping library") })
	}
	a.watchProgram(watching)
	for range 3 {
		a.takeOver()
	}
	for _, p := range a.tree("/v1/snapshot")["processes"].([]any) {
		if pid := p.(map[string]any)["pid"]; pid == 1.0 || pid == float64(os.Getpid()) {
			t.Errorf("a forged ledger is believed: %v", p)
		}
	}
	a.settle()
	heap := heapPeak()
	t.Logf("Go's heap had %d MiB at most", heap>>20)
	if heap == 0 || heap > 128<<20 {
		t.Errorf("Go's heap had %d MiB", heap>>20)
	}
	if !raceDetector && a.figures.mebibytes > 256 {
		t.Errorf("ttmond took %d MiB", a.figures.mebibytes)
	}
	for _, cmd := range attackers {
		a.end(cmd)
	}
	a.removeLibraries()
	if watching {
		a.await("the places to be free again", func() bool { return a.budget("libraries").used < 8 }) // root's are there
		a.watchProgram(true)
	}
}

// sampleHeap asks how much memory Go's heap has until the result is called, which
// returns the most. The figure of the control group says little with the race
// detector: its shadow memory grows with every address that was ever used.
func (a *arena) sampleHeap() (peak func() uint64) {
	ctx, cancel := context.WithCancel(context.Background())
	var most uint64
	var done sync.WaitGroup
	done.Go(func() {
		for ctx.Err() == nil {
			if _, tree, err := a.health(); err == nil { // none may run at the moment
				most = max(most, uint64(tree["heap_bytes"].(float64)))
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	stop := func() { cancel(); done.Wait() }
	a.t.Cleanup(stop)
	return func() uint64 { stop(); return most }
}

// removeLibraries removes the files that killed attackers left: as long as they
// are there they may be used again.
func (a *arena) removeLibraries() {
	a.t.Helper()
	dirs, err := filepath.Glob("/tmp/libraries*")
	for _, dir := range dirs {
		err = errors.Join(err, os.RemoveAll(dir))
	}
	if err != nil {
		a.t.Fatal(err)
	}
}

// shared is how much of a budget is used, and how often some was refused.
type shared struct{ used, refused float64 }

func (a *arena) budget(name string) (s shared) {
	a.t.Helper()
	for _, b := range a.tree("/v1/health")["budgets"].([]any) {
		if b := b.(map[string]any); b["name"] == name {
			return shared{b["used"].(float64), b["refused"].(float64)}
		}
	}
	a.t.Fatalf("there is no budget %s", name)
	return s
}

// watchProgram starts a program of root's that allocates, and waits until ttmond
// watches it: all it does from then on is known.
func (a *arena) watchProgram(watching bool) {
	a.t.Helper()
	if !watching {
		return
	}
	c := startAllocating(a.t.(*testing.T))
	path := fmt.Sprintf("/v1/processes/%d/blocks", c.pid())
	a.await("root's program to be watched", func() bool { status, _ := a.get(path); return status == http.StatusOK })
	c.do("make %d 5", 1<<20)
	c.do("take 64")
	p := a.tree(path)["process"].(map[string]any)
	pool := p["allocators"].([]any)[0].(map[string]any)["pools"].([]any)[0].(map[string]any)
	if blocks := pool["blocks"].([]any); len(blocks) != 1 || pool["exact"] != true || p["lost_events"] != 0.0 {
		a.t.Errorf("root's program: %v", p)
	}
}

// Users follow their own allocations in masses, and do not read: root is still
// sent all of them.
func TestHostileFollowers(t *testing.T) {
	hermetic.Long(t)
	a := newArena(t)
	a.begin()
	if st := a.watchState(); st["state"] != "on" {
		t.Skipf("the kernel does not let us watch: %v", st["reason"])
	}
	for uid := range 2 {
		a.play(60000+uid, "followers")
	}
	a.await("followers to be refused", func() bool { return strings.Contains(a.current.log.String(), "budget=api_followers") })
	var stream *apiclient.Changes
	a.await("a place for root", func() (ok bool) {
		var err error
		stream, err = apiclient.FollowChanges(t.Context(), a.api)
		return err == nil
	})
	defer stream.Close()
	told := map[int]bool{} // by pid
	go func() {            // Next waits as long as it takes
		select {
		case <-t.Context().Done():
		case <-time.After(limit):
			stream.Close()
		}
	}()
	for len(told) < 2 {
		b, err := stream.Next()
		if err != nil {
			t.Fatalf("received %v only, then %v: %v\n%s", told, err, a.watchState(), a.current.log)
		}
		for _, s := range b.States {
			told[s.PID] = true
		}
	}
	a.settle()
}

// An attacker occupies and locks all the paths it can reach, while ttmond is
// stopped, started and taken over.
func TestHostilePaths(t *testing.T) {
	a := newArena(t)
	a.begin()
	for uid := range 2 {
		a.play(60000+uid, "paths")
	}
	for range 2 {
		a.takeOver()
		a.stop()
		a.start()
	}
	a.takeOver()
	// The allocation socket may be the attacker's by now: then old clients
	// cannot report, and nothing else has happened.
	a.healthy("health")
	a.stopView()
	a.viewer.Wait()
	a.rootIn.Close()
	if line, err := a.rootOut.ReadString('\n'); !strings.HasPrefix(line, "worst") {
		t.Errorf("root's workload died: %q %v %s", line, err, a.rootErr)
	}
	held := func() float64 {
		for _, p := range a.tree("/v1/processes")["processes"].([]any) {
			p := p.(map[string]any)
			if p["pid"] == float64(a.root.Process.Pid) {
				return p["devices"].([]any)[0].(map[string]any)["now"].(map[string]any)["dram_bytes"].(float64)
			}
		}
		return 0
	}
	a.await("root's workload in the account", func() bool { return held() == rootBytes })
}

// A file at the path of the allocation socket blocks only that socket.
func TestOccupiedAllocSocket(t *testing.T) {
	for name, occupy := range map[string]func(string) error{
		"directory": func(p string) error { return errors.Join(os.Mkdir(p, 0o777), os.WriteFile(p+"/x", nil, 0o600)) },
		"fifo":      func(p string) error { return unix.Mkfifo(p, 0o666) },
		"link":      func(p string) error { return os.Symlink("/etc/passwd", p) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHost(t)
			if err := occupy(h.alloc); err != nil {
				t.Fatal(err)
			}
			i := h.start()
			// A busy machine may make it warn of something else, too.
			w := h.tree("/v1/health")["warnings"].([]any)
			if !slices.ContainsFunc(w, func(w any) bool { return w.(map[string]any)["part"] == "alloc_socket" }) {
				t.Errorf("health warns of %v", w)
			}
			if err := os.RemoveAll(h.alloc); err != nil {
				t.Fatal(err)
			}
			h.await("the socket", func() bool { return strings.Contains(i.log.String(), "allocation socket bound") })
			h.awaitSums(0, sums{})
		})
	}
}

// A configuration that has a mistake in it by now does not matter to a stop.
func TestStopWithABrokenConfiguration(t *testing.T) {
	h := newHost(t)
	config := filepath.Join(h.dir, "ttmond.toml")
	if err := os.WriteFile(config, []byte("[log]\nlevel = \"info\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.extraArgs = append(h.extraArgs, "--config", config)
	i := h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	if err := os.WriteFile(config, []byte("[log\nlevle"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := i.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "reload failed; continuing as before") })
	h.stop()
	if got := c.do("alloc 0 4194368 1 0"); got != "ok" {
		t.Fatalf("report after the stop: %q", got)
	}
	if err := os.WriteFile(config, []byte("[log]\nlevel = \"debug\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start()
	h.awaitSums(0, sums{dram: 1001})
}

// Where no keeper can be started, the process that was told to stop keeps the
// connections itself, and the next one takes over from it.
func TestStopWithoutAKeeper(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	copied := filepath.Join(h.dir, "ttmond")
	// By another process: a program that is open for writing cannot be executed, and
	// processes that other tests start meanwhile inherit what is open in this one.
	if out, err := exec.Command("cp", program(t), copied).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	h.wrapper = []string{"sh", "-c", `shift; exec "$0" "$@"`, copied}
	i := h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	if err := os.Chmod(copied, 0o600); err != nil { // no user can run it any more
		t.Fatal(err)
	}
	h.wrapper = nil
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "staying until they close") })
	for k := range 5 {
		if got := c.do("alloc 0 %d 1 0", 8388608+64*k); got != "ok" {
			t.Fatalf("report to a ttmond that could not leave a keeper: %q", got)
		}
	}
	h.start() // takes over by itself
	h.await("the old one to end", i.ended)
	h.awaitSums(0, sums{dram: 1005})
}

// No client waits for a service manager that does not listen.
func TestBusyServiceManager(t *testing.T) {
	h := newHost(t)
	path := filepath.Join(h.dir, "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // it never reads
	fillQueue(t, path)
	h.extraEnviron = append(h.extraEnviron, "NOTIFY_SOCKET="+path, "WATCHDOG_USEC=400000", "TTMOND_FDSTORE=1")
	h.start()
	var clients []*client
	for k := range 20 {
		cl := h.cpp(144)
		cl.do("alloc %d 4096 10 0", k%2)
		clients = append(clients, cl)
	}
	h.awaitSums(0, sums{dram: 100})
	h.await("the warning", func() bool {
		for _, w := range h.tree("/v1/health")["warnings"].([]any) {
			if w.(map[string]any)["part"] == "systemd" {
				return true
			}
		}
		return false
	})
	for _, cl := range clients {
		cl.kill()
	}
	h.awaitSums(0, sums{})
}

// fillQueue sends to a datagram socket until its queue is full: until a sender
// cannot send its first message. One that has sent many is stopped by its own
// buffer.
func fillQueue(t *testing.T, path string) {
	t.Helper()
	for sent := true; sent; {
		fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
		if err != nil {
			t.Fatal(err)
		}
		for sent = false; unix.Sendto(fd, []byte("X=1"), 0, &unix.SockaddrUnix{Name: path}) == nil; {
			sent = true
		}
		unix.Close(fd)
	}
}

// A limit that was set holds after a takeover.
func TestLimitAfterTakeover(t *testing.T) {
	a := newArena(t)
	a.begin()
	a.play(60000, "buffers")
	full := func() bool { return strings.Contains(a.current.log.String(), "buffer limit reached") }
	a.await("a full account", full)
	for range 2 {
		a.takeOver()
		a.await("a full account after the takeover", full)
	}
	for _, b := range a.tree("/v1/health")["budgets"].([]any) {
		if b := b.(map[string]any); b["name"] == "buffers" && (b["limit"] != float64(arenaBuffers) || b["used"].(float64) > arenaBuffers/4+600) {
			t.Errorf("budget %v", b)
		}
	}
	a.settle()
}

// A process cannot hold more than the largest chip of the host has; what it
// says beyond is counted. (Who may speak for which board is collect's.)
func TestInventedMemory(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("n300") // two chips of 12 GiB
	h.start()
	h.await("a snapshot", func() bool { return h.tree("/v1/health")["snapshot_age_s"] != nil })
	c := h.cpp(144)
	for k := range 64 {
		c.do("alloc 0 %d %d 0", 1<<32+64*k, uint64(256)<<30)
	}
	for k := range 20 {
		c.do("alloc 0 %d %d 0", 1<<40+64*k, uint64(1)<<30)
	}
	c.do("alloc 1 64 1000 0")
	h.awaitSums(1, sums{dram: 1000})
	h.awaitSums(0, sums{dram: 12 << 30})
	p := h.tree("/v1/processes")["processes"].([]any)[0].(map[string]any)
	if n := p["counters"].(map[string]any)["over_capacity"]; n != 64.0+8 {
		t.Errorf("%v reports were refused, want 72", n)
	}
}
