package api

import (
	"fmt"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/unixhttp"
)

// jobsOf lists jobs: ?id=, ?uid=, ?since=, ?limit=. Where /proc hides processes a
// user is told of their own jobs only.
func (s *Server) jobsOf(w unixhttp.Writer, r *unixhttp.Request) {
	q, err := parseJobQuery(r)
	if err != nil {
		fail(w, unixhttp.StatusBadRequest, "%v", err)
		return
	}
	v := s.viewpoint(r)
	snap := s.opt.Feed.Latest()
	out := jobs.Answer{Schema: "ttmon.jobs/1", Time: time.Now().UTC(), Jobs: []jobs.Account{}}
	if snap != nil {
		out.Time = snap.Time.UTC()
	}
	for _, j := range s.opt.Memory.Jobs(q) {
		if !v.hides(model.Value(j.UID)) {
			out.Jobs = append(out.Jobs, j.Now(snap))
		}
	}
	answer(w, unixhttp.StatusOK, out)
}

func parseJobQuery(r *unixhttp.Request) (q jobs.Query, err error) {
	v := r.URL.Query()
	q.IDs = v["id"]
	if text := v.Get("uid"); text != "" {
		uid, err := strconv.Atoi(text)
		if err != nil || uid < 0 {
			return q, fmt.Errorf("uid: %q is not the number of a user", text)
		}
		q.UID = &uid
	}
	if q.Since, err = parseTime(v, "since"); err != nil {
		return q, err
	}
	if text := v.Get("limit"); text != "" {
		if q.Limit, err = strconv.Atoi(text); err != nil || q.Limit < 1 {
			return q, fmt.Errorf("limit: %q is not a number above 0", text)
		}
	}
	return q, nil
}
