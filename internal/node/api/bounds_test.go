package api

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
)

// What is larger than a request of ours is refused with a status, and the connection
// ends.
func TestRequestBounds(t *testing.T) {
	h := serve(t, nil)
	const host = "Host: ttmond\r\n"
	fields := func(n int) string { return strings.Repeat("A: b\r\n", n) }
	for name, x := range map[string]struct{ send, want string }{
		"no request line":       {"nonsense\r\n\r\n", "400"},
		"negative length":       {"POST /v1/session HTTP/1.1\r\n" + host + "Content-Length: -1\r\n\r\n", "400"},
		"body too large":        {"POST /v1/session HTTP/1.1\r\n" + host + "Content-Length: 9999999\r\n\r\n", "413"},
		"one line without end":  {"GET /" + strings.Repeat("a", 32<<10), "431"},
		"head of many bytes":    {"GET /v1/version HTTP/1.1\r\n" + host + strings.Repeat("A: "+strings.Repeat("b", 999)+"\r\n", 17) + "\r\n", "431"},
		"too many fields":       {"GET /v1/version HTTP/1.1\r\n" + host + fields(maxFields+1) + "Connection: close\r\n\r\n", "431"},
		"as many fields as may": {"GET /v1/version HTTP/1.1\r\n" + host + fields(maxFields-1) + "Connection: close\r\n\r\n", "200"},
	} {
		t.Run(name, func(t *testing.T) {
			c := h.dial()
			go func() {
				_, _ = io.WriteString(c, x.send)
				_ = c.(*net.UnixConn).CloseWrite()
			}()
			b, _ := io.ReadAll(c) // a reset once it does not read on is as good as an end
			if got := strings.Fields(string(b) + " - -")[1]; got != x.want {
				t.Errorf("answered %.60q", b)
			}
		})
	}
}

// A body of unknown length is read up to the same bound.
func TestChunkedBodyIsBounded(t *testing.T) {
	read := make(chan error, 1)
	web := bounded(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, err := io.Copy(io.Discard, r.Body)
		read <- err
	}))
	r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(make([]byte, maxBody+1)))
	r.ContentLength = -1
	web.ServeHTTP(httptest.NewRecorder(), r)
	if _, ok := errors.AsType[*http.MaxBytesError](<-read); !ok {
		t.Error("all of it was read")
	}
}

// A stream outlives the time that a client has to send its request, and ends with the
// server: whole, so that the client does not take it for a failure.
func TestStreamEndsWithTheServer(t *testing.T) {
	h := serve(t, func(o *Options) { o.ReadTimeout = 50 * time.Millisecond })
	h.feed.Publish(snapshot(1))
	r, err := h.client.Get("http://ttmond/v1/watch")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	in := bufio.NewReader(r.Body)
	first, err := in.ReadString('\n')
	if err != nil || first != "event: snapshot\n" {
		t.Fatalf("%v: %q", err, first)
	}
	time.Sleep(100 * time.Millisecond) // the time to send a request is over; nothing must happen
	h.feed.Publish(snapshot(2))
	for line := ""; line != "id: 2\n"; {
		if line, err = in.ReadString('\n'); err != nil {
			t.Fatalf("waiting for the second snapshot: %v", err)
		}
	}
	h.stop()
	if _, err := io.Copy(io.Discard, in); err != nil {
		t.Errorf("the stream was broken off: %v", err)
	}
}

// The place of a watcher that has left is free.
func TestWatcherLeaves(t *testing.T) {
	h := serve(t, nil)
	h.feed.Publish(snapshot(1))
	c := h.dial()
	fmt.Fprint(c, "GET /v1/watch HTTP/1.1\r\nHost: x\r\n\r\n")
	if _, err := bufio.NewReader(c).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	c.Close()
	for end := time.Now().Add(time.Minute); h.server.budgets.watchers.State().Used > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("it still counts as a watcher")
		}
	}
}

// One call that panics ends its connection, and the log has it; others are answered.
func TestPanic(t *testing.T) {
	var log lockedBuffer
	h := serve(t, func(o *Options) {
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		o.Dump = func(string, int, bool) string { panic("on purpose") }
	})
	if r, err := h.client.Get("http://ttmond/v1/dump"); err == nil {
		r.Body.Close()
		t.Errorf("answered %s", r.Status)
	}
	if status, _ := h.get("/v1/version"); status != 200 {
		t.Errorf("status %d", status)
	}
	if text := log.String(); !strings.Contains(text, "on purpose") || !strings.Contains(text, "level=ERROR") {
		t.Errorf("the log has %q", text)
	}
}

type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
