package api

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// What the API says of the daemon itself, as its clients read it.
type (
	Health       = apitype.Health
	Problem      = apitype.Problem
	SourceHealth = apitype.SourceHealth
	Watch        = apitype.Watch
	WatchLibrary = apitype.WatchLibrary
)

// firstSnapshot is how long the first snapshot may take.
const firstSnapshot = 10 * time.Second

func (s *Server) health(w http.ResponseWriter, r *http.Request) {
	h := Health{
		Status: "ok", Problems: []Problem{}, Warnings: []Problem{}, Sources: []SourceHealth{},
		Version: s.opt.Version, Uptime: time.Since(s.started).Round(time.Millisecond).Seconds(),
		Watchers: s.budgets.watchers.Used() + s.budgets.viewers.Used(), Goroutines: runtime.NumGoroutine(), HeapBytes: heapInUse(),
		Ledger: s.opt.Ledger.Stats(), Budgets: append(s.budgets.states(), s.opt.Ledger.Budget()),
	}
	if limit := debug.SetMemoryLimit(-1); limit != math.MaxInt64 {
		h.MemoryLimit = uint64(limit)
	}
	s.checkSnapshots(&h)
	if s.opt.Health != nil {
		s.opt.Health(r.Context(), &h)
	}
	if v := s.Viewpoint(r); v.Level > 0 {
		hideUsers(h.Budgets, v.UID)
	}
	if !callerOf(r).sees() {
		hideLibraries(&h)
	}
	status := http.StatusOK
	if len(h.Problems) > 0 {
		h.Status, status = "late", http.StatusServiceUnavailable
	}
	Answer(w, status, h)
}

// checkSnapshots sees whether snapshots are made.
func (s *Server) checkSnapshots(h *Health) {
	snap := s.opt.Feed.Latest()
	if snap == nil {
		if time.Since(s.started) > firstSnapshot {
			h.Problems = append(h.Problems, Problem{Part: "snapshots", Reason: "none has been made since the start"})
		}
		return
	}
	age := s.opt.Now().Sub(snap.Time)
	seconds := age.Round(time.Millisecond).Seconds()
	h.SnapshotAge = &seconds
	if age > s.maxAge() {
		h.Problems = append(h.Problems, Problem{Part: "snapshots", Reason: fmt.Sprintf("the latest is %v old", age.Round(100*time.Millisecond))})
	}
}

// maxAge is how old a snapshot, or how slow a source, may be.
func (s *Server) maxAge() time.Duration {
	if s.opt.Interval == nil {
		return 30 * time.Second
	}
	return 5*s.opt.Interval() + 5*time.Second
}

// heapInUse is what Go's heap has taken. Unlike runtime.ReadMemStats this stops
// no goroutine.
func heapInUse() (sum uint64) {
	samples := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(samples)
	for _, x := range samples {
		if x.Value.Kind() == metrics.KindUint64 {
			sum += x.Value.Uint64()
		}
	}
	return sum
}

// hideUsers leaves only the caller's own figures where /proc hides others.
func hideUsers(budgets []budget.State, uid int) {
	for i := range budgets {
		budgets[i].Users = slices.DeleteFunc(budgets[i].Users, func(u budget.User) bool { return u.UID != uid })
	}
}

// hideLibraries leaves of the paths of libraries their last part: root found them in
// the memory maps of processes, which are not for other users.
func hideLibraries(h *Health) {
	if h.Uprobe == nil {
		return
	}
	libraries := slices.Clone(h.Uprobe.Libraries)
	for i := range libraries {
		libraries[i].Path = filepath.Base(libraries[i].Path)
	}
	watch := *h.Uprobe
	watch.Libraries, h.Uprobe = libraries, &watch
}

// reload has the configuration read again.
func (s *Server) reload(w http.ResponseWriter, r *http.Request) {
	if !callerOf(r).sees() {
		Fail(w, http.StatusForbidden, "only root and the user that ttmond runs as may have the configuration read again")
		return
	}
	if s.opt.Restart != nil {
		s.restart(w, r)
		return
	}
	said, err := s.opt.Reload()
	if err != nil {
		Fail(w, http.StatusUnprocessableEntity, "the old configuration holds: %v", err)
		return
	}
	Answer(w, http.StatusOK, reloaded(said))
}

func reloaded(said []string) map[string]any {
	if said == nil {
		said = []string{}
	}
	return map[string]any{"schema": "ttmon.reload/1", "changes": said}
}

// restart has the daemon executed again. The one that serves then gives the answer: the
// connection is handed to it.
func (s *Server) restart(w http.ResponseWriter, r *http.Request) {
	said, begin, err := s.opt.Restart(r.Context())
	if err != nil {
		Fail(w, http.StatusUnprocessableEntity, "nothing has changed: %v", err)
		return
	}
	text, _ := json.Marshal(reloaded(said))
	head := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n", len(text))
	conn, err := hijack(w)
	if err != nil { // it will not be told
		s.log.Error("cannot keep the connection of a reload", "err", err)
	}
	begin(conn, append([]byte(head), text...))
}

// hijack returns a descriptor of the connection of a request, which the server then leaves alone.
func hijack(w http.ResponseWriter) (fd int, err error) {
	conn, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return -1, err
	}
	defer conn.Close()
	sys, ok := conn.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("no socket, but a %T", conn)
	}
	raw, err := sys.SyscallConn()
	if err != nil {
		return -1, err
	}
	ctl := raw.Control(func(own uintptr) { fd, err = unix.FcntlInt(own, unix.F_DUPFD_CLOEXEC, 0) })
	return fd, errors.Join(ctl, err)
}

func (s *Server) version(w http.ResponseWriter, _ *http.Request) {
	calls := []string{}
	for i := range s.calls {
		if c := &s.calls[i]; c.Serve != nil || s.opt.Upstream() != nil {
			calls = append(calls, c.Path)
		}
	}
	if s.opt.Prometheus != nil {
		calls = append(calls, "/prometheus/api/v1/query")
	}
	Answer(w, http.StatusOK, map[string]any{
		"name": s.opt.Name, "version": s.opt.Version, "api": []string{"v1"},
		"calls": append(calls, s.opt.Beside...), "recording": s.opt.Recording, "page": s.address(),
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
		Fail(w, http.StatusBadRequest, "kind: %q is neither remaining nor kernels", kind)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = w.Write([]byte(s.opt.Dump(kind, callerOf(r).user(), callerOf(r).sees())))
}

// dumps lists the dumps that clients of the caller asked for; root sees all.
func (s *Server) dumps(w http.ResponseWriter, r *http.Request) {
	list := []Dump{}
	for _, d := range s.opt.Dumps() {
		if callerOf(r).owns(d.UID) {
			list = append(list, d)
		}
	}
	Answer(w, http.StatusOK, map[string]any{"schema": "ttmon.dumps/1", "dumps": list})
}
