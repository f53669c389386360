package page

import (
	"net/http"
	"net/url"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/why"
)

// failurePage answers with a failed allocation as the page shows it.
func (s calls) failurePage(w http.ResponseWriter, r *http.Request) {
	if record, ok := s.failure(w, r); ok {
		api.Answer(w, http.StatusOK, why.Page{Schema: why.PageSchema, ID: record.ID, Sheet: why.Sheet(record, why.Options{Now: time.Now(), Spans: sheet.MaxSpans})})
	}
}

// failureFile answers with one of them as an HTML file to be saved. It has nothing
// of its own to run or to load, and may not.
func (s calls) failureFile(w http.ResponseWriter, r *http.Request) {
	record, ok := s.failure(w, r)
	if !ok {
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
	h.Set("Content-Disposition", `attachment; filename="ttmon-why-`+record.ID+`.html"`)
	h.Set("X-Content-Type-Options", "nosniff")
	_, _ = w.Write(sheet.AppendHTML(nil, why.Sheet(record, why.Options{Now: time.Now(), Spans: sheet.MaxSpans})))
}

// failure is the one that is asked for, if the viewer may see it; who gets none has been
// told.
func (s calls) failure(w http.ResponseWriter, r *http.Request) (*failure.Record, bool) {
	reply := s.Ask(r, "/v1/failures/"+url.PathEscape(r.PathValue("id")), nil)
	if !reply.OK(w) {
		return nil, false
	}
	record, err := failure.Decode(reply.Body())
	if err != nil {
		api.Fail(w, http.StatusInternalServerError, "%v", err)
		return nil, false
	}
	return record, true
}
