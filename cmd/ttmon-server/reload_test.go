package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
)

// reloaded asks for a reload and returns what it says.
func (h *host) reloaded() []string {
	h.t.Helper()
	status, body := h.post("/v1/reload")
	var answer struct{ Changes []string }
	if err := json.Unmarshal(body, &answer); err != nil || status != 200 {
		h.t.Fatalf("reload: %d %s", status, body)
	}
	return answer.Changes
}

// Who is notified of alerts, and where samples go, changes without a restart; what
// cannot change is said to stay.
func TestReloadOfMemory(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := newHost(t)
	h.simulate("n300,p150a")
	var told, written [2]atomic.Int64
	targets := [2]string{}
	for i := range targets {
		mux := http.NewServeMux()
		mux.HandleFunc("/hook", func(http.ResponseWriter, *http.Request) { told[i].Add(1) })
		mux.HandleFunc("/write", func(http.ResponseWriter, *http.Request) { written[i].Add(1) })
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		targets[i] = server.URL
	}
	config := filepath.Join(h.dir, "ttmond.toml")
	put := func(to int, more string) {
		t.Helper()
		text := fmt.Sprintf("[alerts]\ninterval = '500ms'\nrules = ''\n[[alerts.webhook]]\nurl = '%[1]s/hook'\n[[remote_write]]\nurl = '%[1]s/write'\ninterval = '1s'\n%[2]s",
			targets[to], more)
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	put(0, "")
	h.start("--config", config)
	h.await("samples at the first", func() bool { return written[0].Load() > 0 })
	put(1, "[history]\nmax_series = 5000\n[metrics]\nprocesses = 7\n")
	said := h.reloaded()
	want := []string{"metrics.processes has changed", "history.max_series stays 20000", "alerts.webhook has changed", "remote_write has changed"}
	if len(said) != len(want) {
		t.Errorf("it says %q", said)
	}
	for i := range want {
		if i < len(said) && !strings.HasPrefix(said[i], want[i]) {
			t.Errorf("it says %q, want %q", said[i], want[i])
		}
	}
	h.await("samples at the second", func() bool { return written[1].Load() > 0 })
	before := written[0].Load()
	h.await("more of them", func() bool { return written[1].Load() > 3 })
	if now := written[0].Load(); now > before+1 { // one may have been on its way
		t.Errorf("the first engine was written to %d times more", now-before)
	}
	// The hearts of a tree of files do not beat: that is told to the second.
	h.await("the alert at the second", func() bool { return told[1].Load() > 0 })
	if said := h.reloaded(); len(said) != 1 || !strings.HasPrefix(said[0], "history.max_series stays") {
		t.Errorf("a second time it says %q", said)
	}
}
