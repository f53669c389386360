package web

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/lab/sim"
)

// node is a simulated host with a ttmond that serves the page.
type node struct {
	testing.TB
	host       *sim.Host
	dir        string
	url        string // of the page, without a slash at the end
	api, alloc string
	cmd        *exec.Cmd // ttmond
	log        bytes.Buffer
	server     *exec.Cmd
	serverLog  bytes.Buffer
	args       []string // more arguments of ttmon-server
	daemon     []string // and of ttmond
}

func newNode(t testing.TB, o sim.Options, args ...string) *node {
	t.Helper()
	return newNodeWith(t, o, nil, args...)
}

// newNodeWith is newNode with arguments for ttmond; args are ttmon-server's.
func newNodeWith(t testing.TB, o sim.Options, daemon []string, args ...string) *node {
	t.Helper()
	programs.Depend(t)
	browser(t) // skips where there is none
	o.Exe = filepath.Join(bin, "ttmon-sim")
	h, err := sim.Start(o)
	if no, ok := errors.AsType[*sim.NoPrivilegeError](err); ok {
		t.Skipf("a simulated host needs %s, which is missing here", no.Missing)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(); err != nil {
			t.Errorf("closing the simulated host: %v", err)
		}
	})
	dir := t.TempDir()
	for _, made := range []string{dir, filepath.Dir(dir)} { // other users are to reach the sockets
		if err := os.Chmod(made, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	n := &node{TB: t, host: h, dir: dir, api: filepath.Join(dir, "api"), alloc: filepath.Join(dir, "alloc"), args: args, daemon: daemon}
	n.start("127.0.0.1:0")
	t.Cleanup(n.stop)
	return n
}

// start runs ttmond and ttmon-server, and finds out where the page is served.
func (n *node) start(listen string) {
	n.Helper()
	n.cmd = n.host.Command(context.Background(), filepath.Join(bin, "ttmond"), append([]string{
		"--socket", n.api, "--alloc-socket", n.alloc, "--state-dir", filepath.Join(n.dir, "ttmond"),
	}, n.daemon...)...)
	n.server = n.host.Command(context.Background(), filepath.Join(bin, "ttmon-server"), append([]string{
		"--daemon", n.api, "--socket", filepath.Join(n.dir, "server.sock"), "--state-dir", filepath.Join(n.dir, "state"), "--listen", listen,
	}, n.args...)...)
	n.cmd.Stderr, n.server.Stderr = &n.log, &n.serverLog
	for _, cmd := range []*exec.Cmd{n.cmd, n.server} {
		if err := cmd.Start(); err != nil {
			n.Fatal(err)
		}
	}
	for end := time.Now().Add(timeout); ; time.Sleep(50 * time.Millisecond) {
		if address, code := n.ttmon("web", "--public", "--daemon", n.api); code == 0 {
			n.url = strings.TrimSuffix(strings.TrimSpace(address), "/")
			return
		}
		if time.Now().After(end) {
			n.Fatalf("no page is served:\n%s%s", n.log.String(), n.serverLog.String())
		}
	}
}

func (n *node) stop() {
	if n.cmd == nil {
		return
	}
	stopped.Store(n.url, true)
	for _, cmd := range []*exec.Cmd{n.server, n.cmd} {
		cmd.Process.Signal(syscall.SIGTERM)
		if err := cmd.Wait(); err != nil {
			n.Errorf("%s: %v\n%s%s", cmd.Path, err, n.log.String(), n.serverLog.String())
		}
	}
	n.cmd, n.server = nil, nil
}

// ttmon runs ttmon on the host.
func (n *node) ttmon(args ...string) (out string, code int) {
	n.Helper()
	ctx, cancel := context.WithTimeout(n.Context(), timeout)
	defer cancel()
	cmd := n.host.Command(ctx, filepath.Join(bin, "ttmon"), args...)
	b, err := cmd.Output()
	if exit := new(exec.ExitError); err != nil && !errors.As(err, &exit) {
		n.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

// ctl makes something happen on the host.
func (n *node) ctl(args ...string) string {
	n.Helper()
	if strings.Contains(strings.Join(args, " "), "user=") {
		hermetic.NeedOtherUsers(n)
	}
	out, err := n.host.Ctl(args...)
	if err != nil {
		n.Fatalf("ctl %v: %v", args, err)
	}
	return strings.TrimSpace(out)
}

// ticket is the address of the page for the user who runs the test.
func (n *node) ticket() string {
	n.Helper()
	out, code := n.ttmon("web", "--daemon", n.api)
	if code != 0 {
		n.Fatalf("ttmon web ends with %d", code)
	}
	return strings.TrimSpace(out)
}
