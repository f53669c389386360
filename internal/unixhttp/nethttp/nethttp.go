// Package nethttp joins the handlers of internal/unixhttp with those of net/http,
// for programs that serve TCP as well.
package nethttp

import (
	"io"
	"net"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/unixhttp"
)

// Handler lets h answer requests of net/http.
func Handler(h unixhttp.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		out := http.NewResponseController(w)
		if r.ContentLength == 0 {
			_ = out.SetReadDeadline(time.Time{}) // all of it was read; streams have no end
		}
		q := unixhttp.NewRequest(r.Context(), r.Method, r.URL)
		q.Header, q.Body, q.Length, q.InClear = unixhttp.Header(r.Header), r.Body, r.ContentLength, inClear(r)
		h.Serve(&writer{w, out}, q)
	})
}

// inClear reports whether a request crossed a network unencrypted.
func inClear(r *http.Request) bool {
	at, ok := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return r.TLS == nil && ok && !at.IP.IsLoopback()
}

type writer struct {
	http.ResponseWriter
	out *http.ResponseController
}

func (w *writer) Header() unixhttp.Header            { return unixhttp.Header(w.ResponseWriter.Header()) }
func (w *writer) Flush() error                       { return w.out.Flush() }
func (w *writer) SetWriteDeadline(t time.Time) error { return w.out.SetWriteDeadline(t) }

// Below lets a handler of net/http answer requests of unixhttp, from whichever
// server they come.
func Below(h http.Handler) unixhttp.Handler {
	return unixhttp.HandlerFunc(func(w unixhttp.Writer, r *unixhttp.Request) {
		q := &http.Request{
			Method: r.Method, URL: r.URL, Header: http.Header(r.Header), Body: io.NopCloser(r.Body), ContentLength: r.Length,
			Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Host: r.Header.Get("Host"), RequestURI: r.URL.RequestURI(),
		}
		h.ServeHTTP(below{w}, q.WithContext(r.Context()))
	})
}

type below struct{ unixhttp.Writer }

func (w below) Header() http.Header { return http.Header(w.Writer.Header()) }
func (w below) FlushError() error   { return w.Writer.Flush() }
func (w below) Flush()              { _ = w.Writer.Flush() }
