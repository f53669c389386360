package server

import (
	"context"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// recorder follows the snapshots and remembers what they said: for scrapes,
// history, events and alerts. It is a reader of the feed like any other, so
// nothing that it does makes the collector wait.
type recorder struct {
	log *slog.Logger
	// self says how the rest of the daemon is doing, interval how far apart
	// snapshots are.
	self     func() *stream.Self
	interval func() time.Duration
	hides    func() bool // /proc hides processes

	mu      sync.Mutex // over all below
	metrics Metrics
	hidden  bool // as the walker was told
	walker  *prom.Walker
	snap    *model.Snapshot
	pages   map[prom.Format][]byte // of snap

	recorded api.Feed // the snapshots, when they have been taken in
}

func newRecorder(c Metrics, hides func() bool, log *slog.Logger, self func() *stream.Self, interval func() time.Duration) *recorder {
	r := &recorder{log: log, self: self, interval: interval, hides: hides, metrics: c, pages: map[prom.Format][]byte{}}
	r.walker = prom.NewWalker(r.walkOptions(c))
	return r
}

func (r *recorder) walkOptions(c Metrics) prom.Options {
	o := prom.Options{
		Version: version.Version, Revision: version.Revision(), GoVersion: runtime.Version(), Processes: c.Processes, Estimates: c.Estimates,
	}
	r.hidden = r.hides()
	if c.Workloads == "always" || c.Workloads == "auto" && !r.hidden {
		o.MaxWorkloads = maxWorkloads
	}
	return o
}

// configure changes what is shown from now on.
func (r *recorder) configure(c Metrics) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.metrics = c
	r.walker.SetOptions(r.walkOptions(c))
	clear(r.pages)
}

// run follows the feed until ctx is done.
func (r *recorder) run(ctx context.Context, feed follower) error {
	feed.Follow(ctx, r.record)
	return nil
}

// follower is where snapshots come from.
type follower interface {
	Follow(ctx context.Context, each func(*model.Snapshot))
}

// record takes a snapshot in.
func (r *recorder) record(s *model.Snapshot) {
	r.mu.Lock()
	if hidden := r.hides(); hidden != r.hidden {
		r.walker.SetOptions(r.walkOptions(r.metrics))
	}
	r.walker.Observe(s)
	r.snap = s
	clear(r.pages)
	r.mu.Unlock()
	r.recorded.Publish(s)
}

// readLatest calls each with the time of the latest snapshot, and a walk over its
// samples; not before the first. The next snapshot waits for it.
func (r *recorder) readLatest(each func(at time.Time, walk func(prom.Emit))) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snap != nil {
		each(r.snap.Time, func(emit prom.Emit) { r.walker.Walk(r.snap, r.self(), emit) })
	}
}

// page is the last snapshot as a page for Prometheus; nil before the first,
// or when it is too old to be shown as current. It is made once for all who
// ask the same.
func (r *recorder) page(f prom.Format) []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.snap == nil || time.Since(r.snap.Time) > max(10*r.interval(), 30*time.Second) {
		return nil
	}
	b := r.pages[f]
	if b == nil {
		p := prom.Page{Format: f}
		r.walker.Walk(r.snap, r.self(), p.Add)
		b = p.Bytes()
		r.pages[f] = b
	}
	return b
}
