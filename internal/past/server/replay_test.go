package server

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"math"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/internal/view/tui/tuitest"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// recordedHost is a recording of a minute with two devices, an event, and a
// process that takes a block in its 10th and another in its 40th second.
func recordedHost(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "x.ttrec")
	w, err := recording.Create(path, false)
	ok := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ok(err)
	for s := range 60 {
		at := tuitest.Start.Add(time.Duration(s) * time.Second)
		ok(w.Snapshot(at, wire.Append(nil, tuitest.Host(2, s))))
		switch s {
		case 10:
			ok(w.Process(at, recording.Process{ID: 1, PID: 4711, Method: recording.ByLedger}))
			ok(w.List(at, recording.List{ID: 2, Process: 1, Allocator: 1, Pool: "dram", Chips: []uint64{77}, Geometry: blocks.Geometry{Banks: 8, Capacity: 1 << 30, Align: 64}}))
			ok(w.Site(at, recording.Site{ID: 3, Tag: "weights", Stack: []ledgerfile.Frame{{File: "train.py", Line: 12, Function: "load"}}}))
			ok(w.Alloc(at, 2, blocks.Block{Addr: 4096, Size: 1024, Site: 3}))
		case 30:
			ok(w.Event(model.Event{Time: at, Kind: "alert", Level: model.Warning, Text: "too hot"}))
		case 40:
			ok(w.Alloc(at, 2, blocks.Block{Addr: 8192, Size: 1024, Site: 3}))
		case 41:
			ok(w.Failure(at, failedAllocation(at)))
		}
	}
	ok(w.Close())
	return path
}

// failedAllocation is a request that found a pool full.
func failedAllocation(at time.Time) *failure.Record {
	l := blocks.NewList(blocks.Geometry{Pool: model.DRAM, Banks: 8, Capacity: 4096, Align: 64, Smallest: 64}, blocks.FromStart)
	l.Alloc(blocks.Block{Addr: 0, Size: 4032})
	r := &failure.Record{
		Schema: failure.Schema, ID: "f1", Kind: failure.NoRoom, Time: at, First: at, Last: at, Count: 1, Source: "track", Pool: "dram", State: l,
		Process: failure.Process{PID: 4711, UID: 4711}, Request: failure.Request{BankBytes: 128}, Stack: []ledgerfile.Frame{{File: "train.py", Line: 12, Function: "load"}},
	}
	r.Judge()
	return r
}

