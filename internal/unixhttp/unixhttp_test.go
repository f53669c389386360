package unixhttp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"
)

// start serves h on a socket until the test ends.
func start(t *testing.T, h Handler, change func(*Server)) (path string, stop context.CancelFunc) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{
		Handler: h, HeadTimeout: 10 * time.Second, BodyTimeout: 10 * time.Second, WriteTimeout: 10 * time.Second, IdleTimeout: time.Minute,
		Grace: 10 * time.Millisecond, Log: slog.New(slog.DiscardHandler),
	}
	if change != nil {
		change(s)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, l) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Errorf("serving: %v", err)
		}
	})
	return path, stop
}

func dial(t *testing.T, path string) net.Conn {
	t.Helper()
	c, err := net.Dial("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// client is net/http's, which is strict about what it is answered.
func client(t *testing.T, path string) *http.Client {
	tr := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", path)
	}}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func echo(w Writer, r *Request) {
	w.Header().Set("Content-Type", "text/plain")
	fmt.Fprintf(w, "%s %s %s ", r.Method, r.URL.Path, r.URL.RawQuery)
	_, _ = io.Copy(w, r.Body)
}

// What net/http's client is answered: short and long answers, bodies, one
// connection for all of them.
func TestNetHTTPClient(t *testing.T) {
	long := strings.Repeat("0123456789", 5000)
	var mux Mux
	mux.HandleFunc("/echo", echo)
	mux.HandleFunc("GET /long", func(w Writer, _ *Request) { _, _ = io.WriteString(w, long[:10]); _, _ = io.WriteString(w, long[10:]) })
	mux.HandleFunc("GET /declared", func(w Writer, _ *Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(long)))
		_, _ = io.WriteString(w, long)
	})
	mux.HandleFunc("GET /empty", func(Writer, *Request) {})
	mux.HandleFunc("GET /gone", func(w Writer, _ *Request) { w.WriteHeader(StatusGone) })
	conns := 0
	path, _ := start(t, &mux, func(s *Server) {
		s.ConnContext = func(ctx context.Context, _ net.Conn) context.Context { conns++; return ctx }
	})
	c := client(t, path)
	for _, x := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"GET", "/echo?a=b%20c", "", 200, "GET /echo a=b%20c "},
		{"POST", "/echo", "hello", 200, "POST /echo  hello"},
		{"POST", "/echo", long, 200, "POST /echo  " + long},
		{"GET", "/long", "", 200, long},
		{"GET", "/declared", "", 200, long},
		{"HEAD", "/declared", "", 200, ""},
		{"HEAD", "/long", "", 200, ""},
		{"GET", "/empty", "", 200, ""},
		{"GET", "/gone", "", 410, ""},
		{"GET", "/nowhere", "", 404, ""},
		{"DELETE", "/long", "", 404, ""},
	} {
		t.Run(fmt.Sprintf("%s %s, %d bytes", x.method, x.target, len(x.body)), func(t *testing.T) {
			r, err := http.NewRequest(x.method, "http://unix"+x.target, strings.NewReader(x.body))
			if err != nil {
				t.Fatal(err)
			}
			answer, err := c.Do(r)
			if err != nil {
				t.Fatalf("%s %s: %v", x.method, x.target, err)
			}
			b, err := io.ReadAll(answer.Body)
			answer.Body.Close()
			if err != nil || answer.StatusCode != x.status || string(b) != x.want {
				t.Errorf("%s %s: %v, %d, %d bytes %.40q", x.method, x.target, err, answer.StatusCode, len(b), b)
			}
		})
	}
	if conns != 1 {
		t.Errorf("%d connections instead of one that is kept", conns)
	}
}

// What is no request is refused with a status, and the connection ends.
func TestMalformed(t *testing.T) {
	path, _ := start(t, HandlerFunc(echo), nil)
	for name, x := range map[string]struct{ send, want string }{
		"no request line":        {"nonsense\r\n\r\n", "400"},
		"method with a colon":    {"G:T / HTTP/1.1\r\n\r\n", "400"},
		"HTTP/2":                 {"PRI * HTTP/2.0\r\n\r\n", "505"},
		"relative path":          {"GET v1 HTTP/1.1\r\n\r\n", "400"},
		"bad escape":             {"GET /%zz HTTP/1.1\r\n\r\n", "400"},
		"folded field":           {"GET / HTTP/1.1\r\nA: b\r\n c\r\n\r\n", "400"},
		"space before colon":     {"GET / HTTP/1.1\r\nA : b\r\n\r\n", "400"},
		"control byte":           {"GET / HTTP/1.1\r\nA: b\x00\r\n\r\n", "400"},
		"chunked":                {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", "411"},
		"two lengths":            {"POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\nx", "400"},
		"negative length":        {"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n", "400"},
		"body too large":         {"POST / HTTP/1.1\r\nContent-Length: 9999999\r\n\r\n", "413"},
		"one line without end":   {"GET /" + strings.Repeat("a", 2*maxHead), "431"},
		"fields without end":     {"GET / HTTP/1.1\r\n" + strings.Repeat("A: b\r\n", maxFields+1), "431"},
		"head of many bytes":     {"GET / HTTP/1.1\r\n" + strings.Repeat("A: "+strings.Repeat("b", 999)+"\r\n", 20), "431"},
		"nothing before it ends": {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			c := dial(t, path)
			go func() {
				_, _ = io.WriteString(c, x.send)
				_ = c.(*net.UnixConn).CloseWrite()
			}()
			b, _ := io.ReadAll(c) // a reset once it does not read on is as good as an end
			got := strings.Fields(string(b) + " - -")[1]
			if x.want == "" && len(b) > 0 || x.want != "" && got != x.want {
				t.Errorf("answered %.60q", b)
			}
		})
	}
}

