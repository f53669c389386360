package api

import (
	"net/http"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/field/story"
)

// Failures are the failed allocations that a daemon keeps.
type Failures interface {
	// List are those of users of which allow says yes, newest first.
	List(allow func(uid int) bool) []failure.Summary
	Get(id string) (*failure.Record, bool)
}

// failures lists the failed allocations of the caller's programs.
func (s *Server) failures(w http.ResponseWriter, r *http.Request) {
	list := s.opt.Failures.List(callerOf(r).owns)
	for i := range list {
		list[i].Text = story.Sentence(&list[i])
	}
	Answer(w, http.StatusOK, failure.List{Schema: failure.ListSchema, Failures: list})
}

// failure answers with one of them.
func (s *Server) failure(w http.ResponseWriter, r *http.Request) {
	if record, ok := s.ownFailure(w, r); ok {
		record.Text = story.Event(record, true)
		Answer(w, http.StatusOK, record)
	}
}

// ownFailure is the failure that is asked for, if it is the caller's; who gets none
// has been told. Of those of others it is not said that they exist.
func (s *Server) ownFailure(w http.ResponseWriter, r *http.Request) (*failure.Record, bool) {
	id := r.PathValue("id")
	if id == "last" {
		var ok bool
		if id, ok = s.lastFailure(w, r); !ok {
			return nil, false
		}
	}
	record, ok := s.opt.Failures.Get(id)
	if !ok || !callerOf(r).owns(record.Process.UID) {
		Fail(w, http.StatusNotFound, "there is no failed allocation %q of yours", r.PathValue("id"))
		return nil, false
	}
	return record, true
}

// lastFailure is the newest one that the caller may see; who gets none has been
// told.
func (s *Server) lastFailure(w http.ResponseWriter, r *http.Request) (id string, ok bool) {
	var q struct {
		PID int `param:"pid"`
	}
	if !asked(w, r, &q) {
		return "", false
	}
	for _, x := range s.opt.Failures.List(callerOf(r).owns) {
		if q.PID == 0 || x.Process.PID == q.PID {
			return x.ID, true
		}
	}
	Fail(w, http.StatusNotFound, "no allocation of your programs has failed that is still kept")
	return "", false
}
