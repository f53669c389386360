package api

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/model/apitype"
)

// snapshot answers with the latest snapshot, or with one that is as new as a client
// that asks so often wants it.
func (s *Server) snapshot(w http.ResponseWriter, r *http.Request) {
	every, given, err := interval(r)
	if err != nil {
		Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	if s.opt.Feed.current().snap == nil && !s.awaitFirst(r.Context()) {
		Fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
		return
	}
	t := s.opt.Feed.current()
	if given && s.faster(every) {
		since := time.Now().Add(-every / 2)
		if t = s.fresh(r.Context(), since); t.Began.Before(since) {
			w.Header().Set(apitype.LateHeader, "1")
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	_, _ = w.Write(t.encode(s.Viewpoint(r)))
}

// awaitFirst waits for the first snapshot: that takes less than a second.
func (s *Server) awaitFirst(ctx context.Context) bool {
	timeout := time.NewTimer(3 * time.Second)
	defer timeout.Stop()
	select {
	case <-s.opt.Feed.current().next:
		return true
	case <-timeout.C:
	case <-ctx.Done():
	}
	return false
}

// interval is how often a client looks, as its request says it.
func interval(r *http.Request) (d time.Duration, given bool, err error) {
	text := r.URL.Query().Get("interval")
	if text == "" {
		return 0, false, nil
	}
	if d, err = time.ParseDuration(text); err != nil || d < 0 {
		return 0, false, fmt.Errorf("interval: %q is not a duration like 5s", text)
	}
	return d, true, nil
}

// faster reports whether a client that looks so often wants more snapshots than are
// made at each interval. 0 is one that looks once, and wants a snapshot of now.
func (s *Server) faster(every time.Duration) bool {
	return s.opt.Demand != nil && every < s.opt.Interval()*9/10
}

// demandTimeout is how long an answer waits for a snapshot that was demanded. ttmon
// gives a ttmond 300 ms.
const demandTimeout = 200 * time.Millisecond

// fresh returns a snapshot whose collection began at a time or later; the latest,
// where there is none in time.
func (s *Server) fresh(ctx context.Context, since time.Time) *tick {
	timeout := time.NewTimer(demandTimeout)
	defer timeout.Stop()
	for {
		t := s.opt.Feed.current()
		if !t.Began.Before(since) {
			return t
		}
		s.opt.Demand()
		select {
		case <-t.next:
		case <-timeout.C:
			return s.opt.Feed.current()
		case <-ctx.Done():
			return t
		}
	}
}

// watch sends every snapshot, or one every interval, as server-sent events.
func (s *Server) watch(w http.ResponseWriter, r *http.Request) {
	every, _, err := interval(r)
	if err != nil {
		Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	if r.URL.Query().Get("said") != "" {
		if s.opt.Said == nil {
			s.unknown(w, r)
			return
		}
		s.page(w, r, every)
		return
	}
	if leave, ok := s.BeginEvents(w, r); ok {
		defer leave()
		s.eachTick(w, r, every, func(t *tick) error { return WriteEvent(w, "snapshot", t.seq, t.encode(s.Viewpoint(r))) })
	}
}

// BeginEvents begins an answer that is a stream of server-sent events, if the
// user may have one more. leave is to be called at its end.
func (s *Server) BeginEvents(w http.ResponseWriter, r *http.Request) (leave func(), ok bool) {
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
func (s *Server) eachTick(w http.ResponseWriter, r *http.Request, every time.Duration, write func(*tick) error) {
	out := http.NewResponseController(w)
	due := time.Now()
	for t := s.opt.Feed.current(); t != nil; t = s.nextTick(r.Context(), t, every, due) {
		if t.snap == nil {
			continue
		}
		now := time.Now()
		if due = due.Add(every); due.Before(now) {
			due = now
		}
		_ = out.SetWriteDeadline(now.Add(WriteTimeout))
		if write(t) != nil || out.Flush() != nil {
			return // it has left, or does not read
		}
	}
}

// nextTick waits for what a client is to be sent after a snapshot, and when that is due;
// nil: it has left. A client that is faster than the collector has it work faster. The
// others get what is made at each interval.
func (s *Server) nextTick(ctx context.Context, last *tick, every time.Duration, due time.Time) *tick {
	for every > 0 && s.faster(every) && last.snap != nil {
		if !waitUntil(ctx, due) {
			return nil
		}
		if t := s.fresh(ctx, time.Now().Add(-every/2)); t != last {
			return t
		}
		due = time.Now().Add(every)
	}
	for t := last; ; t = s.opt.Feed.current() {
		// A tick early is in time: the collector has its own clock.
		if t.regular != last.regular && (last.snap == nil || time.Until(due) <= 50*time.Millisecond) {
			return t
		}
		select {
		case <-t.next:
		case <-ctx.Done():
			return nil
		}
	}
}

// waitUntil returns false if ctx ended before that time.
func waitUntil(ctx context.Context, t time.Time) bool {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// WriteEvent writes a server-sent event. data has no line break in it.
func WriteEvent(w http.ResponseWriter, name string, id uint64, data []byte) error {
	var b bytes.Buffer
	fmt.Fprintf(&b, "event: %s\nid: %d\ndata: ", name, id)
	b.Grow(len(data) + 2)
	b.Write(data)
	b.WriteString("\n\n")
	_, err := w.Write(b.Bytes())
	return err
}
