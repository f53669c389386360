package api

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/model"
)

// TestLines: lines are for the user of the process and for root, and a call that makes
// no sense says so.
func TestLines(t *testing.T) {
	h := serve(t, func(o *Options) {
		o.Lines = func(id model.ProcessID, began time.Time) (LinesOf, bool) {
			return LinesOf{atpeak.ProcessLines{Schema: atpeak.Schema, Lines: []atpeak.PeakLine{}}, os.Geteuid()}, id.PID == 7 && id.StartTicks == 9 && began.Unix() <= 0
		}
	})
	for query, want := range map[string]int{
		"pid=7&start=9": 200, "pid=7&start=9&since=1970-01-01T00:00:00Z": 200, "pid=7&start=8": 404, "pid=7&start=9&since=2026-01-01T00:00:00Z": 404,
		"": 400, "pid=7": 400, "pid=x&start=9": 400, "pid=-1&start=9": 400, "pid=7&start=9&since=noon": 400,
	} {
		t.Run(query, func(t *testing.T) {
			if status, body := h.get("/v1/lines?" + query); status != want {
				t.Errorf("%d: %s", status, body)
			}
		})
	}
}

// TestReply: what another handler answers is held, up to a length.
func TestReply(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		status int
		cut    bool
	}{
		{"short", 5, http.StatusOK, false},
		{"too long", maxReply + 1, http.StatusOK, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w Reply
			w.Header()["X"] = []string{"y"}
			if _, err := w.Write(make([]byte, tt.n)); err != nil || w.status != tt.status || w.cut != tt.cut {
				t.Errorf("%v: %d, cut %v", err, w.status, w.cut)
			}
		})
	}
}
