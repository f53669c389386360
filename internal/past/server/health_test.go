package server

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/node/api"
)

// Health names what is late, whether it is still at work or took too long, and
// nothing else.
func TestHealthOfTheArchive(t *testing.T) {
	now := time.Now()
	var h api.Health
	h.AddRun("kmd", time.Second, time.Time{}, now, 10*time.Second)
	h.AddRun("shm", 0, now.Add(-11*time.Second), now, 10*time.Second)
	h.AddRun("umd", 12*time.Second, time.Time{}, now, 10*time.Second)
	h.AddRun("track", 0, now.Add(-time.Second), now, 10*time.Second)
	a := &archive{numbers: loopStatus{doing: "writing takes", since: now.Add(-time.Hour)}, writing: loopStatus{took: time.Minute}, failed: errors.New("no space")}
	a.check(&h, now)
	var late []string
	for _, p := range h.Problems {
		late = append(late, p.Part+": "+p.Reason)
	}
	want := "shm: has not answered for 11s; umd: the last time it took 12s; history: writing takes 1h0m0s; journal: the last time it took 1m0s"
	if got := strings.Join(late, "; "); got != want {
		t.Errorf("late:\n%s\nwant\n%s", got, want)
	}
	a.failed, a.diskFailed = nil, errors.New("no space")
	var full api.Health
	a.check(&full, now)
	if len(full.Warnings) != 1 || full.Warnings[0] != (api.Problem{Part: "history", Reason: "figures are not written to disk: no space"}) {
		t.Errorf("a full disk: %+v", full.Warnings)
	}
	if len(h.Sources) != 6 || h.Sources[0].Late || !h.Sources[1].Late || len(h.Warnings) != 1 {
		t.Errorf("sources %+v, warnings %+v", h.Sources, h.Warnings)
	}
}
