package e2e

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/sim"
	"github.com/ttmon/ttmon/internal/model"
)

// daemon is a ttmond inside a simulated host.
type daemon struct {
	t          *testing.T
	host       *sim.Host
	api, alloc string
}

// startDaemon runs the real ttmond until the test ends.
func startDaemon(t *testing.T, h *sim.Host, args ...string) *daemon {
	t.Helper()
	return startDaemonBy(t, h, []string{filepath.Join(bin, "ttmond")}, args...)
}

// startDaemonBy is startDaemon by way of another program, which is then ttmond.
func startDaemonBy(t *testing.T, h *sim.Host, program []string, args ...string) *daemon {
	t.Helper()
	dir := t.TempDir()
	for _, made := range []string{dir, filepath.Dir(dir)} { // other users are to reach the sockets
		if err := os.Chmod(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	d := &daemon{t: t, host: h, api: filepath.Join(dir, "api"), alloc: filepath.Join(dir, "alloc")}
	own := append(program[1:len(program):len(program)], "--socket", d.api, "--alloc-socket", d.alloc, "--state-dir", filepath.Join(dir, "ttmond"))
	cmd := h.Command(context.Background(), program[0], append(own, args...)...) // t.Context ends before it may
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var failed error
	ended := make(chan struct{})
	go func() { failed = cmd.Wait(); close(ended) }()
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		if <-ended; failed != nil {
			t.Errorf("ttmond: %v\n%s", failed, log.String())
		}
	})
	for runIn(t, h, "smi", "--daemon", d.api, "-L").code != 0 {
		select {
		case <-ended:
			t.Fatal("ttmond ended")
		case <-time.After(20 * time.Millisecond):
		}
	}
	return d
}

// startServer runs the real ttmon-server beside a ttmond until the test ends.
func (d *daemon) startServer(args ...string) {
	d.t.Helper()
	dir := filepath.Dir(d.api)
	cmd := d.host.Command(context.Background(), filepath.Join(bin, "ttmon-server"), append([]string{
		"--daemon", d.api, "--socket", filepath.Join(dir, "server.sock"), "--state-dir", filepath.Join(dir, "state"), "--listen", "off",
	}, args...)...)
	var log bytes.Buffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		d.t.Fatal(err)
	}
	d.t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil && !endedBySIGTERM(cmd) {
			d.t.Errorf("ttmon-server: %v\n%s", err, log.String())
		}
	})
}

// endedBySIGTERM reports whether a server was ended before it could handle the signal:
// the test was over, or skipped, before the server had begun.
func endedBySIGTERM(cmd *exec.Cmd) bool {
	status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGTERM
}

// awaitSeries waits until the server's history has that many series of a metric.
func (d *daemon) awaitSeries(metric string, n int) {
	d.t.Helper()
	client := d.client(filepath.Join(filepath.Dir(d.api), "server.sock"))
	target := "http://server/prometheus/api/v1/query?" + url.Values{"query": {metric}}.Encode()
	for limit := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		body, err := getBody(client, target)
		if strings.Count(body, `"metric"`) == n {
			return
		}
		if time.Now().After(limit) {
			d.t.Fatalf("the server never had %d series of %s: %v\n%s", n, metric, err, body)
		}
	}
}

// client calls an API at a socket, until the test ends.
func (d *daemon) client(socket string) *http.Client {
	c := &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}}
	d.t.Cleanup(c.CloseIdleConnections)
	return c
}

