// Package page has the calls of the API that say and draw for the page what other calls
// answer as data: snapshots in words, failed allocations, the banks of a process.
//
// Its place in the flow: it asks those other calls for the viewer, of the ttmond that is
// followed or of this process, and answers with views. ttmond has no page, and does not
// link it.
package page

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/pagejson"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// Moments finds the snapshot of another time; nil: none is kept.
type Moments func(time.Time) (*model.Snapshot, error)

// Serve completes the options of an API with the calls for the page.
func (m Moments) Serve(o *api.Options) {
	o.More = append(o.More, m.Calls)
	o.Said = func(s *model.Snapshot) []byte {
		text, err := json.Marshal(pagejson.Of(s))
		if err != nil {
			panic("BUG: " + err.Error())
		}
		return text
	}
}

// calls answers for the page.
type calls struct {
	*api.Server
	at Moments
}

// Static answers /v1/words and /v1/metrics, which are the same on every host.
func Static() http.Handler {
	var s calls
	mux := new(http.ServeMux)
	mux.HandleFunc("GET /v1/words", s.words)
	mux.HandleFunc("GET /v1/metrics", s.metrics)
	return mux
}

// words answers with the words for what is in a snapshot, so that other viewers
// use the same as ttmon.
func (s calls) words(w http.ResponseWriter, _ *http.Request) {
	api.Answer(w, http.StatusOK, map[string]any{
		"schema": "ttmon.words/1", "nothing": words.Nothing,
		"missing":  said(words.Missing, slices.DeleteFunc(statuses(), func(st model.Status) bool { return st == model.Known })...),
		"marks":    said(words.Mark, model.Exact, model.AtLeast, model.Unsure),
		"tracking": said(words.UntrackedWord, model.TrackDenied, model.TrackAbsent, model.TrackUnknown, model.TrackPartial, model.TrackOK),
		"sources":  said(words.Source, model.FromTrack, model.FromUprobe, model.FromSocket, model.FromFDInfo, model.FromDriver, model.FromShm),
		"pools":    said(words.PoolName, model.Pools()...),
		"cb_means": said(words.CBMeaning, model.CBCached, model.CBPartly, model.CBResident, model.CBLargest, model.CBReported),
		"fields":   fieldWords(), "processes": pagejson.Columns(), "operations": sheet.Columns(metric.Operations()),
		"buffers_only": words.BuffersOnly, "no_line": words.NoLine, "simulated": words.Simulated,
	})
}

// statuses are those that a reading can have.
func statuses() (list []model.Status) {
	for st := model.Absent; st <= model.Pending; st++ {
		list = append(list, st)
	}
	return list
}

// said is how values are called, by their names in JSON.
func said[T any](call func(T) string, list ...T) map[string]string {
	out := map[string]string{}
	for _, v := range list {
		out[fmt.Sprint(v)] = call(v)
	}
	return out
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
func (s calls) said(w http.ResponseWriter, r *http.Request) {
	if snap := s.asked(w, r); snap != nil {
		api.Answer(w, http.StatusOK, pagejson.Of(snap))
	}
}

// facts answers with all that is known of a device, or of a process.
func (s calls) facts(w http.ResponseWriter, r *http.Request) {
	snap := s.asked(w, r)
	if snap == nil {
		return
	}
	if pid := r.URL.Query().Get("pid"); pid != "" {
		for i := range snap.Processes {
			if p := &snap.Processes[i]; strconv.Itoa(p.PID) == pid && p.State != model.Hidden {
				api.Answer(w, http.StatusOK, sheet.Sheet{Parts: []sheet.Part{{Title: "What it is", Pairs: facts.Process(snap, p)}}})
				return
			}
		}
		api.Fail(w, http.StatusNotFound, "pid: there is no %q", pid)
		return
	}
	bus := r.URL.Query().Get("device")
	for i := range snap.Devices {
		if d := &snap.Devices[i]; d.BusID == bus {
			api.Answer(w, http.StatusOK, facts.Device(snap, d))
			return
		}
	}
	api.Fail(w, http.StatusNotFound, "device: there is no %q", bus)
}

// mesh answers with the Ethernet links of the chips.
func (s calls) mesh(w http.ResponseWriter, r *http.Request) {
	if snap := s.asked(w, r); snap != nil {
		api.Answer(w, http.StatusOK, pagejson.MeshOf(snap))
	}
}

// asked is the snapshot of the moment that is asked for, as far as the client
// may see it; nil where there is none, and the client has been told.
func (s calls) asked(w http.ResponseWriter, r *http.Request) *model.Snapshot {
	v, snap := s.Viewpoint(r), s.Latest()
	at, err := api.ParseMoment(r.URL.Query())
	if err != nil {
		api.Fail(w, http.StatusBadRequest, "%v", err)
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
		api.Fail(w, http.StatusServiceUnavailable, "there is no snapshot yet; try again")
		return nil
	}
	return v.Filter(snap)
}

// pastSnapshot finds the snapshot of a time; where there is none the client has
// been told.
func (s calls) pastSnapshot(w http.ResponseWriter, at time.Time) (*model.Snapshot, bool) {
	if s.at == nil {
		api.Fail(w, http.StatusNotFound, "this server keeps no history")
		return nil, false
	}
	snap, err := s.at(at)
	switch {
	case errors.Is(err, past.ErrDamaged):
		api.Fail(w, http.StatusInternalServerError, "%v", err)
		return nil, false
	case err != nil:
		api.Fail(w, http.StatusNotFound, "%v", err)
		return nil, false
	}
	return snap, true
}

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
func (s calls) metrics(w http.ResponseWriter, _ *http.Request) {
	list := []chartable{}
	for _, f := range metric.Devices() {
		if _, _, ok := f.Query("1m"); ok && !f.Foreign {
			list = append(list, chartable{f.Name, f.Unit, f.Form().Decimals(), f.Kind.String(), f.Rate, f.Help})
		}
	}
	api.Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.metrics/1", "metrics": list})
}
