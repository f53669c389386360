package httpguard

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestGuard(t *testing.T) {
	const host = "127.0.0.1:9108"
	page := func(path string) bool { return path == "/" }
	h := Guard(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), Options{OnlyLocal: true, Page: page})
	for _, c := range []struct {
		name, method, path, host string
		header                   map[string]string
		want                     int
	}{
		{"curl", "GET", "/prometheus/api/v1/query", host, nil, 200},
		{"localhost", "GET", "/", "localhost:9108", nil, 200},
		{"IPv6", "GET", "/", "[::1]:9108", nil, 200},
		{"rebound name", "GET", "/", "evil.example:9108", nil, 403},
		{"own page", "GET", "/api/v1/range", host, map[string]string{"Sec-Fetch-Site": "same-origin"}, 200},
		{"own page behind a proxy", "POST", "/api/v1/session", host, map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": "https://mon.example"}, 200},
		{"typed", "GET", "/api/v1/snapshot", host, map[string]string{"Sec-Fetch-Site": "none"}, 200},
		{"foreign page", "GET", "/prometheus/api/v1/query", host, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"another port", "GET", "/prometheus/api/v1/query", host, map[string]string{"Sec-Fetch-Site": "same-site"}, 403},
		{"link to the page", "GET", "/", host, map[string]string{"Sec-Fetch-Site": "cross-site"}, 200},
		{"foreign form to the page", "POST", "/", host, map[string]string{"Sec-Fetch-Site": "cross-site"}, 403},
		{"foreign origin", "GET", "/metrics", host, map[string]string{"Origin": "http://evil.example"}, 403},
		{"sandboxed frame", "GET", "/metrics", host, map[string]string{"Origin": "null"}, 403},
		{"own origin", "POST", "/api/v1/session", host, map[string]string{"Origin": "http://127.0.0.1:9108"}, 200},
		{"foreign image, old browser", "GET", "/metrics", host, map[string]string{"Referer": "http://evil.example/x.html"}, 403},
		{"own image, old browser", "GET", "/metrics", host, map[string]string{"Referer": "http://127.0.0.1:9108/x"}, 200},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(c.method, c.path, nil)
			r.Host = c.host
			for k, v := range c.header {
				r.Header.Set(k, v)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != c.want {
				t.Errorf("%d %s, want %d", w.Code, w.Body, c.want)
			}
		})
	}
}

// start serves h with at most n connections.
func start(t *testing.T, n int, h http.HandlerFunc) *Listener {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := NewListener(inner, n)
	s := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute}
	Attach(s)
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
	return l
}

func dial(t *testing.T, l *Listener) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func scrape(t *testing.T, l *Listener) string {
	t.Helper()
	c := dial(t, l)
	if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func (l *Listener) await(t *testing.T, what string, ok func(Stats) bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !ok(l.Stats()); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waiting for %s: %+v", what, l.Stats())
		}
	}
}

// Connections that send nothing, half a request, or nothing more, do not keep
// a scrape out.
func TestUnusedConnections(t *testing.T) {
	for name, begin := range map[string]string{
		"silent":       "",
		"half a head":  "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ",
		"kept alive":   "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
		"half a verb":  "G",
		"not a method": "\x16\x03\x01",
	} {
		t.Run(name, func(t *testing.T) {
			l := start(t, 8, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "fine") })
			for range 20 {
				c := dial(t, l)
				if _, err := io.WriteString(c, begin); err != nil {
					t.Fatal(err)
				}
				if name == "kept alive" { // its answer has come
					if _, err := c.Read(make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
				}
			}
			for range 3 {
				if got := scrape(t, l); !strings.HasSuffix(got, "fine") {
					t.Errorf("scrape: %q", got)
				}
			}
			if s := l.Stats(); s.Open > 8 {
				t.Errorf("%+v", s)
			}
		})
	}
}

// Requests under way are not broken off for newcomers.
func TestUsedConnections(t *testing.T) {
	release := make(chan struct{})
	l := start(t, 4, func(w http.ResponseWriter, _ *http.Request) {
		<-release
		_, _ = io.WriteString(w, "fine")
	})
	answers := make(chan string, 4)
	for range 4 {
		go func() { answers <- scrape(t, l) }()
	}
	serving4 := func(Stats) bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		n := 0
		for c := range l.conns {
			if c.phase == serving {
				n++
			}
		}
		return n == 4
	}
	l.await(t, "four requests", serving4)
	if n, err := dial(t, l).Read(make([]byte, 1)); n != 0 || err == nil {
		t.Error("one too many was let in")
	}
	close(release)
	for range 4 {
		if got := <-answers; !strings.HasSuffix(got, "fine") {
			t.Errorf("broken off: %q", got)
		}
	}
	l.await(t, "places to be given back", func(s Stats) bool { return s.Open == 0 })
	if s := l.Stats(); s.Refused != 1 || s.Evicted != 0 {
		t.Errorf("%+v", s)
	}
}

// A client that does not read its answer is replaced, once that is plain.
func TestUnreadAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewListener(nil, 1)
		ours, theirs := net.Pipe()
		defer theirs.Close()
		c, _ := l.admit(ours)
		c.enter(serving)
		done := make(chan error)
		go func() {
			_, err := c.Write([]byte("never read"))
			done <- err
		}()
		synctest.Wait()
		next, _ := net.Pipe()
		if got, _ := l.admit(next); got != nil {
			t.Fatal("an answer under way was broken off at once")
		}
		time.Sleep(stuckAfter)
		got, victim := l.admit(next)
		if got == nil || victim != c {
			t.Fatalf("no room: %v, %v", got, victim)
		}
		_ = victim.Close()
		if err := <-done; err == nil {
			t.Error("the write succeeded")
		}
	})
}

// TestReserve: requests that last, and connections that are opened meanwhile, do not
// keep a scrape out.
func TestReserve(t *testing.T) {
	const conns, most = 8, 6
	for name, request := range map[string]string{
		"long answers":   "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n",
		"long questions": "POST /slow HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			release, begun := make(chan struct{}), make(chan struct{}, conns)
			defer close(release)
			slow := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/slow" {
					begun <- struct{}{}
					<-release
				}
				_, _ = io.WriteString(w, "fine")
			})
			l := start(t, conns, Reserve(slow, most, func(path string) bool { return path == "/metrics" }).ServeHTTP)
			for range conns {
				c, refused := dial(t, l), make(chan struct{})
				if _, err := io.WriteString(c, request); err != nil {
					t.Fatal(err)
				}
				go func() { defer close(refused); _, _ = c.Read(make([]byte, 1)) }()
				select {
				case <-begun:
				case <-refused:
				}
			}
			for range conns {
				dial(t, l) // and sends nothing
			}
			for range 3 {
				if got := scrape(t, l); !strings.HasSuffix(got, "fine") {
					t.Errorf("scrape: %q", got)
				}
			}
		})
	}
}
