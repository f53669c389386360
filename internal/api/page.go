package api

import (
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/words"
)

// Static answers /v1/words and /v1/metrics, which are the same on every host.
func Static() http.Handler {
	s := &Server{}
	mux := new(http.ServeMux)
	mux.HandleFunc("GET /v1/words", s.words)
	mux.HandleFunc("GET /v1/metrics", s.metrics)
	return mux
}

// words answers with the words for what is in a snapshot, so that other viewers
// use the same as ttmon.
func (s *Server) words(w http.ResponseWriter, _ *http.Request) {
	missing := map[string]string{}
	for st := model.Absent; st <= model.Pending; st++ {
		if st != model.Known {
			missing[st.String()] = words.Missing(st)
		}
	}
	marks := map[string]string{}
	for _, b := range []model.Bound{model.Exact, model.AtLeast, model.Unsure} {
		marks[b.String()] = words.Mark(b)
	}
	tracking := map[string]string{}
	for _, t := range []model.Tracking{model.TrackDenied, model.TrackAbsent, model.TrackUnknown, model.TrackPartial, model.TrackOK} {
		tracking[string(t)] = words.UntrackedWord(t)
	}
	sources := map[string]string{}
	for _, src := range []model.Source{model.FromTrack, model.FromUprobe, model.FromSocket, model.FromFDInfo, model.FromDriver, model.FromShm} {
		sources[string(src)] = words.Source(src)
	}
	pools := map[string]string{}
	for _, p := range model.Pools() {
		pools[p.String()] = words.PoolName(p)
	}
	cb := map[string]string{}
	for _, c := range []model.CBMeaning{model.CBCached, model.CBPartly, model.CBResident, model.CBLargest, model.CBReported} {
		cb[string(c)] = words.CBMeaning(c)
	}
	Answer(w, http.StatusOK, map[string]any{
		"schema": "ttmon.words/1", "nothing": words.Nothing, "missing": missing, "marks": marks, "tracking": tracking, "sources": sources,
		"fields": fieldWords(), "processes": pagejson.Columns(), "operations": sheet.Columns(metric.Operations()), "pools": pools, "cb_means": cb, "buffers_only": words.BuffersOnly, "no_line": words.NoLine, "simulated": words.Simulated,
	})
}

// fieldWord is how a field of devices is called.
type fieldWord struct {
	Head  string `json:"head,omitempty"` // where room is short
	Title string `json:"title"`
}

func fieldWords() map[string]fieldWord {
	out := map[string]fieldWord{}
	for _, f := range metric.Devices() {
		if f.Title != "" {
			out[f.Name] = fieldWord{f.Head, f.Title}
		}
	}
	return out
}

// said answers with a snapshot in words: the latest, or one of another time.
func (s *Server) said(w http.ResponseWriter, r *http.Request) {
	if snap := s.asked(w, r); snap != nil {
		Answer(w, http.StatusOK, pagejson.Of(snap))
	}
}

// facts answers with all that is known of a device, or of a process.
func (s *Server) facts(w http.ResponseWriter, r *http.Request) {
	snap := s.asked(w, r)
	if snap == nil {
		return
	}
	if pid := r.URL.Query().Get("pid"); pid != "" {
		for i := range snap.Processes {
			if p := &snap.Processes[i]; strconv.Itoa(p.PID) == pid && p.State != model.Hidden {
				Answer(w, http.StatusOK, pagejson.FactsOfProcess(snap, p))
				return
			}
		}
		Fail(w, http.StatusNotFound, "pid: there is no %q", pid)
		return
	}
	bus := r.URL.Query().Get("device")
	for i := range snap.Devices {
		if d := &snap.Devices[i]; d.BusID == bus {
			Answer(w, http.StatusOK, pagejson.FactsOf(snap, d))
			return
		}
	}
	Fail(w, http.StatusNotFound, "device: there is no %q", bus)
}

// mesh answers with the Ethernet links of the chips.
func (s *Server) mesh(w http.ResponseWriter, r *http.Request) {
	if snap := s.asked(w, r); snap != nil {
		Answer(w, http.StatusOK, pagejson.MeshOf(snap))
	}
}

// asked is the snapshot of the moment that is asked for, as far as the client
// may see it; nil where there is none, and the client has been told.
func (s *Server) asked(w http.ResponseWriter, r *http.Request) *model.Snapshot {
	v, snap := s.Viewpoint(r), s.opt.Feed.Latest()
	at, err := ParseMoment(r.URL.Query())
	if err != nil {
		Fail(w, http.StatusBadRequest, "%v", err)
		return nil
	}
	if !at.IsZero() {
		var ok bool
		if snap, ok = s.pastSnapshot(w, at); !ok {
			return nil
		}
		return v.OfPast(snap)
	}
	if snap == nil {
		Fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
		return nil
	}
	return v.filter(snap)
}

// pastSnapshot finds the snapshot of a time; where there is none the client has
// been told.
func (s *Server) pastSnapshot(w http.ResponseWriter, at time.Time) (*model.Snapshot, bool) {
	if s.opt.At == nil {
		Fail(w, http.StatusNotFound, "this ttmond keeps no history")
		return nil, false
	}
	snap, err := s.opt.At(at)
	switch {
	case errors.Is(err, ErrDamaged):
		Fail(w, http.StatusInternalServerError, "%v", err)
		return nil, false
	case err != nil:
		Fail(w, http.StatusNotFound, "%v", err)
		return nil, false
	}
	return snap, true
}

// ErrDamaged is of a snapshot that is kept and cannot be read.
var ErrDamaged = errors.New("is damaged")

// chartable is a metric of which there is a history.
type chartable struct {
	Name     string `json:"name"`
	Unit     string `json:"unit"`
	Decimals int    `json:"decimals"` // that people read
	Kind     string `json:"kind"`
	Rate     bool   `json:"rate"`
	Help     string `json:"help"`
}

// metrics lists what /v1/range can be asked for.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) {
	list := []chartable{}
	for _, f := range metric.Devices() {
		if _, _, ok := f.Query("1m"); ok && !f.Foreign {
			list = append(list, chartable{f.Name, f.Unit, f.Form().Decimals(), f.Kind.String(), f.Rate, f.Help})
		}
	}
	Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.metrics/1", "metrics": list})
}