// A recording is served as a host: what is live is the moment that is played,
// the rest is its past.
func TestReplayIsServed(t *testing.T) {
	path := recordedHost(t)
	ctx, cancel := context.WithCancel(t.Context())
	said, out := io.Pipe()
	how := Replay{Listen: "127.0.0.1:0", From: 20 * time.Second, Speed: 1, Paused: true}
	ended := make(chan error, 1)
	go func() { ended <- ServeRecording(ctx, path, how, out) }()
	address, err := bufio.NewReader(said).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, key, _ := strings.Cut(strings.TrimSpace(address), "#ticket=")
	session := ""
	status := func(path string) (int, []byte) {
		t.Helper()
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set(api.SessionHeader, session)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		return resp.StatusCode, b
	}
	ask := func(path string, into any) string {
		t.Helper()
		code, b := status(path)
		if code != 200 {
			t.Fatalf("%s: %d %s", path, code, b)
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
	testReplayedRange(t, ask)
	if health := ask("api/v1/health", nil); strings.Contains(health, " old") {
		t.Errorf("a moment of a recording is not late: %s", health)
	}
	if top := ask("api/v1/topology", nil); !strings.Contains(top, `"pairs"`) {
		t.Errorf("topology: %s", top)
	}

	// Blocks and failures are for those who were given the address.
	if list := ask("api/v1/failures", nil); strings.Contains(list, "f1") {
		t.Errorf("failures for anybody: %s", list)
	}
	if code, b := status("api/v1/failures/f1/page"); code != 404 {
		t.Errorf("a failure for anybody: %d %s", code, b)
	}
	if code, b := status("api/v1/processes/4711/map"); code != 403 {
		t.Errorf("blocks for anybody: %d %s", code, b)
	}
	session = redeem(t, address, key)
	session = redeem(t, address, key) // as often as it is opened
	var at20, at50 struct {
		Pools []struct{ Blocks [][5]uint64 }
		Sites []struct {
			Tag   string
			Stack []string
			Bytes uint64
		}
	}
	ask("api/v1/processes/4711/map", &at20)
	ask("api/v1/processes/4711/map?"+url.Values{"at": {tuitest.Start.Add(50 * time.Second).Format(time.RFC3339)}}.Encode(), &at50)
	if len(at20.Pools) != 1 || len(at20.Pools[0].Blocks) != 1 || len(at50.Pools[0].Blocks) != 2 {
		t.Errorf("blocks: %v, later %v", at20, at50)
	}
	if s := at50.Sites; len(s) != 1 || s[0].Tag != "weights" || s[0].Bytes != 2*8*1024 || s[0].Stack[0] != "load (train.py:12)" {
		t.Errorf("sites: %+v", s)
	}
	if list := ask("api/v1/failures", nil); !strings.Contains(list, `"id":"f1"`) {
		t.Errorf("failures: %s", list)
	}
	if page := ask("api/v1/failures/last/page", nil); !strings.Contains(page, "full:") || !strings.Contains(page, "train.py:12") {
		t.Errorf("the page of a failure: %s", page)
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"0.0.0.0:0", "nonsense"} {
		if err := ServeRecording(t.Context(), path, Replay{Listen: bad, Speed: 1}, io.Discard); err == nil {
			t.Errorf("served at %s without authentication", bad)
		}
	}
}

// redeem gives a ticket for a session.
func redeem(t *testing.T, address, ticket string) string {
	t.Helper()
	resp, err := http.Post(address+"api/v1/session", "application/json", strings.NewReader(`{"ticket":"`+ticket+`"}`))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got struct{ Session string }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Session == "" {
		t.Fatalf("no session: %d %v", resp.StatusCode, err)
	}
	return got.Session
}

// testReplayedRange holds the charts against the snapshots that they are of.
func testReplayedRange(t *testing.T, ask func(string, any) string) {
	t.Helper()
	var got struct {
		Times  []float64
		Series []struct {
			Metric string
			Device int
			BusID  string `json:"bus_id"`
			Values []*float64
		}
	}
	q := url.Values{
		"metric": {"power.draw,temperature.asic"}, "step": {"1s"},
		"start": {tuitest.Start.Format(time.RFC3339)}, "end": {tuitest.Start.Add(59 * time.Second).Format(time.RFC3339)},
	}
	text := ask("api/v1/range?"+q.Encode(), &got)
	if len(got.Series) != 4 || len(got.Times) != 60 {
		t.Fatalf("%d series of %d: %s", len(got.Series), len(got.Times), text)
	}
	for _, s := range got.Series {
		for i, v := range s.Values {
			d := tuitest.Host(2, i).Devices[s.Device]
			want := d.Power
			if s.Metric == "temperature.asic" {
				want = d.Temperature
			}
			if w, known := want.Get(); known != (v != nil) || known && math.Abs(w-*v) > 0.051 {
				t.Errorf("%s of device %d, second %d: %v, recorded %v", s.Metric, s.Device, i, v, want)
			}
		}
	}
	q = url.Values{"metric": {"pcie.rx"}} // without times: the hour before the moment that is played
	if text := ask("api/v1/range?"+q.Encode(), &got); len(got.Series) == 0 || !strings.Contains(text, tuitest.Start.Add(-time.Hour+20*time.Second).Truncate(7*time.Second).Format("2006-01-02T15:04")) {
		t.Errorf("rates: %.300s", text)
	}
}
