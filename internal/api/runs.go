package api

import (
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/view/runwords"
)

// runsOf lists runs. Where /proc hides processes a user is told of their own runs
// only, and not by whom devices were shared.
func (s *Server) runsOf(w http.ResponseWriter, r *http.Request) {
	q, err := runs.ParseQuery(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	v := s.viewpoint(r)
	hides := func(uid int) bool { return v.hides(model.Value(uid)) }
	q.Visible = func(uid int) bool { return !hides(uid) }
	list, more, err := s.opt.Memory.Runs(q)
	if err != nil {
		fail(w, http.StatusInternalServerError, "%v", err)
		return
	}
	out := runs.Answer{Schema: runs.Schema, Time: time.Now().UTC(), Runs: list, More: more}
	if out.Runs == nil {
		out.Runs = []runs.Run{}
	}
	present(out.Runs, hides)
	answer(w, http.StatusOK, out)
}

// present completes runs with words, and leaves out what the viewer may not see.
func present(list []runs.Run, hides func(uid int) bool) {
	for i := range list {
		x := &list[i]
		x.End.Text = runwords.End(x)
		for k := range x.Neighbours {
			if n := &x.Neighbours[k]; hides(n.UID) {
				n.UID, n.User, n.Name = -1, "", ""
			}
		}
	}
}
