// Package past has the calls of the API about what is remembered: snapshots, events,
// series, runs and alerts of other times.
//
// Its place in the flow: it reads what a ttmon-server, or a recording that is played,
// remembers, and answers by the rules of package api. ttmond remembers nothing, and
// does not link it.
package past

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/params"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/eventlog"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/past/history/held"
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

// Serve completes the options of an API with the calls that m can answer.
func (m Memory) Serve(o *api.Options) {
	o.More = append(o.More, m.Calls)
	o.Prometheus = m.Prometheus
}

// ErrDamaged is of a snapshot that is kept and cannot be read.
var ErrDamaged = errors.New("is damaged")

// Snapshot is the one that held at a time.
func (m Memory) Snapshot(at time.Time) (*model.Snapshot, error) {
	_, body, err := m.Past(at)
	if err != nil {
		return nil, err
	}
	snap, err := wire.Decode(body)
	if err != nil {
		return nil, fmt.Errorf("the snapshot of %s %w: %w", at.Format(time.RFC3339), ErrDamaged, err)
	}
	return snap, nil
}

// calls answers from what is remembered.
type calls struct {
	*api.Server
	Memory
}

// alerts answers with the alerts that are pending or fire.
func (s calls) alerts(w http.ResponseWriter, _ *http.Request) {
	api.Answer(w, http.StatusOK, s.Alerts())
}

// past answers with a snapshot of another time.
func (s calls) past(w http.ResponseWriter, r *http.Request) {
	at, err := api.ParseMoment(r.URL.Query())
	switch {
	case err != nil:
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	case at.IsZero():
		api.Fail(w, http.StatusBadRequest, "at: which time? For example 2026-11-15T08:30:00Z")
		return
	}
	_, body, err := s.Memory.Past(at)
	if err != nil {
		api.Fail(w, http.StatusNotFound, "%v", err)
		return
	}
	if v := s.Viewpoint(r); v != (api.Viewpoint{}) {
		snap, err := wire.Decode(body)
		if err != nil {
			api.Fail(w, http.StatusInternalServerError, "reading the snapshot of %s: %v", at, err)
			return
		}
		body = wire.Append(nil, v.OfPast(snap))
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(body)
}

// changed answers with the series that changed in a stretch of time.
func (s calls) changed(w http.ResponseWriter, r *http.Request) {
	start, end, err := api.ParsePeriod(r.URL.Query(), s.Now())
	switch length := end.Sub(start); {
	case err != nil:
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	case length > changed.MaxStretch:
		api.Fail(w, http.StatusBadRequest, "start: %v is longer than %v, which is the most that is compared", length.Round(time.Second), changed.MaxStretch)
		return
	case length < time.Second:
		api.Fail(w, http.StatusBadRequest, "start: a stretch has a second at least")
		return
	}
	found, err := s.Memory.Changed(r.Context(), start, end)
	switch {
	case errors.Is(err, changed.ErrBusy):
		api.Fail(w, http.StatusTooManyRequests, "%v", err)
		return
	case err != nil:
		api.Fail(w, http.StatusServiceUnavailable, "%v", err)
		return
	}
	api.Answer(w, http.StatusOK, found)
}

// span tells how far back /v1/past reaches; null where nothing is kept yet.
func (s calls) span(w http.ResponseWriter, _ *http.Request) {
	out := spanAnswer{Schema: "ttmon.span/1"}
	if oldest, newest := s.Memory.Span(); !oldest.IsZero() {
		oldest, newest = oldest.UTC(), newest.UTC()
		out.Oldest, out.Newest = &oldest, &newest
	}
	if seconds := s.Interval().Seconds(); seconds > 0 {
		out.Apart = &seconds
	}
	api.Answer(w, http.StatusOK, out)
}

// events lists what happened; with follow it continues as server-sent events.
func (s calls) events(w http.ResponseWriter, r *http.Request) {
	var q eventlog.Query
	if err := params.Parse(r.URL.Query(), &q); err != nil {
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	log := s.Memory.Events()
	if log == nil {
		api.Fail(w, http.StatusServiceUnavailable, "the event log is being opened; try again")
		return
	}
	hidden := s.Viewpoint(r).Level > 0
	if r.URL.Query().Get("follow") == "" {
		last := log.Last()
		api.Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.events/1", "last": last, "events": visible(log.Find(q), hidden)})
		return
	}
	leave, ok := s.BeginEvents(w, r)
	if !ok {
		return
	}
	defer leave()
	out := http.NewResponseController(w)
	for {
		more := log.More()
		_ = out.SetWriteDeadline(time.Now().Add(api.WriteTimeout))
		found := log.Find(q)
		for _, e := range visible(found, hidden) {
			b, err := json.Marshal(e)
			if err != nil || api.WriteEvent(w, "event", e.Seq, wire.Harmless(b)) != nil {
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
