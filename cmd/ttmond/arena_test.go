package main

import (
	"bufio"
	"bytes"
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
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
)

// arena is a host with attackers: a real ttmond under limits,
// root's workload that reports, a viewer that asks, and attackers of other
// users.
type arena struct {
	*host
	t         testing.TB
	tools     string // where every user finds the attackers' program
	cgroup    string
	root      *exec.Cmd
	rootIn    io.WriteCloser
	rootOut   *bufio.Reader
	rootErr   *syncBuffer
	viewer    sync.WaitGroup
	stopView  context.CancelFunc
	answers   []time.Duration // how long the viewer waited; read after stopView
	viewErr   error
	absences  atomic.Int64 // begins and ends of times at which no ttmond runs
	figures   figures
	timeout   time.Duration // of the workload and the viewer
	memoryMax int64
	enter     []string // a command that runs others where the daemon is; nil: it is here
	apiThere  string   // the API's socket there
	played    attackers
}

// attackers are those that have ended of themselves: an attack that does not run
// proves nothing.
type attackers struct {
	mu    sync.Mutex
	ended []string
}

func (l *attackers) add(attack string, said []byte, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = append(l.ended, fmt.Sprintf("%s: %v: %s", attack, err, bytes.TrimSpace(said)))
}

func (l *attackers) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.ended, "\n")
}

// await waits for something that must come, and says what is known if it does not.
func (a *arena) await(what string, ok func() bool) {
	a.t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(2 * time.Millisecond) {
		gone := a.current != nil && a.current.ended() // then nothing will come any more
		if gone || time.Now().After(end) {
			a.t.Fatalf("timed out waiting for %s; ttmond has exited: %v\nattackers that have ended:\n%s\nthe log ends:\n%s", what, gone, &a.played, last(a.current.log.String(), 16<<10))
		}
	}
}

// last is the end of a text.
func last(text string, n int) string { return text[max(0, len(text)-n):] }

// figures are what an attack did to the daemon, to root's workload and to the
// viewer.
type figures struct {
	stall, stallP99        time.Duration // of the workload's reports
	answer, answerP99, mid time.Duration // of the viewer's questions
	reports, mebibytes     int
}

// Limits of the daemon in an arena: those of the unit, smaller, so that they
// are reached.
const (
	arenaMemory      = 512 << 20
	arenaDescriptors = 4096
	arenaBuffers     = 1 << 20 / fewer
)

// userTimeout is what counts as a failure where nothing else runs (make
// soak, make bench): a workload or a viewer that waits so long would be
// noticed. What is aimed at is far less; make bench shows it. Among other
// tests the machine may be busy, and only a wait that never ends is a failure.
const userTimeout = 3 * time.Second

func newArena(t testing.TB) *arena {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root, to play several users")
	}
	a := &arena{t: t, timeout: limit, memoryMax: arenaMemory}
	t.Cleanup(a.removeGroup) // before newHost: it runs after the daemon has been killed
	a.host = newHost(t)
	a.apiThere = a.api
	a.host.root = "/" // ttmond sees the attackers' files, too; this is a host of our own
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
	// A program that allocates fast stays watched.
	a.configure(fmt.Sprintf("[alloc]\nmax_buffers = %d\n[uprobe]\nlimit = 1e7\nmax_blocks = %d\n", arenaBuffers, arenaBlocks))
	a.extraArgs = append(a.extraArgs, "--config", a.config())
	a.limit()
	a.makeTools()
	return a
}

// config is the daemon's configuration file.
func (a *arena) config() string { return filepath.Join(a.dir, "ttmond.toml") }

// configure writes it.
func (a *arena) configure(text string) {
	a.t.Helper()
	if err := os.WriteFile(a.config(), []byte(text), 0o600); err != nil {
		a.t.Fatal(err)
	}
}

// makeTools makes a place where every user finds the attackers' program.
func (a *arena) makeTools() {
	a.t.Helper()
	a.tools = a.t.TempDir()
	if err := os.Chmod(a.tools, 0o755); err != nil {
		a.t.Fatal(err)
	}
	if _, _, err := programs.Allocating(a.tools); err != nil { // for those who follow what it does
		a.t.Fatal(err)
	}
	for dir := filepath.Dir(a.tools); len(dir) > len(os.TempDir()); dir = filepath.Dir(dir) {
		_ = os.Chmod(dir, 0o755)
	}
}

