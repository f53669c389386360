package api

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

// snapshot answers with the latest snapshot.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) {
	t := s.opt.Feed.current()
	if t.snap == nil {
		// The first one is being made: that takes less than a second.
		select {
		case <-t.next:
			t = s.opt.Feed.current()
		case <-time.After(3 * time.Second):
			fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
			return
		case <-r.Context().Done():
			return
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(t.encode(s.viewpoint(r)))
}

// watch sends every snapshot, or one every interval, as server-sent events.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	interval := time.Duration(0)
	if text := r.URL.Query().Get("interval"); text != "" {
		var err error
		if interval, err = time.ParseDuration(text); err != nil || interval < 0 {
			fail(w, http.StatusBadRequest, "interval: %q is not a duration like 5s", text)
			return
		}
	}
	if r.URL.Query().Get("said") != "" {
		s.page(w, r, interval)
		return
	}
	if leave, ok := s.beginEvents(w, r); ok {
		defer leave()
		s.eachTick(w, r, interval, func(t *tick) error { return writeEvent(w, "snapshot", t.seq, t.encode(s.viewpoint(r))) })
	}
}

// beginEvents begins an answer that is a stream of server-sent events, if the
// user may have one more. leave is to be called at its end.
func (s *Server) beginEvents(w http.ResponseWriter, r *http.Request) (leave func(), ok bool) {
	leave, ok = s.watches(w, r)
	if ok {
		w.Header().Set("Content-Type", "text/event-stream")
		w.Header().Set("Cache-Control", "no-store")
		w.WriteHeader(http.StatusOK)
	}
	return leave, ok
}

// eachTick writes every snapshot, or one every interval, until the client
// leaves. What it may see is asked for each: /proc may come to hide processes, and
// until that is known it does. One that reads slowly misses those between, and sees it by their
// numbers; one that does not read at all is dropped.
func (s *Server) eachTick(w http.ResponseWriter, r *http.Request, interval time.Duration, write func(*tick) error) {
	var last time.Time
	out := http.NewResponseController(w)
	for t := s.opt.Feed.current(); ; t = s.opt.Feed.current() {
		// A tick early is in time: the collector has its own clock.
		if now := time.Now(); t.snap != nil && now.Sub(last) >= interval-50*time.Millisecond {
			last = now
			_ = out.SetWriteDeadline(now.Add(writeTimeout))
			if write(t) != nil || out.Flush() != nil {
				return // it has left, or does not read
			}
		}
		select {
		case <-t.next:
		case <-r.Context().Done():
			return
		}
	}
}

// writeEvent writes a server-sent event. data has no line break in it.
func writeEvent(w http.ResponseWriter, name string, id uint64, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\nid: %d\ndata: ", name, id)
	b.Grow(len(data) + 2)
	b.Write(data)
	b.WriteString("\n\n")
	_, err := w.Write(b.Bytes())
	return err
}
