package node

import (
	"path/filepath"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/book/failure"
	"github.com/ttmon/ttmon/internal/book/failure/keep"
	"github.com/ttmon/ttmon/internal/collect/gather"
	"github.com/ttmon/ttmon/internal/field/story"
	"github.com/ttmon/ttmon/internal/model"
)

// failures are the allocations that failed: the last ones, and what gathers them.
type failures struct {
	store    *keep.Store
	gatherer *gather.Gatherer
}

func newFailures(d *ttmond) *failures {
	store := keep.Open(filepath.Join(d.cfg.StateDir, "failures"), keep.DefaultLimits, d.log)
	o := gather.Options{Store: store, Ledgers: d.collector.collector.Ledgers, Latest: d.collector.feed.Latest, New: d.allocationFailed, LeftOut: d.failuresLeftOut}
	if s := d.watcher.source; s != nil {
		o.Probes, o.Failed = s.Failures, s.Failed()
	}
	return &failures{store: store, gatherer: gather.New(o)}
}

// allocationFailed makes an event of a failure.
func (d *ttmond) allocationFailed(r *failure.Record) {
	d.log.Info("allocation failed", "id", r.ID, "pid", r.Process.PID, "uid", r.Process.UID, "pool", r.Pool, "bank_bytes", r.Need(), "cause", r.Verdict.Cause)
	e := model.Event{
		Time: r.Time, Kind: model.EventNoRoom, Level: model.Warning, Short: strconv.Itoa(r.Process.PID) + " no room", Text: story.Event(r, false),
		Process: true, PID: r.Process.PID, Failure: r.ID,
	}
	for _, c := range r.Chips {
		if c.BusID != "" {
			e.Devices = append(e.Devices, c.BusID)
		}
	}
	d.backlog.Append(e)
}

// failuresLeftOut makes one event of the failures of a user that were too many for
// one each.
func (d *ttmond) failuresLeftOut(uid int, n uint64) {
	d.log.Warn("allocations failed too often to report each", "uid", uid, "not_reported", n)
	text := strconv.FormatUint(n, 10) + " more allocations failed, too many to report each"
	d.backlog.Append(model.Event{Time: time.Now(), Kind: model.EventNoRoom, Level: model.Warning, Short: "no room", Text: text})
}
