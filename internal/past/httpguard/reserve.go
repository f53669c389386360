package httpguard

import (
	"net/http"
	"sync/atomic"
	"time"
)

// Reserve bounds the requests under way to n, apart from those for paths that are
// always answered. With n below a Listener's connections some of these are never in
// use for long, whatever clients ask for and however long they take: a new connection
// finds a place, and what it asks of those paths is answered.
func Reserve(h http.Handler, n int, always func(path string) bool) http.Handler {
	var underWay atomic.Int64
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if always(r.URL.Path) {
			h.ServeHTTP(w, r)
			return
		}
		defer underWay.Add(-1)
		if underWay.Add(1) <= int64(n) {
			h.ServeHTTP(w, r)
			return
		}
		_ = http.NewResponseController(w).SetReadDeadline(time.Now()) // else the end of the request is waited for
		w.Header().Set("Connection", "close")
		http.Error(w, "too many requests are under way", http.StatusServiceUnavailable)
	})
}
