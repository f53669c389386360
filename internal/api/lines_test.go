package api

import (
	"testing"

	"github.com/ttmon/ttmon/internal/runs"
	"github.com/ttmon/ttmon/internal/unixhttp"
)

// TestAnswered: what another handler answers is held, up to a length.
func TestAnswered(t *testing.T) {
	for _, tt := range []struct {
		name   string
		n      int
		status int
		cut    bool
	}{
		{"short", 5, unixhttp.StatusOK, false},
		{"too long", maxLinesAnswer + 1, unixhttp.StatusOK, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var w answered
			w.Header()["X"] = []string{"y"}
			if _, err := w.Write(make([]byte, tt.n)); err != nil || w.status != tt.status || w.cut != tt.cut {
				t.Errorf("%v: %d, cut %v", err, w.status, w.cut)
			}
		})
	}
	if v := (&runs.Process{PID: 7, StartTicks: 9}).LinesQuery().Encode(); v != "pid=7&start=9" {
		t.Error(v)
	}
}
