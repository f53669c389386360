package podres

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
)

// kubelet answers as gRPC does, through net/http's HTTP/2.
func kubelet(t *testing.T, h http.HandlerFunc) *Client {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubelet.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	s := &http.Server{Handler: h, Protocols: new(http.Protocols)}
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() { defer close(done); _ = s.Serve(l) }()
	t.Cleanup(func() { s.Close(); <-done })
	return New(path)
}

// respond sends a message, or an error, as gRPC does.
func respond(w http.ResponseWriter, message []byte, status, text string) {
	w.Header().Set("Content-Type", "application/grpc")
	w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
	_, _ = w.Write(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
	w.Header().Set("Grpc-Status", status)
	w.Header().Set("Grpc-Message", text)
}

func TestCall(t *testing.T) {
	large := bytes.Repeat([]byte("x"), 3<<20) // larger than any default window
	for name, x := range map[string]struct {
		h    http.HandlerFunc
		want []byte
		err  string
	}{
		"a message":         {h: func(w http.ResponseWriter, _ *http.Request) { respond(w, []byte("pods"), "0", "") }, want: []byte("pods")},
		"nothing":           {h: func(w http.ResponseWriter, _ *http.Request) { respond(w, nil, "0", "") }, want: []byte{}},
		"a large one":       {h: func(w http.ResponseWriter, _ *http.Request) { respond(w, large, "0", "") }, want: large},
		"more than we take": {h: func(w http.ResponseWriter, _ *http.Request) { respond(w, make([]byte, maxAnswer), "0", "") }, err: "more than"},
		"an error":          {h: func(w http.ResponseWriter, _ *http.Request) { respond(w, nil, "16", "who%20are you?") }, err: `gRPC status "16": who are you?`},
		"an error at once":  {h: func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Grpc-Status", "12") }, err: `gRPC status "12"`},
		"no gRPC":           {h: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") }, err: `gRPC status ""`},
		"another status":    {h: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, err: "HTTP status 503"},
		"compressed": {h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Status", "0")
			_, _ = w.Write([]byte{1, 0, 0, 0, 0})
		}, err: "no plain message"},
		"less than it says": {h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Grpc-Status", "0")
			_, _ = w.Write([]byte{0, 0, 0, 0, 9})
		}, err: "should have 14"},
		"an end in the middle": {h: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, err: "stream error"},
		"header in many frames": {h: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Long", strings.Repeat("long ", 5000))
			respond(w, []byte("pods"), "0", "")
		}, want: []byte("pods")},
	} {
		t.Run(name, func(t *testing.T) {
			c := kubelet(t, func(w http.ResponseWriter, r *http.Request) {
				if b, _ := io.ReadAll(r.Body); r.URL.Path != "/a/b" || r.Header.Get("Te") != "trailers" || string(b) != "\x00\x00\x00\x00\x02hi" {
					t.Errorf("asked %s %v %q", r.URL, r.Header, b)
				}
				x.h(w, r)
			})
			got, err := c.call(t.Context(), "/a/b", []byte("hi"))
			switch {
			case x.err != "" && (err == nil || !strings.Contains(err.Error(), x.err)):
				t.Errorf("got %v", err)
			case x.err == "" && (err != nil || !bytes.Equal(got, x.want)):
				t.Errorf("%v: %d bytes", err, len(got))
			}
		})
	}
}

// One that does not answer is given up when the time is over.
func TestCallEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := kubelet(t, func(_ http.ResponseWriter, r *http.Request) {
		cancel()
		<-r.Context().Done()
	})
	if _, err := c.call(ctx, "/a/b", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