// Requests that were sent together are answered one after another; HTTP/1.0 and
// Connection: close end the connection.
func TestPipelinedAndOld(t *testing.T) {
	path, _ := start(t, HandlerFunc(func(w Writer, r *Request) {
		_, _ = io.WriteString(w, r.URL.Path)
		_ = w.Flush() // so its length is not known
		_, _ = io.WriteString(w, "!")
	}), nil)
	c := dial(t, path)
	fmt.Fprint(c, "GET /a HTTP/1.1\r\n\r\nPOST /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyzGET /c HTTP/1.0\r\n\r\n")
	b, err := io.ReadAll(c)
	if err != nil {
		t.Fatal(err)
	}
	const chunks = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n/%s\r\n1\r\n!\r\n0\r\n\r\n"
	want := fmt.Sprintf(chunks, "a") + fmt.Sprintf(chunks, "b") + "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n/c!"
	if string(b) != want {
		t.Errorf("got %q", b)
	}
	c = dial(t, path)
	fmt.Fprint(c, "GET /d HTTP/1.1\r\nConnection: Keep-Alive, Close\r\n\r\n")
	if b, err := io.ReadAll(c); err != nil || !bytes.Contains(b, []byte("Connection: close")) {
		t.Errorf("%v: %q", err, b)
	}
}

func TestContinue(t *testing.T) {
	path, _ := start(t, HandlerFunc(echo), nil)
	c := dial(t, path)
	fmt.Fprint(c, "POST / HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n")
	in := bufio.NewReader(c)
	if line, err := in.ReadString('\n'); err != nil || line != "HTTP/1.1 100 Continue\r\n" {
		t.Fatalf("%v: %q", err, line)
	}
	fmt.Fprint(c, "ok")
	if _, err := in.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(answer.Body); string(b) != "POST /  ok" {
		t.Errorf("got %q", b)
	}
}

// A handler learns that its client has left, and that the server stops.
func TestContextEnds(t *testing.T) {
	for _, leaves := range []bool{true, false} {
		begun, over := make(chan struct{}), make(chan error, 1)
		path, stop := start(t, HandlerFunc(func(w Writer, r *Request) {
			_ = w.Flush()
			close(begun)
			<-r.Context().Done()
			over <- r.Context().Err()
		}), nil)
		c := dial(t, path)
		fmt.Fprint(c, "GET / HTTP/1.1\r\n\r\n")
		<-begun
		if leaves {
			c.Close()
		} else {
			stop()
		}
		if err := <-over; !errors.Is(err, context.Canceled) {
			t.Errorf("leaves %v: %v", leaves, err)
		}
	}
}

// The byte of a next request that comes while one is answered belongs to the next.
func TestNextRequestDuringAnswer(t *testing.T) {
	sent, begun := make(chan struct{}), make(chan struct{}, 2)
	path, _ := start(t, HandlerFunc(func(w Writer, r *Request) {
		begun <- struct{}{}
		<-sent
		echo(w, r)
	}), nil)
	c := dial(t, path)
	fmt.Fprint(c, "GET /1 HTTP/1.1\r\n\r\n")
	<-begun
	fmt.Fprint(c, "GET /2 HTTP/1.1\r\nConnection: close\r\n\r\n")
	close(sent)
	b, err := io.ReadAll(c)
	if err != nil || !bytes.Contains(b, []byte("GET /1 ")) || !bytes.Contains(b, []byte("GET /2 ")) {
		t.Errorf("%v: %q", err, b)
	}
}

// One that panics ends its connection; others go on.
func TestPanic(t *testing.T) {
	path, _ := start(t, HandlerFunc(func(w Writer, r *Request) {
		if r.URL.Path == "/panic" {
			panic("on purpose")
		}
		echo(w, r)
	}), nil)
	c := client(t, path)
	if answer, err := c.Get("http://unix/panic"); err == nil {
		answer.Body.Close()
		t.Errorf("answered %s", answer.Status)
	}
	answer, err := c.Get("http://unix/fine")
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
}

