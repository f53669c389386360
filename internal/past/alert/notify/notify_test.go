package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/past/alert"
)

var quiet = slog.New(slog.DiscardHandler)

func alerts(status alert.Status, summaries ...string) (list []*alert.Alert) {
	for _, s := range summaries {
		list = append(list, &alert.Alert{
			Labels: map[string]string{"alertname": "ChipHung", "severity": "critical", "device": s}, Status: status,
			Annotations: map[string]string{"summary": "device " + s + " hangs", "description": "Reset it."}, ActiveAt: time.Unix(1_800_000_000, 0),
		})
	}
	return list
}

// flaky is a target that fails a few times.
type flaky struct {
	mu   sync.Mutex
	fail int
	err  error
	got  []*Message
}

func (f *flaky) Name() string { return "flaky" }

func (f *flaky) Send(ctx context.Context, m *Message) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.fail > 0 {
		f.fail--
		return f.err
	}
	f.got = append(f.got, m)
	return nil
}

func (f *flaky) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.got)
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// A message is sent until it is taken, once, in order, and over a restart.
func TestOutbox(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.json")
	first := &flaky{fail: 1 << 30, err: errors.New("away")}
	o := New(path, []Target{first}, quiet)
	o.retry = time.Millisecond
	o.Put("node1", alerts(alert.Firing, "0", "1"))
	o.Put("node1", alerts(alert.Resolved, "0"))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { o.Run(ctx); close(done) }()
	until(t, "attempts", func() bool { first.mu.Lock(); defer first.mu.Unlock(); return first.fail < 1<<30-2 })
	cancel()
	<-done
	second := &flaky{fail: 2, err: errors.New("away")}
	o = New(path, []Target{second}, quiet)
	o.retry = time.Millisecond
	ctx, cancel = context.WithCancel(context.Background())
	done = make(chan struct{})
	go func() { o.Run(ctx); close(done) }()
	until(t, "the messages", func() bool { return second.count() == 2 })
	cancel()
	<-done
	if second.got[0].Status != alert.Firing || len(second.got[0].Alerts) != 2 || second.got[1].Status != alert.Resolved {
		t.Errorf("got %+v", second.got)
	}
	if again := New(path, []Target{second}, quiet); len(again.queues["flaky"]) != 0 {
		t.Error("what was taken is still to be sent")
	}
}

// named is a target that takes everything.
type named string

func (n named) Name() string                         { return string(n) }
func (n named) Send(context.Context, *Message) error { return nil }

// Many targets are done at once: the file has what is left in the end.
func TestOutboxOfManyTargets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "outbox.json")
	var targets []Target
	for i := range 16 {
		targets = append(targets, named(fmt.Sprint("target ", i)))
	}
	o := New(path, targets, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { o.Run(ctx); close(done) }()
	for range 20 {
		o.Put("node1", alerts(alert.Firing, "0"))
	}
	until(t, "all messages", func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		for _, q := range o.queues {
			if len(q) > 0 {
				return false
			}
		}
		return true
	})
	cancel()
	<-done
	b, err := os.ReadFile(path)
	var left map[string][]*Message
	if err == nil {
		err = json.Unmarshal(b, &left)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, b)
	}
	for name, q := range left {
		if len(q) > 0 {
			t.Errorf("%s: %d messages are still in the file", name, len(q))
		}
	}
}

func TestHopelessIsGivenUp(t *testing.T) {
	f := &flaky{fail: 1, err: permanent{errors.New("no such page")}}
	o := New("", []Target{f}, quiet)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go o.Run(ctx)
	o.Put("node1", alerts(alert.Firing, "0"))
	o.Put("node1", alerts(alert.Firing, "1"))
	until(t, "the second", func() bool { return f.count() == 1 })
	if o.Dropped() != 1 {
		t.Errorf("%d dropped", o.Dropped())
	}
}

func TestQueueIsBounded(t *testing.T) {
	o := New("", []Target{&flaky{}}, quiet)
	for range maxQueue + 7 {
		o.Put("node1", alerts(alert.Firing, "0"))
	}
	if len(o.queues["flaky"]) != maxQueue || o.Dropped() != 7 {
		t.Errorf("%d queued, %d dropped", len(o.queues["flaky"]), o.Dropped())
	}
}

