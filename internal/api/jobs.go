package api

import (
	"net/http"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/view/runwords"
)

// jobsOf lists jobs, by the parameters of runs. Where /proc hides processes a user
// sees their own jobs only.
func (s pastCalls) jobsOf(w http.ResponseWriter, r *http.Request) {
	q, err := runs.ParseQuery(r.URL.Query())
	if err != nil {
		fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	v := s.viewpoint(r)
	q.Visible = func(uid int) bool { return !v.hides(model.Value(uid)) }
	var list []runs.Run
	if s.Memory.Runs != nil {
		// Of all users: whose a job is depends on who else claims it.
		if list, _, err = s.Memory.Runs(runs.Query{Jobs: true, Since: q.Since, Until: q.Until}); err != nil {
			fail(w, http.StatusInternalServerError, "%v", err)
			return
		}
	}
	for i := range list {
		v.ofRun(&list[i])
	}
	book := slices.Clone(s.Memory.Jobs(jobs.Query{Since: q.Since}))
	for i := range book {
		if j := &book[i]; j.Kind == jobs.Slurm && v.withholds(model.Value(j.UID)) {
			j.Name = ""
		}
	}
	snap := s.opt.Feed.Latest()
	out := jobs.Answer{Schema: jobs.Schema, Time: time.Now().UTC(), Jobs: []jobs.Account{}}
	if snap != nil {
		out.Time = snap.Time.UTC()
	}
	for _, j := range jobs.Find(book, list, &q) {
		out.Jobs = append(out.Jobs, j.Now(snap))
	}
	runwords.PresentJobs(out.Jobs)
	answer(w, http.StatusOK, out)
}
