package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/eventlog"
	"github.com/ttmon/ttmon/internal/history/changed"
	"github.com/ttmon/ttmon/internal/history/held"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/wire"
)

// Memory is what the daemon remembers. Each part may be nil: then there is
// none of it.
type Memory struct {
	// Events is the log; it returns nil until it is open.
	Events func() EventLog
	// Past returns the snapshot that held at a time, as JSON.
	Past func(time.Time) (at time.Time, snapshot []byte, err error)
	// Span is the time of the oldest and the newest snapshot that is kept.
	Span func() (oldest, newest time.Time)
	// Held tells what a process held, change by change.
	Held func(ctx context.Context, pid int, ticks uint64, from, to time.Time, n int) (list []held.Point, since time.Time, step time.Duration)
	// Range answers a question in PromQL over time.
	Range func(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]Series, error)
	// Changed finds the series of the host that changed in a stretch of time.
	Changed func(ctx context.Context, from, to time.Time) (*changed.Answer, error)
	// Runs are the programs that used devices.
	Runs func(runs.Query) (list []runs.Run, more bool, err error)
	// Alerts are those that are pending or firing.
	Alerts func() any
	// Prometheus answers its API below /prometheus.
	Prometheus http.Handler
}

// EventLog is what happened, in order.
type EventLog interface {
	Find(eventlog.Query) []model.Event
	Last() uint64
	// More is closed when there is an event after those that are there now.
	More() <-chan struct{}
}

// Past are the calls about what is remembered. A program without any links nothing
// that only they need.
type Past struct {
	calls      func(*Server) []call
	snapshot   func(time.Time) (*model.Snapshot, error) // nil: none is kept
	prometheus http.Handler
}

// Calls are those that m can answer.
func (m Memory) Calls() *Past {
	p := &Past{calls: func(s *Server) []call { return pastCalls{s, m}.list() }, prometheus: m.Prometheus}
	if m.Past != nil {
		p.snapshot = m.snapshot
	}
	return p
}

// snapshot is the one that held at a time.
func (m Memory) snapshot(at time.Time) (*model.Snapshot, error) {
	_, body, err := m.Past(at)
	if err != nil {
		return nil, err
	}
	snap, err := wire.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("the snapshot of %s %w: %w", at.Format(time.RFC3339), errDamaged, err)
	}
	return snap, nil
}

var errDamaged = errors.New("is damaged")

// pastCalls answers from what is remembered.
type pastCalls struct {
	*Server
	Memory
}

// alerts answers with the alerts that are pending or fire.
func (s pastCalls) alerts(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, s.Alerts())
}

// past answers with a snapshot of another time.
func (s pastCalls) past(w http.ResponseWriter, r *http.Request) {
	at, err := parseMoment(r.URL.Query())
	switch {
	case err != nil:
		fail(w, http.StatusBadRequest, "%v", err)
		return
	case at.IsZero():
		fail(w, http.StatusBadRequest, "at: which time? For example 2026-11-15T08:30:00Z")
		return
	}
	_, body, err := s.Memory.Past(at)
	if err != nil {
		fail(w, http.StatusNotFound, "%v", err)
		return
	}
	if v := s.viewpoint(r); v != (viewpoint{}) {
		snap, err := wire.Decode(body)
		if err != nil {
			fail(w, http.StatusInternalServerError, "reading the snapshot of %s: %v", at, err)
			return
		}
		body = wire.Append(nil, v.ofPast(snap))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// changed answers with the series that changed in a stretch of time.
func (s pastCalls) changed(w http.ResponseWriter, r *http.Request) {
	start, end, err := parsePeriod(r.URL.Query(), s.opt.Now())
	switch length := end.Sub(start); {
	case err != nil:
		fail(w, http.StatusBadRequest, "%v", err)
		return
	case length > changed.MaxStretch:
		fail(w, http.StatusBadRequest, "start: %v is longer than %v, which is the most that is compared", length.Round(time.Second), changed.MaxStretch)
		return
	case length < time.Second:
		fail(w, http.StatusBadRequest, "start: a stretch has a second at least")
		return
	}
	found, err := s.Memory.Changed(r.Context(), start, end)
	switch {
	case errors.Is(err, changed.ErrBusy):
		fail(w, http.StatusTooManyRequests, "%v", err)
		return
	case err != nil:
		fail(w, http.StatusServiceUnavailable, "%v", err)
		return
	}
	answer(w, http.StatusOK, found)
}

// span tells how far back /v1/past reaches; null where nothing is kept yet.
func (s pastCalls) span(w http.ResponseWriter, _ *http.Request) {
	out := map[string]any{"schema": "ttmon.span/1", "oldest": nil, "newest": nil}
	if oldest, newest := s.Memory.Span(); !oldest.IsZero() {
		out["oldest"], out["newest"] = oldest.UTC(), newest.UTC()
	}
	answer(w, http.StatusOK, out)
}

// events lists what happened; with follow it continues as server-sent events.
func (s pastCalls) events(w http.ResponseWriter, r *http.Request) {
	q, err := parseEventQuery(r)
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	log := s.Memory.Events()
	if log == nil {
		fail(w, http.StatusServiceUnavailable, "the event log is being opened; try again")
		return
	}
	hidden := s.viewpoint(r).level > 0
	if r.URL.Query().Get("follow") == "" {
		last := log.Last()
		answer(w, http.StatusOK, map[string]any{"schema": "ttmon.events/1", "last": last, "events": visible(log.Find(q), hidden)})
		return
	}
	leave, ok := s.beginEvents(w, r)
	if !ok {
		return
	}
	defer leave()
	out := http.NewResponseController(w)
	for {
		more := log.More()
		_ = out.SetWriteDeadline(time.Now().Add(writeTimeout))
		found := log.Find(q)
		for _, e := range visible(found, hidden) {
			b, err := json.Marshal(e)
			if err != nil || writeEvent(w, "event", e.Seq, wire.Harmless(b)) != nil {
				return
			}
		}
		if len(found) > 0 {
			q.After, q.Limit = found[len(found)-1].Seq, 0
		}
		if out.Flush() != nil {
			return
		}
		select {
		case <-more:
		case <-r.Context().Done():
			return
		}
	}
}

// visible leaves out what names processes where those are hidden.
func visible(list []model.Event, hidden bool) []model.Event {
	out := []model.Event{}
	for _, e := range list {
		if !hidden || !e.Process {
			out = append(out, e)
		}
	}
	return out
}

func parseEventQuery(r *http.Request) (q eventlog.Query, err error) {
	v := r.URL.Query()
	if text := v.Get("after"); text != "" {
		if q.After, err = strconv.ParseUint(text, 10, 63); err != nil {
			return q, errors.New("after: " + strconv.Quote(text) + " is not the number of an event")
		}
	}
	if q.Since, err = parseTime(v, "since"); err != nil {
		return q, err
	}
	if q.Until, err = parseTime(v, "until"); err != nil {
		return q, err
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 {
			return q, errors.New("limit: " + strconv.Quote(text) + " is not a positive number")
		}
	}
	q.Device = v.Get("device")
	for _, kind := range v["kind"] {
		q.Kinds = append(q.Kinds, model.EventKind(kind))
	}
	return q, nil
}