// tool is the program that plays an attack: ours, under a name of its own.
func (a *arena) tool(attack string) string {
	a.t.Helper()
	bin := filepath.Join(a.tools, programName(attack))
	if _, err := os.Stat(bin); err == nil {
		return bin
	}
	copied := filepath.Join(filepath.Dir(program(a.t)), "attacker")
	if err := copySelf(copied); err != nil {
		a.t.Fatal(err)
	}
	if err := os.Link(copied, bin); err != nil {
		a.t.Fatal(err)
	}
	return bin
}

var copying sync.Mutex

// copySelf copies the test program, once: it is large, and there are many
// attackers. Another process does: a program that we have open for writing, if
// only because we forked at that moment, cannot be started.
func copySelf(to string) error {
	copying.Lock()
	defer copying.Unlock()
	if _, err := os.Stat(to); err == nil {
		return nil
	}
	if out, err := exec.Command("cp", fmt.Sprintf("/proc/%d/exe", os.Getpid()), to).CombinedOutput(); err != nil {
		return fmt.Errorf("copying the test program: %w: %s", err, out)
	}
	return os.Chmod(to, 0o755)
}

// limit has ttmond started below a memory cgroup and with few descriptors.
func (a *arena) limit() {
	a.t.Helper()
	a.wrapper = []string{"sh", "-c", `ulimit -n "$1"; [ -z "$2" ] || echo $$ >"$2/cgroup.procs" || exit 99; shift 2; exec "$@"`, "sh", fmt.Sprint(arenaDescriptors)}
	for _, base := range []string{"/sys/fs/cgroup/memory", "/sys/fs/cgroup"} {
		dir := fmt.Sprintf("%s/ttmond-test-%d-%d", base, os.Getpid(), time.Now().UnixNano())
		if os.Mkdir(dir, 0o755) != nil {
			continue
		}
		for _, name := range []string{"memory.limit_in_bytes", "memory.max"} {
			if os.WriteFile(filepath.Join(dir, name), []byte(strconv.FormatInt(a.memoryMax, 10)), 0o600) == nil {
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
	}
	a.wrapper = append(a.wrapper, a.cgroup)
}

// removeGroup removes the daemon's control group when its last process is gone. One
// that stays is a process that the daemon left behind.
func (a *arena) removeGroup() {
	if a.cgroup == "" {
		return
	}
	await(a.t, "the last process of the daemon to exit", func() bool {
		err := os.Remove(a.cgroup)
		return err == nil || errors.Is(err, os.ErrNotExist)
	})
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
	cmd, err := a.tryPlay(uid, attack)
	if err != nil {
		a.t.Fatal(err)
	}
	return cmd
}

// tryPlay is play for an attack that may be refused: its user may have used up
// what users have.
func (a *arena) tryPlay(uid int, attack string) (*exec.Cmd, error) {
	a.t.Helper()
	cmd := exec.Command(a.tool(attack))
	if a.enter != nil {
		line := append(append([]string{}, a.enter...), "setpriv", "--reuid", strconv.Itoa(uid), "--regid", strconv.Itoa(uid), "--clear-groups", "--inh-caps=-all", a.tool(attack))
		cmd = exec.Command(line[0], line[1:]...)
	}
	cmd.Dir = "/"
	cmd.Env = []string{attackVar + "=" + attack, "ATTACK_ALLOC=" + a.alloc, "ATTACK_API=" + a.apiThere, "PATH=/usr/bin:/bin", "GOMAXPROCS=2", "GORACE=atexit_sleep_ms=0"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.enter == nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		a.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() { a.end(cmd) })
	said := bufio.NewReader(out)
	line, err := said.ReadString('\n')
	if line != "ready\n" {
		a.end(cmd)
		return nil, fmt.Errorf("attack %s: %q, %w", attack, line, err)
	}
	go func() { // what it says last is why it has ended
		rest, err := io.ReadAll(io.LimitReader(said, 64<<10))
		if len(rest) > 0 || err == nil {
			a.played.add(attack, rest, err)
		}
		_, _ = io.Copy(io.Discard, said)
	}()
	return cmd, nil
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
	a.watchOver()
}

// watchOver starts root's workload and the viewer.
func (a *arena) watchOver() {
	a.t.Helper()
	a.work()
	ctx, cancel := context.WithCancel(context.Background())
	a.stopView = cancel
	a.viewer.Go(func() { a.view(ctx) })
	a.t.Cleanup(func() { cancel(); a.viewer.Wait() })
}

// work starts root's workload.
func (a *arena) work() {
	a.t.Helper()
	line := append(append([]string{}, a.enter...), a.tool("reporter"))
	a.root = exec.Command(line[0], line[1:]...)
	a.root.Env = []string{attackVar + "=reporter", "ATTACK_ALLOC=" + a.alloc, "PATH=/usr/bin:/bin"}
	a.root.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
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
	a.t.Cleanup(func() { a.end(a.root) })
	a.rootOut = bufio.NewReader(out)
	if line, _ := a.rootOut.ReadString('\n'); line != "ready\n" {
		a.t.Fatalf("root's workload says %q %s", line, a.rootErr)
	}
}

// view asks for root's device again and again, on one connection, as a viewer does.
func (a *arena) view(ctx context.Context) {
	for ctx.Err() == nil {
		start, before := time.Now(), a.absences.Load()
		held, err := ask(a.alloc, rootDevice)
		if err == nil && held > rootBytes {
			err = fmt.Errorf("root's device holds %d bytes, and its workload never has more than %d: %w", held, rootBytes, errWrongSum)
		}
		// While ttmond is stopped there is no answer, and another process may have
		// the path; that is no failure.
		if errors.Is(err, errWrongSum) || errors.Is(err, syscall.EAGAIN) { // EAGAIN: no answer in time
			a.viewErr = err
			return
		}
		if after := a.absences.Load(); err == nil && after == before && after%2 == 0 {
			a.answers = append(a.answers, time.Since(start))
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
	_ = unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: int64(limit / time.Second)})
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
	client := http.Client{Timeout: limit, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (c net.Conn, err error) {
			for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
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

// healthy waits until the daemon says that it is well: on a busy machine it may
// be late at times, and says so.
func (a *arena) healthy(what string) (tree map[string]any) {
	a.t.Helper()
	a.await(what, func() bool {
		status, said, err := a.health()
		if err != nil || status != http.StatusOK {
			a.t.Logf("%s: status %d, %v: %v", what, status, said["problems"], err)
			return false
		}
		tree = said
		return true
	})
	return tree
}

// settle ends the attack and asserts what was promised: the daemon lives, the
// workload lives and never waited long, its totals are exact, health is true.
func (a *arena) settle() {
	a.t.Helper()
	a.healthy("health under attack")
	a.figures = figures{mebibytes: int(a.memory() >> 20)}
	a.stopView()
	a.viewer.Wait()
	if a.viewErr != nil {
		a.t.Errorf("the viewer: %v", a.viewErr)
	}
	a.rootIn.Close()
	line, err := a.rootOut.ReadString('\n')
	f := &a.figures
	if _, scanErr := fmt.Sscanf(line, "worst %d p99 %d reports %d", &f.stall, &f.stallP99, &f.reports); scanErr != nil {
		a.t.Fatalf("root's workload died: %q %v %s", line, err, a.rootErr)
	}
	if n := len(a.answers); n > 0 {
		slices.Sort(a.answers)
		f.mid, f.answerP99, f.answer = a.answers[n/2], a.answers[n*99/100], a.answers[n-1]
	}
	a.t.Logf("%+v", *f)
	if f.stall > a.timeout || f.answer > a.timeout {
		a.t.Errorf("root's workload waited %v, the viewer %v", f.stall, f.answer)
	}
	if a.current != nil && a.current.ended() {
		a.t.Fatalf("ttmond has ended: %v", a.current.err)
	}
	end := time.Now().Add(limit)
	for held, err := ask(a.alloc, rootDevice); held != rootBytes; held, err = ask(a.alloc, rootDevice) {
		if time.Now().After(end) {
			a.t.Fatalf("root's device holds %d bytes, want exactly %d: %v", held, rootBytes, err)
		}
		time.Sleep(5 * time.Millisecond)
	}
}
