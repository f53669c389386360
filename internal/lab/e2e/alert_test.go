package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/lab/sim"
)

// receiver is a webhook that notes what it is told.
type receiver struct {
	mu           sync.Mutex
	got          []string
	descriptions map[string]string // of firing alerts, by rule
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	var m struct {
		Status string
		Alerts []struct{ Labels, Annotations map[string]string }
	}
	if err := json.Unmarshal(b, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range m.Alerts {
		r.got = append(r.got, m.Status+" "+a.Labels["alertname"]+" "+a.Labels["device"])
		if m.Status == "firing" {
			if r.descriptions == nil {
				r.descriptions = map[string]string{}
			}
			r.descriptions[a.Labels["alertname"]] = a.Annotations["description"]
		}
	}
}

func (r *receiver) description(rule string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.descriptions[rule]
}

// forget drops what was received.
func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.got = nil
}

func (r *receiver) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) await(t *testing.T, n int) {
	t.Helper()
	for limit := time.Now().Add(5 * time.Minute); len(r.heard()) < n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("heard only %q", r.heard())
		}
	}
}

// alerting is a daemon that evaluates twice a second and posts to r. rules is a
// file of rules, or "".
func alerting(t *testing.T, h *sim.Host, r http.Handler, rules string) *daemon {
	t.Helper()
	web := httptest.NewServer(r)
	t.Cleanup(web.Close)
	dir := t.TempDir()
	config := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	d := startDaemon(t, h, "--config", config("ttmond.toml", "[collect]\ninterval = '250ms'\ntimeout = '20s'\n"))
	d.startServer("--config", config("ttmon-server.toml",
		fmt.Sprintf("[alerts]\nrecord = '10m'\ninterval = '500ms'\nrules = %q\n[[alerts.webhook]]\nurl = %q\n", rules, web.URL)))
	return d
}

// A chip hangs: one message. It comes back: another. Nothing else.
func TestAlertOfAHungChip(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,n150"})
	var r receiver
	alerting(t, h, &r, "")
	ctl(t, h, "hang", "1")
	r.await(t, 1)
	ctl(t, h, "unhang", "1")
	r.await(t, 2)
	time.Sleep(2 * time.Second) // four more evaluations, which must send nothing
	want := []string{"firing ChipHung 1", "resolved ChipHung 1"}
	if got := r.heard(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}

// awaitLine waits until something was told.
func (r *receiver) awaitLine(t *testing.T, line string) {
	t.Helper()
	for limit := time.Now().Add(90 * time.Second); !slices.Contains(r.heard(), line); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("not told: %q; heard %q", line, r.heard())
		}
	}
}

// What happened can be asked for: figures over time, and events.
func TestHistoryAndEvents(t *testing.T) {
	t.Parallel()
	h := start(t, sim.Options{Boards: "p150a,n150"})
	var r receiver
	d := alerting(t, h, &r, "")
	ctl(t, h, "hang", "1")
	r.await(t, 1)
	has := func(want string, args ...string) {
		t.Helper()
		var got result
		for limit := time.Now().Add(5 * time.Minute); time.Now().Before(limit); time.Sleep(100 * time.Millisecond) {
			if got = runIn(t, h, append(args, "--daemon", d.api)...); (got.code == 0 || got.code == 15) && strings.Contains(got.out, want) {
				return
			}
		}
		t.Errorf("%q has no %q: %+v", args, want, got)
	}
	has("  0 p150a  ", "history", "power.draw", "--since", "5m")
	has("power.draw [W]", "history", "power.draw", "-i", "0", "--since", "5m")
	has(`"metric": "temperature.asic"`, "history", "temperature.asic", "--json")
	has(",clocks.ai,MHz,0,", "history", "clocks.ai", "--csv", "--since", "1m")
	has("value  ", "history", "sum(tenstorrent_devices)", "--since", "1m")
	has("device 1 is hung", "events")
	has("!! alert     ChipHung: device 1", "events", "--kind", "alert")
	has(`"kind":"state"`, "events", "--json", "-i", "1")
	has("hung (alert)", "smi")
	for want, args := range map[string][]string{
		"unknown metric":   {"history", "power.drw"},
		"missing metric":   {"history"},
		"is not a time: ":  {"history", "power.draw", "--since", "soon"},
		"has no history: ": {"history", "board.type"},
		"no device":        {"events", "-i", "9"},
		"parse error":      {"history", "sum("},
	} {
		t.Run(want, func(t *testing.T) {
			if got := runIn(t, h, append(args, "--daemon", d.api)...); got.code == 0 || !strings.Contains(got.err, want) {
				t.Errorf("%q: %+v, want %q", args, got, want)
			}
		})
	}
}