func TestWebhook(t *testing.T) {
	var body []byte
	status := 200
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		w.WriteHeader(status)
	}))
	defer web.Close()
	m := &Message{ID: "1", Host: "node1", Status: alert.Firing, Alerts: alerts(alert.Firing, "0", "1")}
	hook := &Webhook{URL: web.URL + "/secret", Client: web.Client()}
	if err := hook.Send(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Version, Status, Receiver string
		CommonLabels              map[string]string
		Alerts                    []struct {
			Status, Fingerprint string
			Labels              map[string]string
		}
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Version != "4" || got.Status != "firing" || len(got.Alerts) != 2 ||
		got.Alerts[1].Labels["host"] != "node1" || got.CommonLabels["alertname"] != "ChipHung" || got.CommonLabels["device"] != "" ||
		got.Alerts[0].Fingerprint == got.Alerts[1].Fingerprint {
		t.Errorf("%v: %s", err, body)
	}
	slack := &Webhook{URL: web.URL, Slack: true, Client: web.Client()}
	if err := slack.Send(context.Background(), m); err != nil || !strings.Contains(string(body), `"text":"[FIRING] ChipHung on node1: device 0 hangs (and 1 more)"`) {
		t.Errorf("%v: %s", err, body)
	}
	if strings.Contains(hook.Name(), "secret") {
		t.Errorf("the name %q tells a secret", hook.Name())
	}
	for code, hopeless := range map[int]bool{404: true, 500: false, 429: false} {
		t.Run(fmt.Sprint(code), func(t *testing.T) {
			status = code
			_, is := errors.AsType[permanent](hook.Send(context.Background(), m))
			if is != hopeless {
				t.Errorf("hopeless is %v", is)
			}
		})
	}
}

func TestCommand(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	m := &Message{ID: "1", Host: "node1", Status: alert.Firing, Alerts: alerts(alert.Firing, "0")}
	c := &Command{Run: []string{"/bin/sh", "-c", `id -u >` + dir + `/who; echo "$TTMON_SUMMARY" >` + dir + `/said; cat >` + dir + `/in; env >` + dir + `/env`}, User: "nobody"}
	if err := c.Send(context.Background(), m); err != nil {
		t.Fatal(err)
	}
	read := func(name string) string { b, _ := os.ReadFile(filepath.Join(dir, name)); return string(b) }
	if os.Geteuid() == 0 && strings.TrimSpace(read("who")) == "0" {
		t.Error("it ran as root")
	}
	if read("said") != "device 0 hangs\n" || !strings.Contains(read("in"), `"alertname":"ChipHung"`) || strings.Contains(read("env"), "GOPATH") {
		t.Errorf("said %q, in %q, env %q", read("said"), read("in"), read("env"))
	}
	if err := (&Command{Run: []string{"/bin/sh", "-c", "echo broken >&2; exit 3"}, User: "nobody"}).Send(context.Background(), m); err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("a failure: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := (&Command{Run: []string{"/bin/sh", "-c", "sleep 600"}, User: "nobody"}).Send(ctx, m); err == nil || !strings.Contains(err.Error(), "timed out") {
		t.Errorf("one that hangs: %v", err)
	}
	if os.Geteuid() == 0 {
		if err := (&Command{Run: []string{"/bin/true"}, User: "root"}).Send(context.Background(), m); err == nil {
			t.Error("it runs as root")
		}
	}
}

func TestMail(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	_ = os.Chmod(dir, 0o777)
	sendmail := filepath.Join(dir, "sendmail")
	if err := os.WriteFile(sendmail, []byte("#!/bin/sh\necho \"$@\" >"+dir+"/args\ncat >"+dir+"/mail\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	list := alerts(alert.Firing, "0")
	list[0].Annotations["summary"] = "device 0\nBcc: evil@example.org"
	mail := &Mail{Sendmail: sendmail, To: []string{"ops@example.org"}, User: "nobody"}
	if err := mail.Send(context.Background(), &Message{Host: "node1", Status: alert.Firing, Alerts: list}); err != nil {
		t.Fatal(err)
	}
	b, _ := os.ReadFile(filepath.Join(dir, "mail"))
	head, _, _ := strings.Cut(string(b), "\n\n")
	if !strings.Contains(head, "To: ops@example.org\n") || strings.Contains(head, "\nBcc:") || !strings.Contains(head, "Subject: ") {
		t.Errorf("the head:\n%s", head)
	}
	if args, _ := os.ReadFile(filepath.Join(dir, "args")); string(args) != "-i -- ops@example.org\n" {
		t.Errorf("args %q", args)
	}
}

// A webhook that accepts the connection and never answers delays no other target,
// is retried, and gets the message once it answers.
func TestWebhookThatHangs(t *testing.T) {
	var heard, healthy atomic.Int64
	wake := make(chan struct{})
	stuck := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		select {
		case <-wake:
			heard.Add(1)
		case <-r.Context().Done():
		}
	}))
	defer stuck.Close()
	well := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { healthy.Add(1) }))
	defer well.Close()
	client := &http.Client{}
	defer client.CloseIdleConnections()
	o := New("", []Target{&Webhook{URL: stuck.URL, Client: client}, &Webhook{URL: well.URL, Client: client}}, quiet)
	o.limit, o.retry = 500*time.Millisecond, time.Millisecond
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { o.Run(ctx); close(done) }()
	for range 3 {
		o.Put("host", []*alert.Alert{{Labels: map[string]string{"alertname": "A"}, Status: alert.Firing}})
	}
	await := func(what string, ok func() bool) {
		t.Helper()
		for end := time.Now().Add(time.Minute); !ok(); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("not within a minute: %s", what)
			}
		}
	}
	await("the other one has all", func() bool { return healthy.Load() >= 3 })
	if heard.Load() != 0 {
		t.Error("the stuck one answered")
	}
	close(wake)
	await("the stuck one has all", func() bool { return heard.Load() >= 3 })
	cancel()
	<-done
}
