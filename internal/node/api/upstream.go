package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// A ttmon-server answers for a ttmond: what it remembers it answers itself, what
// only ttmond knows it hands on. Who a viewer is, and what it may see, is
// ttmond's decision: the server hands sessions on too, and learns of them what
// ttmond says.

// Upstream is the ttmond that a server follows.
type Upstream interface {
	http.Handler // answers the calls that are ttmond's
	// Viewer returns the user of a session; false: it is not valid.
	Viewer(ctx context.Context, session string) (Viewer, bool)
}

// Viewer is the user behind a session.
type Viewer struct {
	UID    int
	All    bool // sees what root sees
	Hiding int  // level of hiding that applies
}

// handedOn answers what ttmond has to answer, and the rest by h.
func (s *Server) handedOn(h http.Handler) http.Handler {
	if s.opt.Upstream == nil {
		return h
	}
	theirs := new(http.ServeMux)
	forward := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/v1/session" && refusedInClear(w, r) {
			return
		}
		if r.Method == "DELETE" {
			s.viewers.forget(r.Header.Get(SessionHeader))
		}
		s.opt.Upstream().ServeHTTP(w, r)
	})
	for i := range s.calls {
		if c := &s.calls[i]; c.Live {
			theirs.Handle(c.route(), forward)
		}
	}
	theirs.HandleFunc("POST /v1/ticket", func(w http.ResponseWriter, _ *http.Request) {
		Fail(w, http.StatusForbidden, "tickets are made by ttmond, for the user who asks on its socket: ttmon web")
	})
	theirs.Handle("/", h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case s.opt.Upstream() == nil:
			h.ServeHTTP(w, r)
		case callerOf(r).decided && callerOf(r).level > 0 && (r.URL.Path == "/v1/snapshot" || r.URL.Path == "/v1/watch"):
			s.forwardSnapshots(w, r, forward) // what the viewer may see, and we may not
		default:
			theirs.ServeHTTP(w, r)
		}
	})
}

// forwardSnapshots has ttmond answer with snapshots. Those that are wanted in words, too,
// are said here: ttmond has no words for a page.
func (s *Server) forwardSnapshots(w http.ResponseWriter, r *http.Request, forward http.Handler) {
	q := r.URL.Query()
	if q.Get("said") == "" || s.opt.Said == nil {
		forward.ServeHTTP(w, r)
		return
	}
	q.Del("said")
	r = r.Clone(r.Context())
	r.URL.RawQuery = q.Encode()
	forward.ServeHTTP(&saying{ResponseWriter: w, said: s.opt.Said}, r)
}

// saying puts the words about each snapshot of a stream of events before it.
type saying struct {
	http.ResponseWriter
	said   func(*model.Snapshot) []byte
	status int
	rest   []byte // of an event that is not complete
}

// Unwrap lets an http.ResponseController reach the connection.
func (w *saying) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func (w *saying) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

func (w *saying) Write(b []byte) (int, error) {
	if w.status != http.StatusOK { // a refusal
		return w.ResponseWriter.Write(b)
	}
	w.rest = append(w.rest, b...)
	for {
		event, rest, whole := bytes.Cut(w.rest, []byte("\n\n"))
		if !whole {
			return len(b), nil
		}
		head, data, _ := bytes.Cut(event, []byte("\ndata: "))
		_, number, _ := bytes.Cut(head, []byte("\nid: "))
		seq, err := strconv.ParseUint(string(number), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("reading an event of ttmond: %w", err)
		}
		snap, err := wire.Decode(data)
		if err != nil {
			return 0, fmt.Errorf("reading a snapshot of ttmond: %w", err)
		}
		if _, err := w.ResponseWriter.Write(encodeEvents(seq, w.said(snap), data)); err != nil {
			return 0, err
		}
		w.rest = append(w.rest[:0], rest...)
	}
}

// viewers remembers for a short time what ttmond said about sessions.
type viewers struct {
	mu    sync.Mutex
	known map[string]viewerEntry
}

type viewerEntry struct {
	who caller
	at  time.Time
}

const (
	viewerAge  = 10 * time.Second
	maxViewers = 1024
)

// forget has ttmond asked again about a session.
func (v *viewers) forget(secret string) {
	v.mu.Lock()
	delete(v.known, secret)
	v.mu.Unlock()
}

// of is who has a session, as ttmond says.
func (v *viewers) of(ctx context.Context, up Upstream, secret string) caller {
	unknown := caller{remote: true}
	if secret == "" {
		return unknown
	}
	now := time.Now()
	v.mu.Lock()
	e, ok := v.known[secret]
	v.mu.Unlock()
	if ok && now.Sub(e.at) < viewerAge {
		return e.who
	}
	who := unknown
	if x, ok := up.Viewer(ctx, secret); ok {
		who = caller{uid: x.UID, exists: true, remote: true, decided: true, all: x.All, level: x.Hiding}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.known == nil || len(v.known) >= maxViewers {
		v.known = map[string]viewerEntry{}
	}
	v.known[secret] = viewerEntry{who, now}
	return who
}
