package api

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/runs/atpeak"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// LinesOf are the lines of a process, and whose process it is.
type LinesOf struct {
	runs.ProcessLines
	UID int
}

// FindLines is an Options.Lines: of a process that runs, out of its ledger, else what
// is kept of one that has exited.
func FindLines(running func(model.ProcessID) (l *ledgerfile.Ledger, uid int), kept *atpeak.Store) func(model.ProcessID, time.Time) (LinesOf, bool) {
	return func(id model.ProcessID, began time.Time) (LinesOf, bool) {
		if l, uid := running(id); l != nil {
			lines, ok := atpeak.Of(l)
			return LinesOf{lines, uid}, ok
		}
		lines, uid, ok := kept.Find(id, began)
		return LinesOf{lines, uid}, ok
	}
}

// lines answers with the lines of code of a process at its peak. Of those of other
// users it is not said that they exist.
func (s *Server) lines(w http.ResponseWriter, r *http.Request) {
	v := r.URL.Query()
	pid, err := strconv.Atoi(v.Get("pid"))
	if err != nil || pid < 1 {
		Fail(w, http.StatusBadRequest, "pid: %q is not a pid", v.Get("pid"))
		return
	}
	start, err := strconv.ParseUint(v.Get("start"), 10, 64)
	if err != nil {
		Fail(w, http.StatusBadRequest, "start: %q is not the start_ticks of a process", v.Get("start"))
		return
	}
	var began time.Time
	if text := v.Get("since"); text != "" {
		if began, err = time.Parse(time.RFC3339, text); err != nil {
			Fail(w, http.StatusBadRequest, "since: %q is not a time like 2026-11-15T08:30:00Z", text)
			return
		}
	}
	of, ok := s.opt.Lines(model.ProcessID{PID: pid, StartTicks: start}, began)
	if !ok || !callerOf(r).owns(of.UID) {
		Fail(w, http.StatusNotFound, "no lines of code are known of a process %d of yours", pid)
		return
	}
	Answer(w, http.StatusOK, of.ProcessLines)
}

// FindLines finds the lines of a process that the caller may see.
func (s *Server) FindLines(r *http.Request) func(*runs.Process) (runs.ProcessLines, bool) {
	return func(p *runs.Process) (runs.ProcessLines, bool) {
		if s.opt.Upstream != nil {
			if up := s.opt.Upstream(); up != nil {
				return upstreamLines(r, up, p)
			}
		}
		if s.opt.Lines == nil {
			return runs.ProcessLines{}, false
		}
		of, ok := s.opt.Lines(model.ProcessID{PID: p.PID, StartTicks: p.StartTicks}, p.Start)
		return of.ProcessLines, ok && callerOf(r).owns(of.UID)
	}
}

// upstreamLines asks the ttmond that is followed, for the viewer whose request it is.
func upstreamLines(r *http.Request, up Upstream, p *runs.Process) (lines runs.ProcessLines, ok bool) {
	ask, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "/v1/lines?"+p.LinesQuery().Encode(), http.NoBody)
	if err != nil {
		return lines, false
	}
	ask.Header = r.Header
	var w answered
	up.ServeHTTP(&w, ask)
	ok = w.status == http.StatusOK && !w.cut && json.Unmarshal(w.body.Bytes(), &lines) == nil && lines.Schema == runs.LinesSchema
	return lines, ok
}

// maxLinesAnswer is more than ttmond answers.
const maxLinesAnswer = 1 << 20

// answered is a ResponseWriter that holds an answer.
type answered struct {
	header http.Header
	status int
	body   bytes.Buffer
	cut    bool // it was too long
}

func (w *answered) Header() http.Header {
	if w.header == nil {
		w.header = http.Header{}
	}
	return w.header
}

func (w *answered) WriteHeader(status int) {
	if w.status == 0 {
		w.status = status
	}
}

func (w *answered) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.body.Len()+len(b) > maxLinesAnswer {
		w.cut = true
		return len(b), nil
	}
	return w.body.Write(b)
}
