package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
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

	"github.com/ttmon/ttmon/internal/lab/e2e/programs"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// The tests of this package run the real programs: a ttmond, and the server that
// follows it.

var (
	buildOnce  = sync.OnceValues(func() (dir string, err error) { return programs.Build(raceDetector, "ttmon-server") })
	buildOther = sync.OnceValues(func() (dir string, err error) { return programs.Build(false, "ttmon", "ttmond", "ttmon-sim") })
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{Parallel: 4})
	os.Exit(m.Run())
}

func program(t testing.TB) string {
	t.Helper()
	programs.Depend(t)
	dir, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "ttmon-server")
}

// released is one of the other programs, as it is released.
func released(t testing.TB, name string) string {
	t.Helper()
	programs.Depend(t)
	dir, err := buildOther()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, name)
}

// host is a place where a ttmond runs, and a server that follows it.
type host struct {
	t                       testing.TB
	dir, alloc, api, server string
	root, state             string
	ttmond, current         *instance
	daemonArgs              []string // of every ttmond
	credential              *syscall.Credential
	withoutDaemon           bool
}

// instance is one process.
type instance struct {
	cmd  *exec.Cmd
	log  *syncBuffer
	done chan struct{} // closed when it has ended
	err  error         // how; read after done
}

// syncBuffer is a bytes.Buffer for two goroutines.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// newHost returns a place where nothing runs yet. Its directory is short: the
// path of a socket may have no more than 107 bytes.
func newHost(t testing.TB) *host {
	t.Helper()
	dir, err := os.MkdirTemp("", "ttmons")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h := &host{
		t: t, dir: dir, alloc: filepath.Join(dir, "alloc.sock"), api: filepath.Join(dir, "ttmond.sock"), server: filepath.Join(dir, "server.sock"),
		root: filepath.Join(dir, "root"), state: filepath.Join(dir, "state"),
	}
	if err := os.MkdirAll(h.root, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for name, i := range map[string]*instance{"ttmond": h.ttmond, "ttmon-server": h.current} {
			if i != nil {
				i.kill()
				if t.Failed() {
					t.Logf("log of %s:\n%s", name, i.log)
				}
			}
		}
		os.RemoveAll(dir)
	})
	return h
}

func (h *host) simulate(boards string) {
	h.t.Helper()
	if out, err := exec.Command(released(h.t, "ttmon-sim"), "--root", h.root, "--boards", boards).CombinedOutput(); err != nil {
		h.t.Fatalf("making a host of %s: %v\n%s", boards, err, out)
	}
}

// start starts both and returns the server when it is ready.
func (h *host) start(args ...string) *instance {
	h.t.Helper()
	if !h.withoutDaemon && (h.ttmond == nil || h.ttmond.ended()) {
		h.startDaemon()
	}
	return h.startServer(args...)
}

func (h *host) startDaemon(args ...string) *instance {
	h.t.Helper()
	all := append([]string{"--alloc-socket", h.alloc, "--socket", h.api, "--state-dir", filepath.Join(h.dir, "ttmond"), "--root", h.root, "--no-uprobe"}, h.daemonArgs...)
	h.ttmond = h.launch(nil, released(h.t, "ttmond"), append(all, args...)...)
	h.ttmond.await(h.t, "ttmond is ready", "resumed from previous ttmond")
	return h.ttmond
}

func (h *host) startServer(args ...string) *instance {
	h.t.Helper()
	h.current = h.launch(h.credential, program(h.t), h.args(args...)...)
	h.current.await(h.t, "ttmon-server is ready")
	return h.current
}

// args are those of every server of a host. Settings in a file of one daemon are
// the other's too, as after an upgrade.
func (h *host) args(more ...string) []string {
	all := []string{"--socket", h.server, "--state-dir", h.state, "--root", h.root}
	if !h.withoutDaemon {
		all = append(all, "--daemon", h.api)
	}
	if !slices.Contains(more, "--listen") {
		all = append(all, "--listen", "off")
	}
	return append(all, more...)
}

func (h *host) launch(who *syscall.Credential, bin string, args ...string) *instance {
	h.t.Helper()
	i := &instance{cmd: exec.Command(bin, args...), log: new(syncBuffer), done: make(chan struct{})}
	i.cmd.Stderr = i.log
	i.cmd.Env = append(os.Environ(), "HOME="+h.dir) // no configuration of the user's
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who, Pdeathsig: syscall.SIGKILL}
	if err := i.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	go func() {
		i.err = i.cmd.Wait()
		close(i.done)
	}()
	return i
}

// await waits until one of several sentences is in the log.
func (i *instance) await(t testing.TB, said ...string) {
	t.Helper()
	await(t, said[0], func() bool {
		if i.ended() {
			t.Fatalf("%s ended: %v\n%s", i.cmd.Path, i.err, i.log)
		}
		return slices.ContainsFunc(said, func(s string) bool { return strings.Contains(i.log.String(), s) })
	})
}

func (i *instance) kill() {
	_ = i.cmd.Process.Kill()
	<-i.done
}

func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// limit is how long tests wait for what must come. Only those that fail do.
const limit = 5 * time.Minute

func (h *host) await(what string, ok func() bool) {
	h.t.Helper()
	await(h.t, what, ok)
}

func await(t testing.TB, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !ok(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// get asks the server's socket.
func (h *host) get(path string) (status int, body []byte) {
	h.t.Helper()
	return call(h.t, h.server, http.MethodGet, path, nil, nil)
}

func (h *host) post(path string) (status int, body []byte) {
	h.t.Helper()
	return call(h.t, h.server, http.MethodPost, path, nil, nil)
}

// call asks at a Unix socket.
func call(t testing.TB, socket, method, path string, header http.Header, body []byte) (status int, answer []byte) {
	t.Helper()
	status, answer, err := try(socket, method, path, header, body)
	if err != nil {
		t.Fatal(err)
	}
	return status, answer
}

func try(socket, method, path string, header http.Header, body []byte) (status int, answer []byte, err error) {
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (c net.Conn, err error) {
			for { // where many wait to be accepted it waits with them, as ttmon does
				if c, err = (&net.Dialer{}).DialContext(ctx, "unix", socket); !errors.Is(err, syscall.EAGAIN) {
					return c, err
				}
				time.Sleep(time.Millisecond)
			}
		},
	}
	q, err := http.NewRequest(method, "http://x"+path, bytes.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	for k, v := range header {
		q.Header[k] = v
	}
	r, err := (&http.Client{Transport: transport}).Do(q)
	if err != nil {
		return 0, nil, err
	}
	defer r.Body.Close()
	answer, err = io.ReadAll(r.Body)
	return r.StatusCode, answer, err
}

// tree asks a socket for an answer in JSON.
func tree(t testing.TB, socket, path string) (v map[string]any) {
	t.Helper()
	status, body := call(t, socket, http.MethodGet, path, nil, nil)
	if err := json.Unmarshal(body, &v); err != nil || status != http.StatusOK {
		t.Fatalf("%s: status %d, %v: %s", path, status, err, body)
	}
	return v
}
