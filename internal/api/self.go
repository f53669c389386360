package api

import (
	"net/http"
	"runtime"
	"time"

	"github.com/ttmon/ttmon/internal/ledger"
)

// Health is how the daemon is doing.
type Health struct {
	Status      string       `json:"status"` // "ok", or "stale" if snapshots have stopped
	PID         int          `json:"pid"`
	Version     string       `json:"version"`
	Uptime      float64      `json:"uptime_s"`
	SnapshotAge *float64     `json:"snapshot_age_s"` // null before the first
	Watchers    int          `json:"watchers"`
	Goroutines  int          `json:"goroutines"`
	HeapBytes   uint64       `json:"heap_bytes"`
	Ledger      ledger.Stats `json:"ledger"`
	AllocSocket any          `json:"alloc_socket,omitempty"` // figures of the allocation server
}

// staleAfter is how old the latest snapshot may be in a healthy daemon.
const staleAfter = 30 * time.Second

func (s *Server) health(w http.ResponseWriter, _ *http.Request) {
	var mem runtime.MemStats
	runtime.ReadMemStats(&mem)
	h := Health{
		Status: "ok", Version: s.opt.Version, Uptime: time.Since(s.started).Round(time.Millisecond).Seconds(),
		Watchers: len(s.slots), Goroutines: runtime.NumGoroutine(), HeapBytes: mem.HeapInuse, Ledger: s.opt.Ledger.Stats(),
	}
	if snap := s.opt.Feed.Latest(); snap != nil {
		age := time.Since(snap.Time)
		seconds := age.Round(time.Millisecond).Seconds()
		h.SnapshotAge = &seconds
		if age > staleAfter {
			h.Status = "stale"
		}
	}
	if s.opt.Health != nil {
		s.opt.Health(&h)
	}
	answer(w, http.StatusOK, h)
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	calls := []string{
		"/v1/snapshot", "/v1/watch", "/v1/processes", "/v1/processes/PID/buffers", "/v1/leaks",
		"/v1/dump", "/v1/dumps", "/v1/health", "/v1/version",
	}
	if m := s.opt.Memory; m.Events != nil {
		calls = append(calls, "/v1/events", "/v1/past", "/v1/alerts", "/prometheus/api/v1/query")
	}
	answer(w, http.StatusOK, map[string]any{
		"name": "ttmond", "version": s.opt.Version, "api": []string{"v1"},
		"calls": calls,
	})
}

// dump answers with everything live, as text.
func (s *Server) dump(w http.ResponseWriter, r *http.Request) {
	kind := r.URL.Query().Get("kind")
	switch kind {
	case "":
		kind = "remaining"
	case "remaining", "kernels":
	default:
		fail(w, http.StatusBadRequest, "kind: %q is neither remaining nor kernels", kind)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(s.opt.Dump(kind, callerOf(r).user(), callerOf(r).sees())))
}

// dumps lists the dumps that clients asked for.
func (s *Server) dumps(w http.ResponseWriter, _ *http.Request) {
	list := s.opt.Dumps()
	if list == nil {
		list = []Dump{}
	}
	answer(w, http.StatusOK, map[string]any{"schema": "ttmon.dumps/1", "dumps": list})
}
