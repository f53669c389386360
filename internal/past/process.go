package past

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/past/history/held"
)

// What a process held: every change of the last hour, and before that as the
// snapshots have it that are kept. Those are read, so there are not many moments.
const (
	processPoints    = 60
	maxProcessPoints = 1000
	maxMoments       = 240
)

// pastAnswer is what a process held over time. From Since on every change is
// known, and told unless Step is above 0: then each point is the most of a step.
type pastAnswer struct {
	Schema string     `json:"schema"`
	PID    int        `json:"pid"`
	Since  *time.Time `json:"every_change_since"`
	Step   float64    `json:"step_s"`
	Points []moment   `json:"points"`
}

// moment is what a process had from a moment on.
type moment struct {
	Time    time.Time    `json:"time"`
	Devices []heldDevice `json:"devices"`
}

type heldDevice struct {
	Index int                  `json:"index"`
	Pools map[string]heldBytes `json:"pools"`
}

type heldBytes struct {
	Bytes uint64 `json:"bytes"`
	Bound string `json:"bound"`
}

// processPast answers with the memory of a process over time.
func (s calls) processPast(w http.ResponseWriter, r *http.Request) {
	pid, err := strconv.Atoi(r.PathValue("pid"))
	if err != nil {
		api.Fail(w, http.StatusBadRequest, "%q is not a pid", r.PathValue("pid"))
		return
	}
	start, end, points, err := parsePoints(r, s.Now())
	if err != nil {
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	ticks := uint64(0)
	if text := r.URL.Query().Get("start_ticks"); text != "" {
		if ticks, err = strconv.ParseUint(text, 10, 64); err != nil {
			api.Fail(w, http.StatusBadRequest, "start_ticks: %q is not a number", text)
			return
		}
	}
	api.Answer(w, http.StatusOK, s.pastOf(r, pid, ticks, start, end, points))
}

// pastOf joins the changes that are known and, before those, the moments.
func (s calls) pastOf(r *http.Request, pid int, ticks uint64, start, end time.Time, points int) pastAnswer {
	out := pastAnswer{Schema: "ttmon.process-history/1", PID: pid, Points: []moment{}}
	until := end
	var list, changes []held.Point
	if s.Memory.Held != nil {
		var since time.Time
		var step time.Duration
		changes, since, step = s.Memory.Held(r.Context(), pid, ticks, start, end, points)
		if !since.IsZero() {
			since = since.UTC()
			out.Since, out.Step = &since, step.Seconds()
			if since.Before(until) {
				until = since.Add(-time.Millisecond)
			}
		}
	}
	if until.After(start) {
		share := float64(until.Sub(start)) / float64(end.Sub(start))
		list = s.moments(r, pid, ticks, start, until, min(int(share*float64(points)), maxMoments))
	}
	for _, p := range append(list, changes...) {
		out.Points = append(out.Points, momentOf(p))
	}
	return out
}

// moments reads what a process had from the snapshots that are kept between two
// times.
func (s calls) moments(r *http.Request, pid int, ticks uint64, start, end time.Time, points int) (list []held.Point) {
	var last time.Time
	for i := range points {
		at := start.Add(end.Sub(start) * time.Duration(i) / time.Duration(max(points-1, 1)))
		when, body, err := s.Memory.Past(at)
		if err != nil || when.Equal(last) || when.Before(start.Add(-time.Minute)) || when.After(end) || r.Context().Err() != nil {
			continue
		}
		last = when
		if snap, err := wire.Decode(body); err == nil {
			if devices := held.By(snap.Processes, pid, ticks); devices != nil {
				list = append(list, held.Point{Time: snap.Time, Devices: devices})
			}
		}
	}
	return list
}

func momentOf(p held.Point) moment {
	m := moment{p.Time.UTC(), []heldDevice{}}
	for _, index := range slices.Sorted(maps.Keys(p.Devices)) {
		d := heldDevice{index, map[string]heldBytes{}}
		for pool, f := range p.Devices[index] {
			if f.Known {
				d.Pools[model.Pool(pool).String()] = heldBytes{f.Bytes, f.Bound.String()}
			}
		}
		m.Devices = append(m.Devices, d)
	}
	return m
}

func parsePoints(r *http.Request, now time.Time) (start, end time.Time, points int, err error) {
	v := r.URL.Query()
	if start, end, err = api.ParsePeriod(v, now); err != nil {
		return start, end, 0, err
	}
	points = processPoints
	if text := v.Get("points"); text != "" {
		if points, err = strconv.Atoi(text); err != nil || points < 2 || points > maxProcessPoints {
			return start, end, 0, fmt.Errorf("points: %q is not a number from 2 to %d", text, maxProcessPoints)
		}
	}
	return start, end, points, nil
}
