package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

func TestMain(m *testing.M) {
	hermetic.Enter(hermetic.Options{})
	goleak.VerifyTestMain(m)
}

// serve answers on a socket of its own with net/http, which ttmond uses.
func serve(t *testing.T, path string, h http.HandlerFunc) (stop func()) {
	t.Helper()
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h}
	done := make(chan struct{})
	go func() { defer close(done); s.Serve(l) }()
	return func() { s.Close(); <-done }
}

func TestSnapshot(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	want := sample.Four()
	defer serve(t, path, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/snapshot" {
			http.NotFound(w, r)
			return
		}
		w.Write(wire.Append(nil, want))
	})()
	c := New(path)
	defer c.Close()
	for range 3 { // over one connection
		got, err := c.Snapshot(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got.Source != model.Daemon || len(got.Devices) != len(want.Devices) {
			t.Errorf("source %s, %d devices", got.Source, len(got.Devices))
		}
	}
}

// TestBodies: a body comes whole, in pieces, or until the end of the connection.
func TestBodies(t *testing.T) {
	long := strings.Repeat("0123456789", 50_000)
	for name, write := range map[string]http.HandlerFunc{
		"whole": func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "hello") },
		"pieces": func(w http.ResponseWriter, r *http.Request) {
			io.WriteString(w, long)
			w.(http.Flusher).Flush()
			io.WriteString(w, long)
		},
		"close": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			io.WriteString(w, "bye")
		},
		"empty": func(w http.ResponseWriter, r *http.Request) {},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			defer serve(t, path, write)()
			c := New(path)
			defer c.Close()
			want := map[string]string{"whole": "hello", "pieces": long + long, "close": "bye", "empty": ""}[name]
			for range 2 {
				got, err := c.get(t.Context(), "/")
				if err != nil || string(got) != want {
					t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
				}
			}
		})
	}
}

// TestRestart: a daemon that was restarted is asked again, once.
func TestRestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	answer := func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "{}") }
	stop := serve(t, path, answer)
	c := New(path)
	defer c.Close()
	if _, err := c.get(t.Context(), "/"); err != nil {
		t.Fatal(err)
	}
	stop()
	defer serve(t, path, answer)()
	if _, err := c.get(t.Context(), "/"); err != nil {
		t.Errorf("after a restart: %v", err)
	}
}

func TestErrors(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	if _, err := New(path).Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("no daemon: %v", err)
	}
	hold := make(chan struct{})
	defer serve(t, path, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.Contains(r.URL.Path, "buffers"):
			w.WriteHeader(http.StatusNotFound)
			io.WriteString(w, `{"error":"process 7 does not report"}`)
		case r.URL.Path == "/hang":
			<-hold
		default:
			w.WriteHeader(http.StatusServiceUnavailable)
			io.WriteString(w, `{"error":"starting"}`)
		}
	})()
	defer close(hold)
	c := New(path)
	defer c.Close()
	if _, err := c.Snapshot(t.Context()); err == nil || !strings.Contains(err.Error(), "starting") {
		t.Errorf("a daemon that cannot: %v", err)
	}
	if _, err := c.Buffers(t.Context(), 7, 1, 10); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "does not report") {
		t.Errorf("a process it does not know: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if _, err := c.get(ctx, "/hang"); err == nil {
		t.Error("a daemon that does not answer was waited for")
	}
}

func TestBuffers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s")
	born := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	defer serve(t, path, func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprintf(w, `{"buffers":[{"kind":"buffer","device":2,"index":3,"chip":"R","pool":"dram","id":4096,"size_bytes":1024,"allocated":%q,"age_s":1}]}`, born.Format(time.RFC3339))
	})()
	c := New(path)
	defer c.Close()
	got, err := c.Buffers(t.Context(), 7, 1, 10)
	id, index := uint64(4096), 3
	if diff := cmp.Diff([]apitype.Buffer{{Kind: "buffer", Device: 2, Index: &index, Chip: "R", Pool: "dram", ID: &id, Size: 1024, Born: born, Age: 1}}, got.Buffers); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// Points get the bounds of their companions, and are no better than unsure
// where there is none.
func TestBind(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	list := []Series{
		{Labels: map[string]string{"__name__": "used", "pci": "a"}, Points: []Point{{Time: at(1)}, {Time: at(2)}, {Time: at(3)}}},
		{Labels: map[string]string{"__name__": "used", "pci": "b"}, Points: []Point{{Time: at(1)}}},
	}
	bind(list, []Series{{Labels: map[string]string{"__name__": "bound", "pci": "a"}, Points: []Point{{Time: at(1), Value: 0}, {Time: at(2), Value: 1}}}})
	var got []model.Bound
	for _, s := range list {
		for _, p := range s.Points {
			got = append(got, p.Bound)
		}
	}
	if want := []model.Bound{model.Exact, model.AtLeast, model.Unsure, model.Unsure}; !slices.Equal(got, want) {
		t.Errorf("bounds %v, want %v", got, want)
	}
}
