package main

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/internal/wire"
)

// A recording is served as a host: what is live is the moment that is played,
// the rest is its past.
func TestReplayIsServed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	if err != nil {
		t.Fatal(err)
	}
	for s := range 60 {
		at := tuitest.Start.Add(time.Duration(s) * time.Second)
		if err := w.Snapshot(at, wire.Append(nil, tuitest.Host(2, s))); err != nil {
			t.Fatal(err)
		}
		if s == 30 {
			if err := w.Event(eventlog.Event{Time: at, Kind: "alert", Level: eventlog.Warning, Text: "too hot"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	said, out := io.Pipe()
	r := &replayed{listen: "127.0.0.1:0", from: 20 * time.Second, speed: 1, paused: true, out: out}
	ended := make(chan error, 1)
	go func() { ended <- r.run(ctx, path) }()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(address)
	ask := func(path string, into any) string {
		t.Helper()
		resp, err := http.Get(address + path)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != 200 {
			t.Fatalf("%s: %d %s", path, resp.StatusCode, b)
		}
		if into != nil {
			if err := json.Unmarshal(b, into); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
		}
		return string(b)
	}
	var snap struct {
		Time    time.Time
		Devices []any
		Host    struct{ Name string }
	}
	ask("api/v1/snapshot", &snap)
	if !snap.Time.Equal(tuitest.Start.Add(20*time.Second)) || len(snap.Devices) != 2 || snap.Host.Name != "lab-3 (recording)" {
		t.Errorf("live is %v of %s", snap.Time, snap.Host.Name)
	}
	ask("api/v1/past?"+url.Values{"at": {tuitest.Start.Add(45 * time.Second).Format(time.RFC3339)}}.Encode(), &snap)
	if !snap.Time.Equal(tuitest.Start.Add(45 * time.Second)) {
		t.Errorf("the past is %v", snap.Time)
	}
	if events := ask("api/v1/events", nil); !strings.Contains(events, "too hot") {
		t.Errorf("events: %s", events)
	}
	if html := ask("", nil); !strings.Contains(html, "<html") {
		t.Errorf("the page: %.200s", html)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"0.0.0.0:0", "nonsense"} {
		if err := (&replayed{listen: bad}).run(t.Context(), path); err == nil {
			t.Errorf("served at %s, where nobody guards it", bad)
		}
	}
}
