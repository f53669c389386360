package past

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/model"
)

// The time of an event, as a browser cuts it, finds the snapshot that shows it; a
// finer time is taken as it is.
func TestMoment(t *testing.T) {
	shows := time.Date(2026, 11, 15, 12, 0, 1, 418_765_432, time.UTC)
	h := serve(t, Memory{Past: func(at time.Time) (time.Time, []byte, error) {
		s := &model.Snapshot{Time: shows.Add(-time.Second), Host: model.Host{Name: "before"}}
		if !at.Before(shows) {
			s = &model.Snapshot{Time: shows, Host: model.Host{Name: "shows"}}
		}
		return s.Time, wire.Append(nil, s), nil
	}})
	for at, want := range map[string]string{
		"2026-11-15T12:00:01.418Z":       "shows",
		"2026-11-15T12:00:01.418765432Z": "shows",
		"2026-11-15T12:00:01.418765431Z": "before",
		"2026-11-15T12:00:01.417Z":       "before",
	} {
		t.Run(at, func(t *testing.T) {
			if status, body := h.get("/v1/past?at=" + url.QueryEscape(at)); status != 200 || !strings.Contains(body, `"`+want+`"`) {
				t.Errorf("at %s: status %d, %s", at, status, body)
			}
		})
	}
}
