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
	"sync"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/sim"
)

// receiver is a webhook that notes what it is told.
type receiver struct {
	mu  sync.Mutex
	got []string
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	b, _ := io.ReadAll(q.Body)
	var m struct {
		Status string
		Alerts []struct{ Labels map[string]string }
	}
	if err := json.Unmarshal(b, &m); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, a := range m.Alerts {
		r.got = append(r.got, m.Status+" "+a.Labels["alertname"]+" "+a.Labels["device"])
	}
}

func (r *receiver) heard() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.got)
}

func (r *receiver) await(t *testing.T, n int) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); len(r.heard()) < n; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("heard only %q", r.heard())
		}
	}
}

// alerting is a daemon that evaluates twice a second and posts to r.
func alerting(t *testing.T, h *sim.Host, r *receiver) *daemon {
	t.Helper()
	web := httptest.NewServer(r)
	t.Cleanup(web.Close)
	config := filepath.Join(t.TempDir(), "ttmond.toml")
	text := fmt.Sprintf("[collect]\ninterval = '250ms'\n[alerts]\ninterval = '500ms'\nrules = ''\n[[alerts.webhook]]\nurl = %q\n", web.URL)
	if err := os.WriteFile(config, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return startDaemon(t, h, "--config", config)
}

// A chip hangs: one message. It comes back: another. Nothing else.
func TestAlertOfAHungChip(t *testing.T) {
	h := start(t, sim.Options{Boards: "p150a,n150"})
	var r receiver
	alerting(t, h, &r)
	ctl(t, h, "hang", "1")
	r.await(t, 1)
	ctl(t, h, "unhang", "1")
	r.await(t, 2)
	time.Sleep(2 * time.Second) // four evaluations more, of which nobody is to hear
	want := []string{"firing ChipHung 1", "resolved ChipHung 1"}
	if got := r.heard(); !slices.Equal(got, want) {
		t.Errorf("heard %q, want %q", got, want)
	}
}
