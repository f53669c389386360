package main

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// arena is a host on which somebody means harm: a real ttmond under limits,
// root's workload that reports, a viewer that asks, and attackers of other
// users.
type arena struct {
	*host
	t        testing.TB
	tools    string // where every user finds the attackers' program
	cgroup   string
	root     *exec.Cmd
	rootIn   io.WriteCloser
	rootOut  *bufio.Reader
	rootErr  *syncBuffer
	viewer   sync.WaitGroup
	stopView context.CancelFunc
	slowest  time.Duration // of the viewer's questions; read after stopView
	viewErr  error
}

// Limits of the daemon in an arena: those of the unit, smaller, so that they
// are reached.
const (
	arenaMemory      = 512 << 20
	arenaDescriptors = 4096
	arenaBuffers     = 1 << 20
)

// patienceOfUsers is what counts as a failure: a workload or a viewer that
// waits so long would be noticed. What is aimed at is far less; make bench
// shows it. It is large because the machine may be busy with other things.
const patienceOfUsers = 3 * time.Second

func newArena(t testing.TB) *arena {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	a := &arena{host: newHost(t), t: t}
	// The allocation socket is where everybody may write, the API's is not.
	shared, err := os.MkdirTemp("", "shared")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(shared) })
	if err := errors.Join(os.Chmod(shared, 0o777|os.ModeSticky), os.Chmod(a.dir, 0o755), os.Chmod(filepath.Dir(program(t)), 0o755)); err != nil {
		t.Fatal(err)
	}
	a.alloc = filepath.Join(shared, "alloc.sock")
	config := filepath.Join(a.dir, "ttmond.toml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "[alloc]\nmax_buffers = %d\n", arenaBuffers), 0o600); err != nil {
		t.Fatal(err)
	}
	a.extraArgs = append(a.extraArgs, "--config", config)
	a.limit()
	a.tools = t.TempDir()
	if err := os.Chmod(a.tools, 0o755); err != nil {
		t.Fatal(err)
	}
	for dir := filepath.Dir(a.tools); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
	return a
}

// limit has ttmond started below a memory cgroup and with few descriptors.
func (a *arena) limit() {
	a.t.Helper()
	a.extraEnviron = append(a.extraEnviron, "GOMEMLIMIT=300MiB")
	a.wrapper = []string{"sh", "-c", `ulimit -n "$1"; [ -z "$2" ] || echo $$ >"$2/cgroup.procs" || exit 99; shift 2; exec "$@"`, "sh", fmt.Sprint(arenaDescriptors)}
	for _, base := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		dir := fmt.Sprintf("%s/ttmond-test-%d-%d", base, os.Getpid(), time.Now().UnixNano())
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			if os.WriteFile(filepath.Join(dir, name), []byte(strconv.Itoa(arenaMemory)), 0o600) == nil {
				a.cgroup = dir
			}
		}
		if a.cgroup != "" {
			break
		}
		_ = os.Remove(dir)
	}
	if a.cgroup == "" {
		a.t.Log("no memory cgroup can be made here: the memory limit is not tested")
	} else {
		a.t.Cleanup(func() {
			for range 100 { // until the last process is gone
				if os.Remove(a.cgroup) == nil {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	a.wrapper = append(a.wrapper, a.cgroup)
}

// memory is what the daemon's cgroup has used at most; 0 if that is not known.
func (a *arena) memory() uint64 {
	for _, name := range []string{"memory.max_usage_in_bytes", "memory.peak"} {
		if b, err := os.ReadFile(filepath.Join(a.cgroup, name)); err == nil {
			n, _ := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
			return n
		}
	}
	return 0
}

// play starts a process of a user that runs an attack, and returns when it is
// at work.
func (a *arena) play(uid int, attack string) *exec.Cmd {
	a.t.Helper()
	bin := filepath.Join(a.tools, programName(attack))
	if _, err := os.Stat(bin); err != nil {
		self, err := os.ReadFile("/proc/self/exe")
		if err != nil {
			a.t.Fatal(err)
		}
		if err := os.WriteFile(bin, self, 0o755); err != nil {
			a.t.Fatal(err)
		}
	}
	cmd := exec.Command(bin)
	cmd.Dir = "/"
	cmd.Env = []string{attackVar + "=" + attack, "ATTACK_ALLOC=" + a.alloc, "ATTACK_API=" + a.api, "PATH=/usr/bin:/bin", "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}, Setpgid: true,
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { a.end(cmd) })
	line, err := bufio.NewReader(out).ReadString('\n')
	if line != "ready\n" {
		a.t.Fatalf("attack %s: %q, %v", attack, line, err)
	}
	go io.Copy(io.Discard, out)
	return cmd
}

// end ends an attacker and all of its children.
func (a *arena) end(cmd *exec.Cmd) {
	_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
	_ = cmd.Wait()
}

// begin starts the daemon, root's workload and the viewer.
func (a *arena) begin() {
	a.t.Helper()
	a.start()
	a.work()
	ctx, cancel := context.WithCancel(context.Background())
	a.stopView = cancel
	a.viewer.Go(func() { a.view(ctx) })
	a.t.Cleanup(func() { cancel(); a.viewer.Wait() })
}

// work starts root's workload.
func (a *arena) work() {
	a.t.Helper()
	a.root = exec.Command("/proc/self/exe")
	a.root.Env = []string{attackVar + "=reporter", "ATTACK_ALLOC=" + a.alloc}
	a.rootErr = new(syncBuffer)
	a.root.Stderr = a.rootErr
	var err error
	if a.rootIn, err = a.root.StdinPipe(); err != nil {
		a.t.Fatal(err)
	}
	out, err := a.root.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := a.root.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = a.root.Process.Kill()
		_ = a.root.Wait()
	})
	a.rootOut = bufio.NewReader(out)
	if line, _ := a.rootOut.ReadString('\n'); line != "ready\n" {
		a.t.Fatalf("root's workload says %q %s", line, a.rootErr)
	}
}

// view asks for root's device again and again, on one connection, as a viewer does.
func (a *arena) view(ctx context.Context) {
	for ctx.Err() == nil {
		start := time.Now()
		held, err := ask(a.alloc, rootDevice)
		if err == nil && held > rootBytes {
			err = fmt.Errorf("root's device holds %d bytes, and its workload never has more than %d: %w", held, rootBytes, errWrongSum)
		}
		// While ttmond is stopped nobody answers, and somebody else may have
		// the path; that is no failure.
		if errors.Is(err, errWrongSum) || errors.Is(err, syscall.EAGAIN) { // EAGAIN: no answer in time
			a.viewErr = err
			return
		}
		if err == nil {
			a.slowest = max(a.slowest, time.Since(start))
		}
		select {
		case <-ctx.Done():
		case <-time.After(5 * time.Millisecond):
		}
	}
}

var errWrongSum = errors.New("wrong sum")

// ask asks how much DRAM a device holds.
func ask(alloc string, dev int32) (uint64, error) {
	fd, err := place{alloc: alloc}.dialRaw()
	if err != nil {
		return 0, err
	}
	defer unix.Close(fd)
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: 10})
	if err := sendAll(fd, frame(144, 3, dev, 0, 0, 0, 0)); err != nil {
		return 0, err
	}
	b, n := make([]byte, 144), 0
	for n < len(b) {
		k, err := unix.Read(fd, b[n:])
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return 0, err
		}
		if k == 0 {
			return 0, io.EOF
		}
		n += k
	}
	return binary.LittleEndian.Uint64(b[40:]), nil
}

