package api

import (
	"net/http"
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// LinesOf are the lines of a process, and whose process it is.
type LinesOf struct {
	atpeak.ProcessLines
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
	var q atpeak.Query
	if !asked(w, r, &q) {
		return
	}
	of, ok := s.opt.Lines(model.ProcessID{PID: q.PID, StartTicks: q.StartTicks}, q.Since)
	if !ok || !callerOf(r).owns(of.UID) {
		Fail(w, http.StatusNotFound, "no lines of code are known of a process %d of yours", q.PID)
		return
	}
	Answer(w, http.StatusOK, of.ProcessLines)
}
