package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// backlog are the numbers of the events that ttmond has.
func (h *host) backlog() (last uint64) {
	h.t.Helper()
	b, _ := os.ReadFile(filepath.Join(h.dir, "ttmond", "backlog", "events.jsonl"))
	for line := range bytes.Lines(b) {
		var e model.Event
		if json.Unmarshal(line, &e) == nil {
			last = max(last, e.Seq)
		}
	}
	return last
}

// happen makes something happen on the host: a board goes, or comes back. It
// returns when ttmond has an event of it.
func (h *host) happen(k int) {
	h.t.Helper()
	before := h.backlog()
	entry := filepath.Join(h.root, "sys/class/tenstorrent/tenstorrent!1")
	away := filepath.Join(h.dir, "away")
	from, to := entry, away
	if k%2 == 1 {
		from, to = away, entry
	}
	if err := os.Rename(from, to); err != nil {
		h.t.Fatal(err)
	}
	h.await(fmt.Sprintf("event %d of ttmond", before+1), func() bool { return h.backlog() > before })
}

// origins are the numbers that the server's events have in ttmond's log.
func (h *host) origins() (list []uint64) {
	for _, e := range h.events("") {
		if e.From != nil {
			list = append(list, e.From.Seq)
		}
	}
	return list
}

// numbers is 1, 2, … n.
func numbers(n uint64) (list []uint64) {
	for k := range n {
		list = append(list, k+1)
	}
	return list
}

// What happens while the server is away, stopped or killed, is there when it is
// back: every event once, in order, also across restarts of ttmond.
func TestNoEventIsMissing(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("n300,p150a")
	config := filepath.Join(h.dir, "c.toml")
	if err := os.WriteFile(config, []byte("[collect]\ninterval = \"100ms\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.daemonArgs = []string{"--config", config}
	i := h.start()
	h.await("the log", func() bool { status, _ := h.get("/v1/events"); return status == http.StatusOK })
	h.await("snapshots", func() bool { status, _ := h.get("/v1/snapshot"); return status == http.StatusOK })
	h.happen(0)
	h.await("the first event", func() bool { return len(h.origins()) > 0 })
	_ = i.cmd.Process.Signal(syscall.SIGTERM)
	<-i.done
	if i.err != nil {
		t.Errorf("the server ended badly: %v\n%s", i.err, i.log)
	}
	h.happen(1)
	h.happen(2)
	h.ttmond.kill()
	h.startDaemon()
	h.await("ttmond", func() bool {
		status, _, err := try(h.api, http.MethodGet, "/v1/snapshot", nil, nil)
		return err == nil && status == 200
	})
	h.happen(3)
	i = h.startServer()
	all := func() bool { return slices.Equal(h.origins(), numbers(h.backlog())) }
	h.await("all events", all)
	i.kill()
	h.happen(4)
	h.startServer()
	h.await("all events after a kill", all)
	h.ttmond.kill()
	h.startDaemon()
	h.await("ttmond again", func() bool {
		status, _, err := try(h.api, http.MethodGet, "/v1/snapshot", nil, nil)
		return err == nil && status == 200
	})
	h.happen(5)
	h.await("all events after a kill of ttmond", all)
}

// Where ttmond's backlog is gone, its numbers begin again, and nothing counts as
// already known.
func TestBacklogIsLost(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("n300,p150a")
	h.start()
	h.await("snapshots", func() bool { status, _ := h.get("/v1/snapshot"); return status == http.StatusOK })
	h.happen(0)
	h.await("the first event", func() bool { return len(h.origins()) > 0 })
	first := len(h.origins())
	h.ttmond.kill()
	if err := os.RemoveAll(filepath.Join(h.dir, "ttmond", "backlog")); err != nil {
		t.Fatal(err)
	}
	h.startDaemon()
	h.await("ttmond", func() bool {
		status, _, err := try(h.api, http.MethodGet, "/v1/snapshot", nil, nil)
		return err == nil && status == 200
	})
	h.happen(1)
	h.await("events of the new log", func() bool { return len(h.origins()) > first })
}

// Without a ttmond the server has what its user sees; when one starts, it follows.
func TestWithoutADaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("n300,p150a")
	h.withoutDaemon = true
	i := h.start()
	h.await("history", func() bool { return len(h.promQL("tenstorrent_device_info")) == 2 })
	if !strings.Contains(i.log.String(), "collecting what this user can see") {
		t.Error("it does not say so")
	}
	_, body := h.get("/v1/health")
	if !strings.Contains(string(body), "none runs") {
		t.Errorf("health: %s", body)
	}
	out, err := exec.Command(released(t, "ttmon"), "web", "--daemon", h.api).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "serves no web page") {
		t.Errorf("ttmon web, without a page: %v %s", err, out)
	}
}

// ttmon web --start starts a server, and says what its page shows.
func TestWebStart(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	cmd := exec.Command(released(t, "ttmon"), "web", "--start", "--public")
	cmd.Env = append(os.Environ(), "HOME="+h.dir, "XDG_RUNTIME_DIR="+filepath.Join(h.dir, "run"), "XDG_STATE_HOME="+filepath.Join(h.dir, "state"),
		"XDG_CONFIG_HOME="+filepath.Join(h.dir, "config"),
		"PATH="+filepath.Dir(program(t))+":/usr/bin:/bin")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 60005, Gid: 60005}}
	for _, dir := range []string{h.dir, filepath.Join(h.dir, "run"), filepath.Join(h.dir, "state")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(dir, 60005, 60005); err != nil {
			t.Skip("needs root, to be another user")
		}
	}
	config := filepath.Join(h.dir, "config", "ttmon", "ttmon-server.toml")
	if err := os.MkdirAll(filepath.Dir(config), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(config, []byte("[listen]\naddress = '127.0.0.1:0'\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := cmd.CombinedOutput()
	log, _ := os.ReadFile(filepath.Join(h.dir, "state/ttmon/ttmon-server.log"))
	if err != nil {
		t.Fatalf("%v: %s\n%s", err, out, log)
	}
	var pid int
	for line := range strings.Lines(string(out)) {
		_, _ = fmt.Sscanf(line, "started ttmon-server, pid %d;", &pid)
	}
	if pid == 0 || !strings.Contains(string(out), "http://127.0.0.1:") || !strings.Contains(string(out), "no ttmond runs here") {
		t.Errorf("it says %s\n%s", out, log)
	}
	if pid > 0 {
		_ = syscall.Kill(pid, syscall.SIGTERM)
	}
}

// A server without a ttmond judges by its own thresholds: a chip at 39 °C is hot
// where 50 below its limit of 75 is.
func TestThresholdsWithoutDaemon(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("n150")
	h.withoutDaemon = true
	file := filepath.Join(h.dir, "own.toml")
	if err := os.WriteFile(file, []byte("[conditions]\nhot_margin_c = 50\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start("--config", file)
	h.await("the chip to be hot", func() bool {
		status, body := h.get("/v1/snapshot")
		if status != http.StatusOK {
			return false // none was made yet
		}
		s, err := wire.Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(s.Conditions, func(c model.Condition) bool { return c.Kind == model.ConditionHot })
	})
	if err := os.WriteFile(file, []byte("[conditions]\nhot_margin_c = 51\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := exec.Command(program(t), h.args("--config", file)...).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "conditions.hot_margin_c is 51") {
		t.Errorf("a threshold that cannot be: %v, %s", err, out)
	}
}
