package api

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// host serves an API on a real socket.
type host struct {
	*testing.T
	path   string
	client *http.Client
	server *Server
	stop   context.CancelFunc
	feed   *Feed
	ledger *ledger.Ledger
}

func serve(t *testing.T, change func(*Options)) *host {
	t.Helper()
	h := &host{T: t, path: filepath.Join(t.TempDir(), "s"), feed: new(Feed), ledger: ledger.New(ledger.Options{})}
	o := Options{
		Feed: h.feed, Ledger: h.ledger, Version: "1.2.3",
		Dump:  func(kind string, _ int, _ bool) string { return "dump of " + kind + "\n" },
		Dumps: func() []Dump { return nil },
	}
	if change != nil {
		change(&o)
	}
	l, err := net.Listen("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	h.server, h.stop = New(o), cancel
	done := make(chan error, 1)
	go func() { done <- h.server.Serve(ctx, l) }()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", h.path)
	}}
	h.client = &http.Client{Transport: transport}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return h
}

// dial connects to the socket.
func (h *host) dial() net.Conn {
	h.Helper()
	c, err := net.Dial("unix", h.path)
	if err != nil {
		h.Fatal(err)
	}
	h.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	return c
}

func (h *host) get(path string) (status int, body string) {
	h.Helper()
	r, err := h.client.Get("http://ttmond" + path)
	if err != nil {
		h.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		h.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// tree gets a JSON document.
func (h *host) tree(path string) map[string]any {
	h.Helper()
	status, body := h.get(path)
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != 200 {
		h.Fatalf("%s: status %d, %v: %s", path, status, err, body)
	}
	return v
}

// begun is the time of snapshot 0: one that is old makes for bad health.
var begun = time.Now().Truncate(time.Second)

// snapshot number n is of n seconds later.
func snapshot(n int) *model.Snapshot {
	return &model.Snapshot{
		Time: begun.Add(time.Duration(n) * time.Second), Source: model.Daemon,
		Processes: []model.Process{
			{PID: 1, State: model.Running, UID: model.Value(0), Name: model.Value("init"), Cmdline: model.Value("init --secret")},
			{PID: 2, State: model.Running, UID: model.Value(1000), Name: model.Value("py"), Cmdline: model.Value("py serve.py")},
		},
	}
}

func TestSnapshot(t *testing.T) {
	h := serve(t, nil)
	first := make(chan string)
	go func() { // asked before there is one: it waits
		_, body := h.get("/v1/snapshot")
		first <- body
	}()
	time.Sleep(20 * time.Millisecond) // it has asked by then; where it has not, the answer is the same
	h.feed.Publish(snapshot(1))
	for i, body := range []string{<-first, func() string { _, b := h.get("/v1/snapshot"); return b }()} {
		got, err := wire.Decode([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		if !got.Time.Equal(snapshot(1).Time) || len(got.Processes) != 2 || got.Processes[0].Cmdline.V != "init --secret" {
			t.Errorf("answer %d: %+v", i, got)
		}
	}
}

func TestWatch(t *testing.T) {
	h := serve(t, nil)
	h.feed.Publish(snapshot(1))
	r, err := h.client.Get("http://ttmond/v1/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewReader(r.Body)
	for n := 1; n <= 3; n++ {
		if n > 1 {
			h.feed.Publish(snapshot(n))
		}
		var event, id, data string
		for {
			line, err := in.ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			key, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
			switch key {
			case "event":
				event = value
			case "id":
				id = value
			case "data":
				data = value
			}
			if line == "\n" {
				break
			}
		}
		s, err := wire.Decode([]byte(data))
		if err != nil || event != "snapshot" || id != fmt.Sprint(n) || !s.Time.Equal(snapshot(n).Time) {
			t.Errorf("event %q, id %q, snapshot of %v, %v; want number %d", event, id, s.Time, err, n)
		}
	}
	var health struct{ Watchers int }
	_, body := h.get("/v1/health") // whatever it says of a snapshot that old
	if err := json.Unmarshal([]byte(body), &health); err != nil || health.Watchers != 1 {
		t.Errorf("%d watchers, want 1: %v", health.Watchers, err)
	}
}

// A watcher that does not read does not keep the others from reading.
func TestSlowWatcher(t *testing.T) {
	h := serve(t, nil)
	big := snapshot(1)
	big.Processes[0].Cmdline = model.Value(strings.Repeat("x", 1<<20))
	h.feed.Publish(big)
	slow, err := net.Dial("unix", h.path)
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Close()
	fmt.Fprint(slow, "GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n")
	for n := range 5 {
		s := *big
		s.Time = s.Time.Add(time.Duration(n) * time.Second)
		h.feed.Publish(&s)
		if status, _ := h.get("/v1/snapshot"); status != 200 {
			t.Fatalf("status %d", status)
		}
	}
}

func TestWatchInterval(t *testing.T) {
	h := serve(t, nil)
	h.feed.Publish(snapshot(1))
	if status, body := h.get("/v1/watch?interval=soon"); status != 400 || !strings.Contains(body, `\"soon\"`) {
		t.Errorf("status %d: %s", status, body)
	}
	r, err := h.client.Get("http://ttmond/v1/watch?interval=1h")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewReader(r.Body)
	if line, err := in.ReadString('\n'); err != nil || line != "event: snapshot\n" {
		t.Errorf("%q, %v", line, err)
	}
}

func fill(l *ledger.Ledger) {
	t0 := time.Now().Add(-time.Minute)
	p := l.Open(ledger.Info{ProcessID: model.ProcessID{PID: 7, StartTicks: 99}, UID: 1000, Name: "py"}, t0)
	events := []ledger.Event{
		{Op: ledger.Alloc, Device: 0, ID: 64, Size: 100},
		{Op: ledger.Alloc, Device: 1, ID: 64, Size: 300, Pool: uint8(model.L1)},
		{Op: ledger.KernelLoad, Device: 1, ID: 5, Size: 20},
		{Op: ledger.Free, Device: 1, ID: 1234},
	}
	l.Apply(p, events[:1], t0)
	l.Apply(p, events[1:], t0.Add(30*time.Second))
	dead := l.Open(ledger.Info{ProcessID: model.ProcessID{PID: 8, StartTicks: 100}, UID: 0, Name: "root's"}, t0)
	l.Apply(dead, events[:2], t0)
	l.End(dead, "exited", t0.Add(time.Second), nil)
	l.Wait()
}

func TestProcesses(t *testing.T) {
	h := serve(t, nil)
	fill(h.ledger)
	list := h.tree("/v1/processes")["processes"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d processes", len(list))
	}
	p := list[0].(map[string]any)
	use := p["devices"].([]any)[1].(map[string]any)
	got := []any{p["pid"], p["name"], p["uid"], p["buffers"], use["device"], use["now"].(map[string]any)["l1_bytes"], p["counters"].(map[string]any)["unknown_frees"]}
	if diff := cmp.Diff([]any{7.0, "py", 1000.0, 3.0, 1.0, 300.0, 1.0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestBuffers(t *testing.T) {
	h := serve(t, nil)
	fill(h.ledger)
	for path, want := range map[string]string{
		"/v1/processes/7/buffers":                      "300 100 20 of 3, 420",
		"/v1/processes/7/buffers?sort=age":             "100 300 20 of 3, 420",
		"/v1/processes/7/buffers?limit=1":              "300 of 3, 420",
		"/v1/processes/7/buffers?device=1&pool=l1":     "300 of 1, 300",
		"/v1/processes/7/buffers?pool=kernel&start=99": "20 of 1, 20",
	} {
		t.Run(path, func(t *testing.T) {
			v := h.tree(path)
			var sizes []string
			for _, b := range v["buffers"].([]any) {
				sizes = append(sizes, fmt.Sprint(b.(map[string]any)["size_bytes"]))
			}
			if got := fmt.Sprintf("%s of %v, %v", strings.Join(sizes, " "), v["total"], v["total_bytes"]); got != want {
				t.Errorf("%s: %s, want %s", path, got, want)
			}
		})
	}
	for path, want := range map[string]int{
		"/v1/processes/8/buffers": 404, "/v1/processes/x/buffers": 400, "/v1/processes/7/buffers?start=1": 404,
		"/v1/processes/7/buffers?limit=0": 400, "/v1/processes/7/buffers?pool=gold": 400,
		"/v1/processes/7/buffers?sort=colour": 400, "/v1/processes/7/buffers?device=-1": 400,
	} {
		t.Run(path, func(t *testing.T) {
			status, body := h.get(path)
			if status != want || !strings.Contains(body, `"error":`) {
				t.Errorf("%s: status %d, want %d: %s", path, status, want, body)
			}
		})
	}
}

func TestLeaks(t *testing.T) {
	h := serve(t, nil)
	fill(h.ledger)
	list := h.tree("/v1/leaks")["leaks"].([]any)
	if len(list) != 1 {
		t.Fatalf("%d leaks", len(list))
	}
	l := list[0].(map[string]any)
	got := []any{l["pid"], l["name"], l["buffers"], l["bytes"], l["largest"].(map[string]any)["size_bytes"], l["reason"]}
	if diff := cmp.Diff([]any{8.0, "root's", 2.0, 400.0, 300.0, "exited"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheRest(t *testing.T) {
	h := serve(t, func(o *Options) {
		o.Dumps = func() []Dump { return []Dump{{Kind: "remaining", PID: 5, Text: "x"}} }
		o.Health = func(_ context.Context, h *Health) { h.PID = 77 }
	})
	if _, body := h.get("/v1/dump"); body != "dump of remaining\n" {
		t.Errorf("dump %q", body)
	}
	if _, body := h.get("/v1/dump?kind=kernels"); body != "dump of kernels\n" {
		t.Errorf("dump %q", body)
	}
	if status, _ := h.get("/v1/dump?kind=cats"); status != 400 {
		t.Errorf("status %d", status)
	}
	if d := h.tree("/v1/dumps")["dumps"].([]any)[0].(map[string]any); d["text"] != "x" {
		t.Errorf("dumps %v", d)
	}
	if v := h.tree("/v1/version"); v["version"] != "1.2.3" {
		t.Errorf("version %v", v)
	}
	if v := h.tree("/v1/health"); v["status"] != "ok" || v["pid"] != 77.0 || v["snapshot_age_s"] != nil {
		t.Errorf("health %v", v)
	}
	old := snapshot(1)
	old.Time = time.Now().Add(-time.Minute)
	h.feed.Publish(old)
	if status, body := h.get("/v1/health"); status != 503 || !strings.Contains(body, `"part":"snapshots"`) {
		t.Errorf("health with a snapshot of %v: status %d, %s", old.Time, status, body)
	}
	if status, body := h.get("/v1/nothing"); status != 404 || !strings.Contains(body, "/v1/nothing") {
		t.Errorf("status %d: %s", status, body)
	}
	r, err := h.client.Post("http://ttmond/v1/snapshot", "text/plain", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	r.Body.Close()
	if r.StatusCode != 405 {
		t.Errorf("POST: status %d", r.StatusCode)
	}
}

// Users are bounded in connections, watchers and large calls; they are told.
func TestLimits(t *testing.T) {
	h := serve(t, func(o *Options) {
		o.Limits = Limits{
			Connections: budget.Limit{PerUID: 1, All: 3}, // root and we are bound by all alone
			Watchers:    budget.Limit{PerUID: 1, All: 1},
			Queries:     budget.Limit{PerUID: 1, All: 1},
		}
	})
	h.feed.Publish(snapshot(1))
	ask := func(target string) (status string, c net.Conn) {
		t.Helper()
		c, err := net.Dial("unix", h.path)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(time.Minute))
		fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", target)
		line, err := bufio.NewReader(c).ReadString('\n')
		if err != nil {
			t.Fatalf("%s: %v", target, err)
		}
		return strings.TrimSpace(line), c
	}
	s, watcher := ask("/v1/watch")
	if s != "HTTP/1.1 200 OK" {
		t.Errorf("the first watcher: %s", s)
	}
	s, second := ask("/v1/watch")
	if s != "HTTP/1.1 429 Too Many Requests" {
		t.Errorf("the second watcher: %s", s)
	}
	s, third := ask("/v1/leaks")
	if s != "HTTP/1.1 200 OK" {
		t.Errorf("a large call: %s", s)
	}
	s, fourth := ask("/v1/version")
	if s != "HTTP/1.1 429 Too Many Requests" {
		t.Errorf("the fourth connection: %s", s)
	}
	for _, c := range []net.Conn{watcher, second, third, fourth} {
		c.Close()
	}
}

// A client that sends nothing, half a request, or half a body, does not stay for ever.
func TestHalfARequest(t *testing.T) {
	h := serve(t, func(o *Options) { o.ReadTimeout = 100 * time.Millisecond })
	for name, send := range map[string]string{
		"nothing":     "",
		"half a head": "GET /v1/version HT",
		"half a body": "GET /v1/version HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\nhalf",
	} {
		t.Run(name, func(t *testing.T) {
			c := h.dial()
			fmt.Fprint(c, send)
			if _, err := io.ReadAll(c); err != nil {
				t.Errorf("the connection was not ended: %v", err)
			}
		})
	}
}

// anna and bert are neither root nor the user who runs the tests.
var anna, bert = os.Getuid() + 1000, os.Getuid() + 1001

// Ids of buffers are for their user and root; so are dumps.
func TestIDsAreHidden(t *testing.T) {
	b := ledger.Buffer{Kind: "kernel", ID: 0x7fff0000}
	if v := viewBuffer(b, false, time.Now()); v.ID != nil {
		t.Errorf("another user sees %#x", *v.ID)
	}
	if v := viewBuffer(b, true, time.Now()); v.ID == nil || *v.ID != b.ID {
		t.Errorf("the owner sees %v", v.ID)
	}
	for _, c := range []struct {
		who  caller
		uid  int
		want bool
	}{
		{caller{uid: 0, exists: true}, anna, true},
		{caller{uid: anna, exists: true}, anna, true},
		{caller{uid: anna, exists: true}, 0, false},
		{caller{}, 0, false}, // over TCP the user is unknown
	} {
		t.Run(fmt.Sprintf("user %d, owner %d", c.who.uid, c.uid), func(t *testing.T) {
			if got := c.who.owns(c.uid); got != c.want {
				t.Errorf("%+v owns what is of %d: %v", c.who, c.uid, got)
			}
		})
	}
}

// The configuration is read again for root, and mistakes are told.
func TestReload(t *testing.T) {
	var problem error
	h := serve(t, func(o *Options) {
		o.Reload = func() ([]string, error) { return []string{"log.level has changed"}, problem }
	})
	post := func() (int, string) {
		r, err := h.client.Post("http://ttmond/v1/reload", "", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Body.Close()
		b, _ := io.ReadAll(r.Body)
		return r.StatusCode, string(b)
	}
	if status, body := post(); status != 200 || !strings.Contains(body, "log.level has changed") {
		t.Errorf("status %d: %s", status, body)
	}
	problem = errors.New("line 3: no such key")
	if status, body := post(); status != 422 || !strings.Contains(body, "line 3") {
		t.Errorf("status %d: %s", status, body)
	}
}

// The description is made once: anybody may ask for it, as often as it takes.
func TestDescriptionIsMadeOnce(t *testing.T) {
	s := New(Options{})
	if a, b := s.description(), s.description(); &a[0] != &b[0] {
		t.Error("it is made again for each request")
	}
}
