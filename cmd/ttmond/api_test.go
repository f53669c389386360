package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// get asks the API.
func (h *host) get(path string) (status int, body []byte) {
	h.t.Helper()
	return h.ask(http.MethodGet, path)
}

func (h *host) ask(method, path string) (status int, body []byte) {
	h.t.Helper()
	transport := &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", h.api)
		},
	}
	q, err := http.NewRequest(method, "http://ttmond"+path, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	r, err := (&http.Client{Transport: transport}).Do(q)
	if err != nil {
		h.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err = io.ReadAll(r.Body)
	if err != nil {
		h.t.Fatal(err)
	}
	return r.StatusCode, body
}

// tree asks the API for an answer in JSON. A daemon that says that it is late
// is asked again: on a busy machine it may be.
func (h *host) tree(path string) (v map[string]any) {
	h.t.Helper()
	status, body := h.get(path)
	for end := time.Now().Add(limit); status == http.StatusServiceUnavailable && time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		status, body = h.get(path)
	}
	if err := json.Unmarshal(body, &v); err != nil || status != http.StatusOK {
		h.t.Fatalf("%s: status %d, %v: %s", path, status, err, body)
	}
	return v
}

func (h *host) snapshot() *model.Snapshot {
	h.t.Helper()
	_, body := h.get("/v1/snapshot")
	s, err := wire.Decode(body)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// What a client reports is in the snapshot, marked as to where it is from.
func TestAPISnapshot(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	c.do("alloc 1 4194304 20 1")
	var use model.DeviceUse
	h.await("the process in a snapshot", func() bool {
		for _, p := range h.snapshot().Processes {
			if p.PID == c.pid() && len(p.Devices) > 0 && p.Devices[0].Memory[model.L1].Exactly(20) {
				use = p.Devices[0]
				if !strings.Contains(p.Cmdline.V, h.alloc) || p.UID.V != os.Getuid() || p.StartTime.IsZero() {
					t.Errorf("the process: %+v", p)
				}
				return true
			}
		}
		return false
	})
	if use.Source != "socket" || !use.Memory[model.DRAM].Exactly(1000) || use.Tracking != model.TrackOK || use.Memory[model.CB].Known() {
		t.Errorf("its use: %+v", use)
	}
	if s := h.snapshot(); s.Source != model.Daemon {
		t.Errorf("source %q", s.Source)
	}
}

// A process that is older than the daemon's account may hold more than that
// account says, and that is said.
func TestAPIOlderProcess(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	c := h.cpp(144) // finds no server, and tries again at every report
	if got := c.do("alloc 0 4194304 5 0"); got != "failed" {
		t.Fatalf("report without a daemon: %q", got)
	}
	h.start()
	h.await("a report that arrives", func() bool { return c.do("alloc 0 4194368 7 0") != "failed" })
	h.await("the process in a snapshot", func() bool {
		for _, p := range h.snapshot().Processes {
			if p.PID == c.pid() && len(p.Devices) > 0 {
				u := p.Devices[0]
				return u.Tracking == model.TrackPartial && slices.ContainsFunc(u.Doubts, func(d model.Doubt) bool { return d.Kind == model.ReportLate })
			}
		}
		return false
	})
	h.takeOver() // is no reason to doubt
	young := h.cpp(144)
	young.do("alloc 0 4194304 5 0")
	h.takeOver()
	h.await("the other process in a snapshot", func() bool {
		for _, p := range h.snapshot().Processes {
			if p.PID == young.pid() && len(p.Devices) > 0 {
				return p.Devices[0].Tracking == model.TrackOK
			}
		}
		return false
	})
}

func TestAPIReports(t *testing.T) {
	hermetic.Long(t)
	h := newHost(t)
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	c.do("alloc 0 4194368 50 0")
	c.do("dump")
	h.awaitSums(0, sums{dram: 1050})
	v := h.tree(fmt.Sprintf("/v1/processes/%d/buffers?limit=1", c.pid()))
	if b := v["buffers"].([]any)[0].(map[string]any); b["size_bytes"] != 1000.0 || v["total"] != 2.0 {
		t.Errorf("buffers: %v", v)
	}
	h.await("the dump", func() bool { return len(h.tree("/v1/dumps")["dumps"].([]any)) == 1 })
	if _, body := h.get("/v1/dump"); !strings.Contains(string(body), "0x400000") {
		t.Errorf("dump: %s", body)
	}
	c.kill()
	h.await("the leak", func() bool { return len(h.tree("/v1/leaks")["leaks"].([]any)) == 1 })
	health := h.tree("/v1/health")
	if health["status"] != "ok" || health["ledger"].(map[string]any)["leaks"] != 1.0 {
		t.Errorf("health: %v", health)
	}
	// All of it survives a handover.
	h.takeOver()
	if n := len(h.tree("/v1/leaks")["leaks"].([]any)); n != 1 {
		t.Errorf("%d leaks after a handover", n)
	}
	if n := len(h.tree("/v1/dumps")["dumps"].([]any)); n != 1 {
		t.Errorf("%d dumps after a handover", n)
	}
}

// An ordinary user sees the memory of all.
func TestAPIForEverybody(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root, to become another user")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("no curl on this machine")
	}
	h := newHost(t)
	if err := os.Chmod(h.dir, 0o755); err != nil {
		t.Fatal(err)
	}
	h.start()
	c := h.cpp(144)
	c.do("alloc 0 4194304 1000 0")
	h.awaitSums(0, sums{dram: 1000})
	cmd := exec.Command(curl, "-sS", "--unix-socket", h.api, "http://ttmond/v1/processes")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), fmt.Sprintf(`"pid":%d`, c.pid())) || !strings.Contains(string(out), `"dram_bytes":1000`) {
		t.Errorf("user 65534 sees %v: %s", err, out)
	}
}

// A web client at the wrong door is told where the right one is.
func TestWrongDoor(t *testing.T) {
	h := newHost(t)
	h.start()
	c := h.dial()
	defer c.Close()
	fmt.Fprint(c, "GET /v1/health HTTP/1.1\r\nHost: x\r\n\r\n")
	b, err := io.ReadAll(c)
	if err != nil || !strings.HasPrefix(string(b), "HTTP/1.0 400") || !strings.Contains(string(b), h.api) {
		t.Errorf("%q, %v", b, err)
	}
}
