package remotewrite

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/klauspost/compress/s2"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/prompb"
	writev2 "github.com/prometheus/prometheus/prompb/io/prometheus/write/v2"
	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/view/prom"
)

var (
	t0    = time.Unix(1_800_000_000, 0)
	power = &prom.Family{Name: "tenstorrent_core_power_watts", Type: "gauge"}
)

// engine takes remote writes, or does not.
type engine struct {
	mu     sync.Mutex
	status int
	got    []string
	v2     bool
}

func (e *engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.status != 0 {
		http.Error(w, "not now", e.status)
		return
	}
	b, _ := io.ReadAll(r.Body)
	raw, err := s2.Decode(nil, b)
	if err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	if e.v2 {
		var q writev2.Request
		if err := q.Unmarshal(raw); err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		for _, ts := range q.Timeseries {
			text := ""
			for i := 0; i < len(ts.LabelsRefs); i += 2 {
				text += q.Symbols[ts.LabelsRefs[i]] + "=" + q.Symbols[ts.LabelsRefs[i+1]] + " "
			}
			e.got = append(e.got, fmt.Sprintf("%s%v %s", text, ts.Samples[0].Value, ts.Metadata.Type))
		}
		return
	}
	var q prompb.WriteRequest
	if err := q.Unmarshal(raw); err != nil {
		http.Error(w, err.Error(), 400)
		return
	}
	for _, ts := range q.Timeseries {
		text := ""
		for _, l := range ts.Labels {
			text += l.Name + "=" + l.Value + " "
		}
		v := fmt.Sprint(ts.Samples[0].Value)
		if math.Float64bits(ts.Samples[0].Value) == value.StaleNaN {
			v = "stale"
		}
		e.got = append(e.got, fmt.Sprintf("%s%s @%d", text, v, ts.Samples[0].Timestamp/1000-t0.Unix()))
	}
}

func (e *engine) set(status int) { e.mu.Lock(); e.status = status; e.mu.Unlock() }

func (e *engine) heard() []string {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]string(nil), e.got...)
}

func sender(t *testing.T, e *engine, dir string) *Sender {
	t.Helper()
	web := httptest.NewServer(e)
	t.Cleanup(web.Close)
	s := New(Options{
		URL: web.URL, V2: e.v2, Interval: time.Second, External: map[string]string{"host": "node1", "rack": "7"}, Dir: dir, MaxBytes: 1 << 20,
		Client: web.Client(), Log: slog.New(slog.DiscardHandler),
	})
	s.retry = time.Millisecond
	return s
}

func take(s *Sender, second int, watts ...float64) {
	s.Enqueue(func(each func(time.Time, func(prom.Emit))) {
		each(t0.Add(time.Duration(second)*time.Second), func(emit prom.Emit) {
			for i, w := range watts {
				emit(power, prom.Pairs("device", fmt.Sprint(i)), w)
			}
		})
	})
}

func run(t *testing.T, s *Sender) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { s.Run(ctx); close(done) }()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return stop
}

func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for limit := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(limit) {
			t.Fatalf("timed out waiting for %s", what)
		}
	}
}

// What was sampled during an outage, and before a restart, arrives in order.
func TestOutage(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "remote")
	s := sender(t, &engine{status: 503}, dir)
	stop := run(t, s)
	take(s, 0, 10, 20)
	take(s, 1, 11, 21)
	until(t, "a failure", func() bool { return s.Stats().Failed > 1 })
	stop()
	e := &engine{} // another: the first may still be looking at a request that was given up
	again := sender(t, e, dir)
	take(again, 2, 12)
	take(again, 3) // the device is gone
	run(t, again)
	until(t, "all of it", func() bool { return len(e.heard()) == 6 })
	name := "__name__=tenstorrent_core_power_watts "
	want := []string{
		name + "device=0 host=node1 rack=7 10 @0", name + "device=1 host=node1 rack=7 20 @0",
		name + "device=0 host=node1 rack=7 11 @1", name + "device=1 host=node1 rack=7 21 @1",
		name + "device=0 host=node1 rack=7 12 @2", name + "device=0 host=node1 rack=7 stale @3",
	}
	if diff := cmp.Diff(want, e.heard()); diff != "" {
		t.Error(diff)
	}
	until(t, "an empty buffer", func() bool { return again.Stats().Queued == 0 })
}

func TestProtocol2(t *testing.T) {
	e := &engine{v2: true}
	s := sender(t, e, t.TempDir())
	run(t, s)
	take(s, 0, 10)
	until(t, "it", func() bool { return len(e.heard()) == 1 })
	if got := e.heard()[0]; got != "__name__=tenstorrent_core_power_watts device=0 host=node1 rack=7 10 METRIC_TYPE_GAUGE" {
		t.Errorf("got %q", got)
	}
}

// What the engine refuses for good does not block what follows.
func TestRefusal(t *testing.T) {
	e := &engine{status: 400}
	s := sender(t, e, t.TempDir())
	run(t, s)
	take(s, 0, 1)
	until(t, "the refusal", func() bool { return s.Stats().Dropped == 1 })
	e.set(0)
	take(s, 1, 2)
	until(t, "the next", func() bool { return len(e.heard()) == 1 })
}

func TestBufferIsBounded(t *testing.T) {
	q := openSpool(filepath.Join(t.TempDir(), "q"), 1000)
	for i := range 20 {
		if err := q.put(int64(i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	if n, bytes, dropped := q.stats(); n != 10 || bytes != 1000 || dropped != 10 {
		t.Errorf("%d requests, %d bytes, %d dropped", n, bytes, dropped)
	}
	if ms, _, ok := q.first(); !ok || ms != 10 {
		t.Errorf("the first is %d", ms)
	}
}

// Without a disk a little is kept in memory, and all is sent.
func TestNoDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	e := &engine{}
	s := sender(t, e, filepath.Join(file, "remote"))
	take(s, 0, 1)
	take(s, 1, 2)
	run(t, s)
	until(t, "both", func() bool { return len(e.heard()) == 2 })
}

// What is buffered is not lost because there is no free descriptor to read it.
func TestNoDescriptor(t *testing.T) {
	q := openSpool(filepath.Join(t.TempDir(), "q"), 1000)
	for i := range 3 {
		if err := q.put(int64(i), make([]byte, 100)); err != nil {
			t.Fatal(err)
		}
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	none := old
	none.Cur = 0
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &none); err != nil {
		t.Fatal(err)
	}
	_, _, ok := q.first()
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	if n, _, dropped := q.stats(); ok || n != 3 || dropped != 0 {
		t.Errorf("read: %v, %d are left, %d dropped", ok, n, dropped)
	}
	if ms, _, ok := q.first(); !ok || ms != 0 {
		t.Errorf("with descriptors: %d, %v", ms, ok)
	}
}

// A damaged file is passed over.
func TestDamagedBuffer(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "5"+suffix), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	e := &engine{v2: true}
	s := sender(t, e, dir)
	take(s, 9, 1)
	run(t, s)
	until(t, "what follows", func() bool { return len(e.heard()) == 1 })
}
