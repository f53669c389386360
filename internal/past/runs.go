package past

import (
	"errors"
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/book/runs/compare"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/params"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/runwords"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// runsAnswer is an answer, and what the page shows of it: a row for each run, and all
// about those that are named.
type runsAnswer struct {
	runs.Answer
	Table  *sheet.Table   `json:"table"`
	Sheets []*sheet.Sheet `json:"sheets,omitempty"`
}

// runsOf lists runs. Where /proc hides processes a user sees their own runs
// only, and not by whom devices were shared.
func (s calls) runsOf(w http.ResponseWriter, r *http.Request) {
	var q runs.Query
	if err := params.Parse(r.URL.Query(), &q); err != nil {
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	v := s.Viewpoint(r)
	hides := func(uid int) bool { return v.Hides(model.Value(uid)) }
	q.Visible, q.Show = func(uid int) bool { return !hides(uid) }, func(run *runs.Run) { ofRun(v, run) }
	list, more, err := s.Memory.Runs(q)
	if err != nil {
		api.Fail(w, http.StatusInternalServerError, "%v", err)
		return
	}
	out := runsAnswer{Answer: runs.Answer{Schema: runs.Schema, Time: time.Now().UTC(), Runs: list, More: more}}
	if out.Runs == nil {
		out.Runs = []runs.Run{}
	}
	if len(q.Names) > 0 && len(out.Runs) <= maxWhole {
		for i := range out.Runs {
			s.addRunLines(r, &out.Runs[i])
		}
	}
	for i := range out.Runs {
		ofRun(v, &out.Runs[i])
	}
	present(out.Runs, hides)
	out.Table = facts.Runs(out.Runs, out.Time, time.UTC)
	if len(q.Names) > 0 && len(out.Runs) <= maxWhole {
		for i := range out.Runs {
			out.Sheets = append(out.Sheets, facts.Run(&out.Runs[i], out.Time, time.UTC))
		}
	}
	api.Answer(w, http.StatusOK, out)
}

// maxWhole is of how many runs that are named an answer says all.
const maxWhole = 4

// addRunLines completes a run with its lines of code, as far as they are known and the
// caller's.
func (s calls) addRunLines(r *http.Request, run *runs.Run) {
	why := runs.NotTraced
	if !s.Owns(r, run.UID) {
		why = runs.OtherUser
	}
	run.AddLines(s.findLines(r), why)
}

// ofRun leaves out of a run what the viewer may not see of another user's.
func ofRun(v api.Viewpoint, run *runs.Run) {
	if !v.Withholds(model.Value(run.UID)) {
		return
	}
	run.SSH, run.Dir = "", ""
	if run.Job != nil && run.Job.Kind == runs.JobSlurm {
		job := *run.Job
		job.Name, run.Job = "", &job
	}
	if v.Anonymous() {
		run.Command = ""
	}
}

// present completes runs with words, and leaves out what the viewer may not see.
func present(list []runs.Run, hides func(uid int) bool) {
	runwords.Present(list)
	for i := range list {
		for k := range list[i].Neighbours {
			if n := &list[i].Neighbours[k]; hides(n.UID) {
				n.UID, n.User, n.Name = -1, "", ""
			}
		}
	}
}

// compareRuns says how a run (?run=) differs from another (?with=), or from the
// usual ones of the same command.
func (s calls) compareRuns(w http.ResponseWriter, r *http.Request) {
	v := s.Viewpoint(r)
	find := func(q runs.Query) ([]runs.Run, error) {
		q.Visible = func(uid int) bool { return !v.Hides(model.Value(uid)) }
		list, _, err := s.Memory.Runs(q)
		return list, err
	}
	one := func(param string) (*runs.Run, bool) {
		name := r.URL.Query().Get(param)
		list, err := find(runs.Query{Names: []string{name}})
		switch {
		case name == "":
			api.Fail(w, http.StatusBadRequest, "%s: which run? For example r318", param)
		case err != nil:
			api.Fail(w, http.StatusInternalServerError, "%v", err)
		case len(list) == 0:
			api.Fail(w, http.StatusNotFound, "%s: there is no run %s", param, name)
		default:
			return &list[len(list)-1], true
		}
		return nil, false
	}
	b, ok := one("run")
	if !ok {
		return
	}
	var before *compare.Side
	var err error
	if r.URL.Query().Get("with") == "" {
		before, err = compare.Usual(b, find)
	} else {
		a, ok := one("with")
		if !ok {
			return
		}
		before, err = compare.NewSide(a.RunName(), *a)
	}
	after, err2 := compare.NewSide(b.RunName(), *b)
	if err = errors.Join(err, err2); err != nil {
		api.Fail(w, http.StatusNotFound, "%v", err)
		return
	}
	before.AddLines(s.findLines(r))
	after.AddLines(s.findLines(r))
	if v.Anonymous() {
		before.Command, after.Command = "", ""
	}
	c := compare.Compare(before, after)
	runwords.Complete(c)
	api.Answer(w, http.StatusOK, c)
}

// findLines finds the lines of a process that the caller may see.
func (s calls) findLines(r *http.Request) func(*runs.Process) (runs.ProcessLines, bool) {
	return func(p *runs.Process) (runs.ProcessLines, bool) {
		var lines runs.ProcessLines
		reply := s.Ask(r, "/v1/lines", params.Values(p.LinesQuery()))
		return lines, reply.Decode(&lines) == nil && lines.Schema == atpeak.Schema
	}
}
