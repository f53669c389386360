package api

import (
	"context"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/node/stream/backlog"
)

// Stream is what followers get beside the snapshots.
type Stream struct {
	// Events are those that are kept; it returns nil until they are open.
	Events func() *backlog.Events
	// State is how the daemon is doing now.
	State    func() stream.State
	Instance string
}

// maxStreamEvents bounds the events that are in memory at once for a follower.
const maxStreamEvents = 500

// follower is one that reads the stream.
type follower struct {
	s        *Server
	w        http.ResponseWriter
	view     func() Viewpoint // as of now
	log      *backlog.Events
	after    uint64 // the last event that was sent
	events   bool
	snapshot bool
}

// stream sends snapshots and events until the follower leaves. One that reads
// slowly misses snapshots, never events; one that does not read is dropped, and
// resumes.
func (s *Server) stream(w http.ResponseWriter, r *http.Request) {
	var q stream.Query
	if !asked(w, r, &q) {
		return
	}
	after, only := q.After, q.Only
	if only != "" && only != stream.OnlyEvents && only != stream.OnlySnapshots {
		Fail(w, http.StatusBadRequest, "only: %q is neither events nor snapshots", only)
		return
	}
	log := s.awaitBacklog(r.Context())
	if log == nil {
		Fail(w, http.StatusServiceUnavailable, "the event backlog is being opened; try again")
		return
	}
	if q.Log != log.Name || after > log.Last() {
		after = 0 // it counts in another log
	}
	leave, ok := s.watches(w, r)
	if !ok {
		return
	}
	defer leave()
	w.Header().Set("Content-Type", "application/x-ttmon-stream")
	w.Header().Set("Cache-Control", "no-store")
	f := &follower{
		s: s, w: w, view: func() Viewpoint { return s.Viewpoint(r) }, log: log, after: after,
		events: only != stream.OnlySnapshots, snapshot: only != stream.OnlyEvents,
	}
	f.run(r.Context())
}

// awaitBacklog waits a little for a predecessor to close it.
func (s *Server) awaitBacklog(ctx context.Context) *backlog.Events {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if e := s.opt.Stream.Events(); e != nil {
			return e
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

func (f *follower) run(ctx context.Context) {
	hello := stream.Hello{
		Stream: stream.Version, Version: f.s.opt.Version, Instance: f.s.opt.Stream.Instance, Log: f.log.Name, First: f.log.First(), Last: f.log.Last(),
	}
	if !f.send(stream.AppendJSON(nil, stream.KindHello, hello)) {
		return
	}
	var sent uint64
	for {
		t := f.s.opt.Feed.current()
		more := f.log.More()
		if f.events && !f.sendEvents() {
			return
		}
		if f.snapshot && t.regular != sent {
			sent = t.regular
			head, body := t.frames(f.view(), f.s.opt.Stream.State)
			if !f.send(head, body, []byte{'\n'}) {
				return
			}
		}
		next := t.next
		if !f.snapshot {
			next = nil
		}
		if !f.events {
			more = nil
		}
		select {
		case <-next:
		case <-more:
		case <-ctx.Done():
			return
		}
	}
}

// sendEvents sends those that the follower does not have, oldest first.
func (f *follower) sendEvents() bool {
	for f.after < f.log.Last() {
		list := f.log.Range(f.after, maxStreamEvents)
		if len(list) == 0 {
			return true
		}
		var b []byte
		view := f.view()
		for i := range list {
			f.after = list[i].Seq
			if visibleTo(&list[i], view) {
				b = stream.AppendJSON(b, stream.KindEvent, &list[i])
			}
		}
		if !f.send(b) {
			return false
		}
	}
	return true
}

// visibleTo reports whether a viewer may see an event.
func visibleTo(e *model.Event, v Viewpoint) bool { return v.Level == 0 || !e.Process }

func (f *follower) send(parts ...[]byte) bool {
	out := http.NewResponseController(f.w)
	_ = out.SetWriteDeadline(time.Now().Add(WriteTimeout))
	for _, b := range parts {
		if _, err := f.w.Write(b); err != nil {
			return false
		}
	}
	return out.Flush() == nil
}

// frames are the frames of the state and of the snapshot: all up to its body, and
// the body, which a newline ends. A body is not copied for its frame: that would be a
// quarter of what ttmond allocates.
func (t *tick) frames(v Viewpoint, state func() stream.State) (head, body []byte) {
	body = t.encode(v)
	head = stream.AppendJSON(nil, stream.KindState, state())
	return stream.AppendHead(head, stream.KindSnapshot, len(body)), body
}
