//go:build thanos

package thanos

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func port(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// ours makes a program of this repository.
func ours(t *testing.T, dir, name string) string {
	t.Helper()
	out := filepath.Join(dir, name)
	if err := build("../../../..", out, "./cmd/"+name); err != nil {
		t.Fatal(err)
	}
	return out
}

func run(t *testing.T, program string, args ...string) {
	t.Helper()
	var log bytes.Buffer
	cmd := exec.Command(program, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s:\n%.6000s", program, log.String())
		}
	})
}

// Three hosts write to Thanos; its query answers ttmon fleet with all of them.
func TestFleetThroughThanos(t *testing.T) {
	dir := t.TempDir()
	ttmon, ttmond, server, simulator := ours(t, dir, "ttmon"), ours(t, dir, "ttmond"), ours(t, dir, "ttmon-server"), ours(t, dir, "ttmon-sim")
	grpc, write, query := port(t), port(t), port(t)
	run(t, thanos, "receive", "--grpc-address", grpc, "--http-address", port(t), "--remote-write.address", write,
		"--tsdb.path", filepath.Join(dir, "receive"), "--label", `receive="1"`, "--log.level=warn")
	run(t, thanos, "query", "--http-address", query, "--grpc-address", port(t), "--endpoint", grpc, "--log.level=warn")
	for i, boards := range []string{"n300,p150a", "p150a", "2xn150"} {
		home := filepath.Join(dir, fmt.Sprint("host", i+1))
		if b, err := exec.Command(simulator, "--root", filepath.Join(home, "root"), "--boards", boards).CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, b)
		}
		config := fmt.Sprintf("[[remote_write]]\nurl = 'http://%s/api/v1/receive'\ninterval = '1s'\nlabels = {host = 'node%d'}\n", write, i+1)
		if err := os.WriteFile(filepath.Join(home, "ttmon-server.toml"), []byte(config), 0o600); err != nil {
			t.Fatal(err)
		}
		run(t, ttmond, "--root", filepath.Join(home, "root"), "--state-dir", filepath.Join(home, "ttmond"),
			"--socket", filepath.Join(home, "api"), "--alloc-socket", filepath.Join(home, "alloc"))
		run(t, server, "--config", filepath.Join(home, "ttmon-server.toml"), "--daemon", filepath.Join(home, "api"), "--state-dir", filepath.Join(home, "state"),
			"--socket", filepath.Join(home, "server.sock"), "--listen", "off")
	}
	var out []byte
	var err error
	for limit := time.Now().Add(2 * time.Minute); ; time.Sleep(500 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
		out, err = exec.CommandContext(ctx, ttmon, "fleet", "--prometheus", "http://"+query).CombinedOutput()
		cancel()
		if s := string(out); err == nil && strings.HasPrefix(s, "SIMULATED: 3 hosts made up") && strings.Contains(s, "\n3 hosts  5 devices") && strings.Contains(s, "node1") && strings.Contains(s, "node2") && strings.Contains(s, "node3") {
			break
		}
		if time.Now().After(limit) {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	t.Logf("\n%s", out)
	if out, err := exec.Command(ttmon, "fleet", "--prometheus", "http://"+query, "node1").CombinedOutput(); err != nil || !strings.Contains(string(out), "p150a") {
		t.Errorf("%v\n%s", err, out)
	}
}