func getBody(c *http.Client, target string) (string, error) {
	resp, err := c.Get(target)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// until asks the daemon as a user until something holds.
func (d *daemon) until(what string, ask func(args ...string) result, holds func(*model.Snapshot) bool) *model.Snapshot {
	d.t.Helper()
	for limit := time.Now().Add(5 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		r := ask("smi", "--json", "--daemon", d.api)
		s, err := wire.Decode([]byte(r.out))
		if err == nil && holds(s) {
			return s
		}
		if time.Now().After(limit) {
			d.t.Fatalf("it never came to this: %s; the last answer: %v\n%s%s", what, err, r.out, r.err)
		}
	}
}

// TestDaemonShowsAll: a program that reports on the old socket, one that
// accounts in shared memory, both root's; nobody sees both, and only because
// a ttmond runs.
func TestDaemonShowsAll(t *testing.T) {
	t.Parallel()
	if !alone(t) {
		return
	}
	h := start(t, sim.Options{Boards: "p150a,n150"})
	d := startDaemon(t, h)
	ctl(t, h, "run", "name=old,devices=0,kind=report,dram=3G,l1=20M,kernel=400K,buffers=50,socket="+d.alloc)
	ctl(t, h, "run", "name=new,devices=1,kind=metal,dram=512M,l1=8M")
	nobody := func(args ...string) result { return asNobody(t, h, args...) }
	s := d.until("both hold their memory", nobody, func(s *model.Snapshot) bool {
		return len(byName(s, "old")) == 1 && len(byName(s, "new")) == 1 &&
			device(t, s, 0).Memory.Pools[model.DRAM].Used.Exactly(3<<30) &&
			only(t, s, "new").Devices[0].Source != ""
	})
	if s.Source != model.Daemon {
		t.Errorf("source %s", s.Source)
	}
	use := only(t, s, "old").Devices[0]
	wantBytes(t, "DRAM of the reporting program", use.Memory[model.DRAM], 3<<30)
	wantBytes(t, "L1 of the reporting program", use.Memory[model.L1], 20<<20)
	wantBytes(t, "kernels of the reporting program", use.Memory[model.Kernel], 400<<10)
	if use.Source != "socket" || use.Device != 0 {
		t.Errorf("source %q, device %d", use.Source, use.Device)
	}
	use = only(t, s, "new").Devices[0]
	wantBytes(t, "DRAM of the accounting program", use.Memory[model.DRAM], 512<<20)
	if use.Source != "shm" || use.Device != 1 {
		t.Errorf("source %q, device %d", use.Source, use.Device)
	}
	r := nobody("smi", "--daemon", d.api, "--query-apps=process_name,used_memory", "--format=csv,noheader,nounits")
	for _, want := range []string{"old, 3072", "new, 512"} {
		if !strings.Contains(r.out, want) {
			t.Errorf("--query-apps does not show %q:\n%s", want, r.out)
		}
	}
	direct, err := wire.Decode([]byte(nobody("smi", "--json", "--direct").out))
	if err != nil {
		t.Fatal(err)
	}
	if m := device(t, direct, 1).Memory.Pools[model.DRAM].Used; m.Known() {
		t.Errorf("an ordinary user reads root's region directly: %+v", m)
	}
	ctl(t, h, "kill", "old")
	d.until("the dead hold nothing", nobody, func(s *model.Snapshot) bool {
		return len(byName(s, "old")) == 0 && device(t, s, 0).Memory.Pools[model.DRAM].Used.Exactly(0)
	})
}

// TestDaemonFound: ttmon finds the daemon by itself, and does without.
func TestDaemonFound(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "n150"})
	d := startDaemon(t, h)
	ask := func(env string, args ...string) model.Origin {
		t.Helper()
		cmd := h.Command(t.Context(), filepath.Join(bin, "ttmon"), append([]string{"smi", "--json"}, args...)...)
		cmd.Env = append(os.Environ(), env)
		s, err := wire.Decode([]byte(finish(t, cmd).out))
		if err != nil {
			t.Fatal(err)
		}
		return s.Source
	}
	runtime := t.TempDir()
	if err := os.MkdirAll(filepath.Join(runtime, "ttmon"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(d.api, filepath.Join(runtime, "ttmon/ttmond.sock")); err != nil {
		t.Fatal(err)
	}
	if got := ask("TTMON_SOCKET=" + d.api); got != model.Daemon {
		t.Errorf("$TTMON_SOCKET: %s", got)
	}
	if got := ask("XDG_RUNTIME_DIR=" + runtime); got != model.Daemon {
		t.Errorf("$XDG_RUNTIME_DIR: %s", got)
	}
	if got := ask("TTMON_SOCKET="+d.api, "--direct"); got != model.Direct {
		t.Errorf("--direct: %s", got)
	}
	if got := ask("XDG_RUNTIME_DIR=" + t.TempDir()); got != model.Direct {
		t.Errorf("no daemon there: %s", got)
	}
	if r := runIn(t, h, "smi", "--daemon", "/nowhere"); r.code != 1 || !strings.Contains(r.err, "/nowhere") || strings.Count(r.err, "\n") != 1 {
		t.Errorf("a daemon that is not there: exit code %d, %q", r.code, r.err)
	}
}

// TestDaemonOfAnotherHost: a ttmond that watches the real host is not asked
// about a simulated one.
func TestDaemonOfAnotherHost(t *testing.T) {
	outer := start(t, sim.Options{Boards: "n150,n150"})
	d := startDaemon(t, outer)
	tree := t.TempDir()
	cmd := outer.Command(t.Context(), filepath.Join(bin, "ttmon"), "smi", "--json", "--root", tree, "--daemon", d.api)
	if r := finish(t, cmd); r.code != 1 || !strings.Contains(r.err, "another host") {
		t.Errorf("exit code %d, %q", r.code, r.err)
	}
}