// health asks root's question.
func (a *arena) health() (status int, tree map[string]any, err error) {
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (c net.Conn, err error) {
			for end := time.Now().Add(patienceOfUsers); time.Now().Before(end); time.Sleep(time.Millisecond) {
				// Go does not wait for a place in the queue, as other clients do.
				if c, err = (&net.Dialer{}).DialContext(ctx, "unix", a.api); !errors.Is(err, syscall.EAGAIN) {
					break
				}
			}
			return c, err
		},
	}}
	r, err := client.Get("http://ttmond/v1/health")
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	return r.StatusCode, tree, json.NewDecoder(r.Body).Decode(&tree)
}

// settle ends the attack and asserts what was promised: the daemon lives, the
// workload lives and never waited long, its totals are exact, health is true.
func (a *arena) settle() {
	a.t.Helper()
	if status, tree, err := a.health(); err != nil || status != http.StatusOK {
		a.t.Errorf("health under attack: status %d, %v: %v", status, tree["problems"], err)
	} else {
		loop := tree["loop"].(map[string]any)
		a.t.Logf("loop: worst turn %.1f ms, worst step %.1f ms, p99 %.2f ms; memory at most %d MiB", 1000*loop["worst_turn_s"].(float64), 1000*loop["worst_step_s"].(float64),
			1000*loop["turn_p99_s"].(float64), a.memory()>>20)
	}
	a.stopView()
	a.viewer.Wait()
	if a.viewErr != nil {
		a.t.Errorf("the viewer: %v", a.viewErr)
	}
	a.rootIn.Close()
	line, err := a.rootOut.ReadString('\n')
	var worst time.Duration
	var reports int
	if _, scanErr := fmt.Sscanf(line, "worst %d reports %d", &worst, &reports); scanErr != nil {
		a.t.Fatalf("root's workload died: %q %v %s", line, err, a.rootErr)
	}
	a.t.Logf("root's workload: %d reports, the slowest took %v; the viewer's slowest answer %v", reports, worst, a.slowest)
	if worst > patienceOfUsers || a.slowest > patienceOfUsers {
		a.t.Errorf("root's workload waited %v, the viewer %v", worst, a.slowest)
	}
	if a.current.ended() {
		a.t.Fatalf("ttmond has ended: %v", a.current.err)
	}
	end := time.Now().Add(20 * time.Second)
	for held, err := ask(a.alloc, rootDevice); held != rootBytes; held, err = ask(a.alloc, rootDevice) {
		if time.Now().After(end) {
			a.t.Fatalf("root's device holds %d bytes, want exactly %d: %v", held, rootBytes, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// Each attack, by a user of its own, three at a time.
func TestHostile(t *testing.T) {
	for _, group := range []struct {
		attacks []string
		expect  []string // in the daemon's log
	}{
		{attacks: []string{"heirs", "forks", "deaths"}},
		{attacks: []string{"dumps", "mappings", "noise"}},
		{attacks: []string{"devices", "device-zero", "flood"}},
		{attacks: []string{"slow-reads", "unread", "api"}, expect: []string{"budget=api_", "budget=unread_bytes"}},
		{attacks: []string{"connections", "buffers", "connects"}, expect: []string{"budget=descriptors", "more than is kept account of"}},
	} {
		t.Run(strings.Join(group.attacks, ","), func(t *testing.T) {
			a := newArena(t)
			a.begin()
			for k, name := range group.attacks {
				a.play(60000+k, name)
			}
			time.Sleep(2 * time.Second) // of attack
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

// Somebody occupies and locks all the paths they can reach, while ttmond is
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
	if status, tree, err := a.health(); err != nil || status != http.StatusOK {
		t.Errorf("health: %d %v %v", status, tree, err)
	}
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

// What is in the place of the allocation socket keeps nobody from the rest.
func TestOccupiedAllocSocket(t *testing.T) {
	for name, occupy := range map[string]func(string) error{
		"directory": func(p string) error { return errors.Join(os.Mkdir(p, 0o777), os.WriteFile(p+"/x", nil, 0o600)) },
		"fifo":      func(p string) error { return unix.Mkfifo(p, 0o666) },
		"link":      func(p string) error { return os.Symlink("/etc/passwd", p) },
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(t)
			if err := occupy(h.alloc); err != nil {
				t.Fatal(err)
			}
			i := h.start()
			if w := h.tree("/v1/health")["warnings"].([]any); len(w) != 1 || w[0].(map[string]any)["part"] != "alloc_socket" {
				t.Errorf("health warns of %v", w)
			}
			if err := os.RemoveAll(h.alloc); err != nil {
				t.Fatal(err)
			}
			h.await("the socket", func() bool { return strings.Contains(i.log.String(), "has become free") })
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
	_ = i.cmd.Process.Signal(syscall.SIGHUP)
	h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "the old one holds") })
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
	h := newHost(t)
	self, err := os.ReadFile(program(t))
	if err != nil {
		t.Fatal(err)
	}
	copied := filepath.Join(h.dir, "ttmond")
	if err := os.WriteFile(copied, self, 0o755); err != nil {
		t.Fatal(err)
	}
	h.wrapper = []string{"sh", "-c", `shift; exec "$0" "$@"`, copied}
	i := h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	if err := os.Chmod(copied, 0o600); err != nil { // nobody can run it any more
		t.Fatal(err)
	}
	h.wrapper = nil
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	h.await("the complaint", func() bool { return strings.Contains(i.log.String(), "keeps them itself") })
	for k := range 5 {
		if got := c.do("alloc 0 %d 1 0", 8388608+64*k); got != "ok" {
			t.Fatalf("report to a ttmond that could not leave a keeper: %q", got)
		}
	}
	h.start() // takes over by itself
	h.await("the old one to end", i.ended)
	h.awaitSums(0, sums{dram: 1005})
}

// A service manager that does not listen keeps nobody waiting.
func TestBusyServiceManager(t *testing.T) {
	h := newHost(t)
	path := filepath.Join(h.dir, "notify")
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close() // it never reads
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

// A limit that was set holds after a takeover.
func TestLimitAfterTakeover(t *testing.T) {
	a := newArena(t)
	a.begin()
	a.play(60000, "buffers")
	full := func() bool { return strings.Contains(a.current.log.String(), "more than is kept account of") }
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

// The loop that is stuck is not called healthy. SIGSTOP stops everything, so
// here only the loop is: by a log that blocks it. There is none; so the health
// of the API is asked while a takeover has paused the loop.
func TestHealthTellsTheTruth(t *testing.T) {
	h := newHost(t)
	h.start()
	conn := pausedBySuccessor(t, h)
	status, tree, err := (&arena{host: h}).health()
	if err != nil || status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(tree["problems"]), "loop") {
		t.Errorf("status %d, problems %v, %v", status, tree["problems"], err)
	}
	conn.Close()
	h.await("health", func() bool {
		status, _, _ := (&arena{host: h}).health()
		return status == http.StatusOK
	})
}

// A process cannot hold more than the largest chip of the host has; what it
// says beyond is counted. (Who may speak for which board is collect's.)
func TestInventedMemory(t *testing.T) {
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
