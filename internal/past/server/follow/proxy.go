package follow

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"syscall"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/node/api"
)

// proxy hands calls on to ttmond, each with the session of the viewer who makes
// it. A call without one has no user: never the server's own rights.
type proxy struct {
	reverse *httputil.ReverseProxy
	client  *http.Client
	calls   *budget.Pool // under way
}

// calls of viewers that are handed on at a time. ttmond gives this program, as any
// user, 64 connections; the rest are for its own calls.
var calls = budget.Limit{PerUID: 24, All: 56, Reserve: 8}

// noSession is the session of viewers who have none.
const noSession = "none"

func newProxy(t http.RoundTripper, c *http.Client) *proxy {
	return &proxy{client: c, calls: budget.NewPool("proxy_calls", calls, nil), reverse: &httputil.ReverseProxy{
		Transport:     t,
		FlushInterval: -1,
		ErrorLog:      log.New(io.Discard, "", 0), // it has a line for each client that leaves
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL.Scheme, r.Out.URL.Host, r.Out.Host = "http", "ttmond", "ttmond"
			// Only what the call needs: nothing of a browser's reaches root's half.
			accept, kind := r.In.Header.Get("Accept"), r.In.Header.Get("Content-Type")
			r.Out.Header = http.Header{api.SessionHeader: {sessionOf(r.In)}}
			if accept != "" {
				r.Out.Header.Set("Accept", accept)
			}
			if kind != "" {
				r.Out.Header.Set("Content-Type", kind)
			}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			status, reason := http.StatusBadGateway, "ttmond does not answer: "+err.Error()
			if errors.Is(err, syscall.ENOENT) || errors.Is(err, syscall.ECONNREFUSED) {
				status, reason = http.StatusServiceUnavailable, "ttmond does not run: systemctl start ttmond"
			}
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status)
			_ = json.NewEncoder(w).Encode(map[string]string{"error": reason})
		},
	}}
}

func sessionOf(r *http.Request) string {
	if s := r.Header.Get(api.SessionHeader); s != "" {
		return s
	}
	return noSession
}

// ServeHTTP implements api.Upstream.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	viewer := api.UserOf(r.Context())
	if !p.calls.Acquire(viewer, 1) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Retry-After", "1")
		w.WriteHeader(http.StatusTooManyRequests)
		_, _ = w.Write([]byte(`{"error":"too many calls are being answered for you, or for viewers who are not signed in; try again in a second"}` + "\n"))
		return
	}
	defer p.calls.Release(viewer, 1)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Time{}) // ttmond ends what takes too long
	p.reverse.ServeHTTP(w, r)
}

// Viewer implements api.Upstream.
func (p *proxy) Viewer(ctx context.Context, session string) (v api.Viewer, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://ttmond/v1/me", nil)
	if err != nil {
		return v, false
	}
	r.Header.Set(api.SessionHeader, session)
	answer, err := p.client.Do(r)
	if err != nil {
		return v, false
	}
	defer answer.Body.Close()
	var me struct {
		UID    *int
		Sees   string
		Hiding int
	}
	if answer.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, answer.Body, 64<<10)).Decode(&me) != nil || me.UID == nil {
		return v, false
	}
	return api.Viewer{UID: *me.UID, All: me.Sees == "all", Hiding: me.Hiding}, true
}
