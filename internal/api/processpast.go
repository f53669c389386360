package api

import (
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/wire"
)

// What a process held, from the snapshots that are kept: they are read, so
// there are not many points.
const (
	processPoints    = 60
	maxProcessPoints = 240
)

// held is what a process had at one moment.
type held struct {
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
func (s *Server) processPast(w http.ResponseWriter, r *http.Request) {
	pid, err := strconv.Atoi(r.PathValue("pid"))
	if err != nil {
		fail(w, http.StatusBadRequest, "%q is not a pid", r.PathValue("pid"))
		return
	}
	start, end, points, err := parsePoints(r, s.opt.Now())
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	ticks := uint64(0)
	if text := r.URL.Query().Get("start_ticks"); text != "" {
		if ticks, err = strconv.ParseUint(text, 10, 64); err != nil {
			fail(w, http.StatusBadRequest, "start_ticks: %q is not a number", text)
			return
		}
	}
	list := []held{}
	var last time.Time
	for i := range points {
		at := start.Add(end.Sub(start) * time.Duration(i) / time.Duration(max(points-1, 1)))
		when, body, err := s.opt.Memory.Past(at)
		if err != nil || when.Equal(last) || when.Before(start.Add(-time.Minute)) || r.Context().Err() != nil {
			continue
		}
		last = when
		if snap, err := wire.Decode(body); err == nil {
			if p := findProcess(snap, pid, ticks); p != nil {
				list = append(list, held{snap.Time.UTC(), heldOf(p)})
			}
		}
	}
	answer(w, http.StatusOK, map[string]any{"schema": "ttmon.process-history/1", "pid": pid, "points": list})
}

func parsePoints(r *http.Request, now time.Time) (start, end time.Time, points int, err error) {
	v := r.URL.Query()
	if start, end, err = parsePeriod(v, now); err != nil {
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

// findProcess finds a process; ticks 0 stands for any that had the pid.
func findProcess(s *model.Snapshot, pid int, ticks uint64) *model.Process {
	for i := range s.Processes {
		if p := &s.Processes[i]; p.PID == pid && (ticks == 0 || p.StartTicks == ticks) {
			return p
		}
	}
	return nil
}

func heldOf(p *model.Process) []heldDevice {
	out := []heldDevice{}
	for i := range p.Devices {
		u := &p.Devices[i]
		if u.Device == model.NoDevice {
			continue
		}
		d := heldDevice{u.Device, map[string]heldBytes{}}
		for _, pool := range model.Pools() {
			if n, bound, known := u.Memory[pool].Best(); known {
				d.Pools[pool.String()] = heldBytes{n, bound.String()}
			}
		}
		out = append(out, d)
	}
	return out
}