// A client that sends nothing, or stops in the middle, is disconnected.
func TestTimeouts(t *testing.T) {
	path, _ := start(t, HandlerFunc(echo), func(s *Server) {
		s.HeadTimeout, s.BodyTimeout, s.IdleTimeout = 10*time.Millisecond, 20*time.Millisecond, 10*time.Millisecond
	})
	for _, send := range []string{"", "GET / HT", "GET / HTTP/1.1\r\n\r\n"} {
		c := dial(t, path)
		fmt.Fprint(c, send)
		if _, err := io.ReadAll(c); err != nil {
			t.Errorf("%q: %v", send, err)
		}
	}
}

func TestMux(t *testing.T) {
	var m Mux
	for _, p := range []string{"/", "GET /v1/a", "GET /v1/a/{id}", "GET /v1/a/all", "POST /v1/a", "/below/", "GET /v1/{x}/b/{y}"} {
		m.HandleFunc(p, func(w Writer, r *Request) {
			fmt.Fprintf(w, "%s %s%s%s", p, r.PathValue("id"), r.PathValue("x"), r.PathValue("y"))
		})
	}
	for _, x := range []struct{ method, path, want string }{
		{"GET", "/v1/a", "GET /v1/a "},
		{"HEAD", "/v1/a", "GET /v1/a "},
		{"POST", "/v1/a", "POST /v1/a "},
		{"PUT", "/v1/a", "/ "},
		{"GET", "/v1/a/7", "GET /v1/a/{id} 7"},
		{"GET", "/v1/a/all", "GET /v1/a/all "},
		{"GET", "/v1/a/", "/ "},
		{"GET", "/v1/c/b/d", "GET /v1/{x}/b/{y} cd"},
		{"GET", "/below/x/y", "/below/ "},
		{"GET", "/below", "/ "},
		{"GET", "/", "/ "},
	} {
		t.Run(x.method+" "+x.path, func(t *testing.T) {
			var b bytes.Buffer
			bw := bufio.NewWriter(&b)
			w := &response{bw: bw, header: Header{}, old: true, left: -1}
			m.Serve(w, NewRequest(t.Context(), x.method, &url.URL{Path: x.path}))
			if err := w.finish(); err != nil {
				t.Fatal(err)
			}
			if _, got, _ := strings.Cut(b.String(), "\r\n\r\n"); got != x.want {
				t.Errorf("%s %s: %q, want %q", x.method, x.path, got, x.want)
			}
		})
	}
}

// A value that came from somewhere must not become a field of its own, and an
// answer keeps to the length it declared.
func TestResponse(t *testing.T) {
	var b bytes.Buffer
	w := &response{bw: bufio.NewWriter(&b), header: Header{}, left: -1}
	w.Header().Set("X", "a\r\nSet-Cookie: b")
	w.Header().Set("Content-Length", "3")
	if _, err := io.WriteString(w, "four"); err != nil {
		t.Fatal(err)
	}
	if err := w.finish(); !errors.Is(err, errLength) {
		t.Errorf("finish: %v", err)
	}
	w.bw.Flush()
	if strings.Contains(b.String(), "\nSet-Cookie") || strings.Contains(b.String(), "four") {
		t.Errorf("sent %q", b.String())
	}
}

func FuzzReadRequest(f *testing.F) {
	f.Add([]byte("GET /v1/snapshot?x=y HTTP/1.1\r\nHost: ttmond\r\nX-Ttmon-Session: none\r\n\r\n"))
	f.Add([]byte("POST /v1/session HTTP/1.1\r\nContent-Length: 14\r\nConnection: close\r\n\r\n{\"ticket\":\"a\"}"))
	f.Add([]byte("GET / HTTP/1.0\n\n"))
	f.Fuzz(func(t *testing.T, in []byte) {
		r, err := readRequest(bufio.NewReader(bytes.NewReader(in)))
		// How the bytes are cut into packets changes nothing.
		slow, errSlow := readRequest(bufio.NewReader(iotest.OneByteReader(bytes.NewReader(in))))
		if (err == nil) != (errSlow == nil) {
			t.Fatalf("%v, byte by byte %v", err, errSlow)
		}
		if err != nil {
			return
		}
		if r.URL.String() != slow.URL.String() || r.Length != slow.Length || len(r.Header) != len(slow.Header) {
			t.Fatalf("%+v, byte by byte %+v", r, slow)
		}
		// What we take for a request is one for net/http as well.
		theirs, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(in)))
		if err == nil && (theirs.URL.Path != r.URL.Path || theirs.ContentLength != r.Length) {
			t.Fatalf("%s of %d bytes; net/http: %s of %d", r.URL, r.Length, theirs.URL, theirs.ContentLength)
		}
	})
}
