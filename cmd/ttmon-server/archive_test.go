package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

// promQL asks the history over the API's socket.
func (h *host) promQL(expr string) []result {
	h.t.Helper()
	status, body := h.get("/prometheus/api/v1/query?" + url.Values{"query": {expr}}.Encode())
	var answer struct{ Data struct{ Result []result } }
	if err := json.Unmarshal(body, &answer); err != nil || status != 200 && status != 503 {
		h.t.Fatalf("%s: %d %s", expr, status, body)
	}
	return answer.Data.Result
}

func (h *host) events(query string) []model.Event {
	h.t.Helper()
	status, body := h.get("/v1/events?" + query)
	var answer struct{ Events []model.Event }
	if err := json.Unmarshal(body, &answer); err != nil || status != 200 && status != 503 {
		h.t.Fatalf("events: %d %s", status, body)
	}
	return answer.Events
}

// count is how many samples there are of a series.
func (h *host) samples() (n int) {
	for _, r := range h.promQL(`count_over_time(tenstorrent_devices[1h])`) {
		fmt.Sscan(r.Value[1].(string), &n)
	}
	return n
}

// History, events and snapshots outlive the daemon, however it ends.
func TestArchiveSurvivesKill(t *testing.T) {
	hermetic.Long(t)
	t.Parallel()
	h := newHost(t)
	h.simulate("n300,p150a")
	config := filepath.Join(h.dir, "ttmond.toml")
	if err := os.WriteFile(config, []byte("[collect]\ninterval = \"100ms\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	seen, answered := 0, uint64(0)
	for round := range 5 {
		i := h.start("--config", config)
		h.await("history", func() bool { return h.samples() > seen })
		for _, e := range h.events("") {
			answered = max(answered, e.Seq)
		}
		before := h.samples()
		i.kill()
		if round == 4 {
			break
		}
		i = h.start("--config", config)
		h.await("the history of before", func() bool { return h.samples() >= before })
		found := uint64(0)
		for _, e := range h.events("") {
			found = max(found, e.Seq)
		}
		if found < answered {
			t.Fatalf("event %d was answered, %d is the last now", answered, found)
		}
		seen = h.samples()
		i.kill()
	}
	h.start("--config", config)
	h.await("the snapshot of now", func() bool {
		_, body := h.get("/v1/past?at=" + url.QueryEscape(time.Now().UTC().Format(time.RFC3339Nano)))
		return strings.Contains(string(body), `"devices"`)
	})
	status, body := h.get("/v1/past?at=" + url.QueryEscape(started.Add(-time.Hour).UTC().Format(time.RFC3339Nano)))
	if status != 404 || !strings.Contains(string(body), "no snapshot is kept") {
		t.Errorf("an hour before the start: %d %s", status, body)
	}
}

// promtool asks us as it would ask a Prometheus.
func TestPromtoolQueries(t *testing.T) {
	t.Parallel()
	tool(t, "promtool")
	h := newHost(t)
	h.simulate("n300,p150a")
	address := freePort(t)
	h.start("--listen", address)
	h.await("history", func() bool { return len(h.promQL("tenstorrent_device_info")) == 2 })
	base := "http://" + address + "/prometheus"
	if out := promtool(t, "", "query", "instant", base, "count(tenstorrent_device_info)"); !strings.Contains(out, "=> 2 ") {
		t.Errorf("instant: %s", out)
	}
	if out := promtool(t, "", "query", "labels", base, "device"); out != "0\n1\n" {
		t.Errorf("labels: %q", out)
	}
	if out := promtool(t, "", "query", "series", "--match", `tenstorrent_device_info`, base); strings.Count(out, "pci=") != 2 {
		t.Errorf("series: %s", out)
	}
	now := time.Now()
	out := promtool(t, "", "query", "range", "--start", fmt.Sprint(now.Add(-time.Minute).Unix()), "--end", fmt.Sprint(now.Add(2*time.Second).Unix()), "--step", "1s", base, "tenstorrent_devices")
	if !strings.Contains(out, "2 @[") {
		t.Errorf("range: %s", out)
	}
}

// A state directory that nothing can be written to: there is a history in
// memory, and it is said.
func TestArchiveWithoutDisk(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.simulate("p150a")
	if err := os.MkdirAll(filepath.Join(h.dir, "state"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"history", "journal"} { // files where directories should be
		if err := os.WriteFile(filepath.Join(h.dir, "state", name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	i := h.start()
	h.await("history", func() bool { return h.samples() > 0 })
	if !strings.Contains(i.log.String(), "history is in memory only") {
		t.Error("it is not said")
	}
	events := h.events("kind=ttmond")
	if len(events) == 0 || !events[0].Volatile {
		t.Errorf("events %+v", events)
	}
}

func TestHistoryOff(t *testing.T) {
	hermetic.Long(t)
	h := newHost(t)
	config := filepath.Join(h.dir, "ttmond.toml")
	if err := os.WriteFile(config, []byte("[history]\nenabled = false\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	h.start("--config", config)
	if status, _ := h.get("/v1/events"); status != 404 {
		t.Errorf("status %d", status)
	}
	if _, err := os.Stat(filepath.Join(h.dir, "state", "history")); !os.IsNotExist(err) {
		t.Error("there is a history")
	}
}
