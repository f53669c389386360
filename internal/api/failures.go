package api

import (
	"net/http"
	"strconv"

	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/view/why"
)

// Failures are the failed allocations that a daemon keeps.
type Failures interface {
	// List are those of users of which allow says yes, newest first.
	List(allow func(uid int) bool) []failure.Summary
	Get(id string) (*failure.Record, bool)
}

// failures lists the failed allocations of the caller's programs.
func (s *Server) failures(w http.ResponseWriter, r *http.Request) {
	answer(w, http.StatusOK, failure.List{Schema: failure.ListSchema, Failures: s.opt.Failures.List(callerOf(r).owns)})
}

// failure answers with one of them. Of those of others it is not said that they
// exist.
func (s *Server) failure(w http.ResponseWriter, r *http.Request) {
	id := r.PathValue("id")
	if id == "last" {
		var ok bool
		if id, ok = s.lastFailure(w, r); !ok {
			return
		}
	}
	record, ok := s.opt.Failures.Get(id)
	if !ok || !callerOf(r).owns(record.Process.UID) {
		fail(w, http.StatusNotFound, "there is no failed allocation %q of yours", r.PathValue("id"))
		return
	}
	record.Text = why.Event(record, true)
	answer(w, http.StatusOK, record)
}

// lastFailure is the newest one that the caller may see; who gets none has been
// told.
func (s *Server) lastFailure(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	pid := 0
	if text := r.URL.Query().Get("pid"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n <= 0 {
			fail(w, http.StatusBadRequest, "%q is not a pid", text)
			return "", false
		}
		pid = n
	}
	for _, x := range s.opt.Failures.List(callerOf(r).owns) {
		if pid == 0 || x.Process.PID == pid {
			return x.ID, true
		}
	}
	fail(w, http.StatusNotFound, "no allocation of your programs has failed that is still kept")
	return "", false
}
