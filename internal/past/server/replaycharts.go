package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/prometheus/prometheus/promql"

	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/past/promapi"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// recordedCharts are the figures of a recording over time. It is read once, in
// the background: that of an hour takes seconds.
type recordedCharts struct {
	store  *disk.Temporary
	engine *promql.Engine

	mu        sync.Mutex
	begun     time.Time
	upTo      time.Time // what is in the store
	snapshots int
	whole     bool          // up to the end of the file, as it was last seen
	more      chan struct{} // closed when some of this changes
	failed    error
}

// newRecordedCharts makes charts whose figures are kept below dir.
func newRecordedCharts(dir string) (*recordedCharts, error) {
	store, err := disk.OpenTemporary(dir)
	if err != nil {
		return nil, err
	}
	return &recordedCharts{store: store, engine: promapi.NewEngine(), more: make(chan struct{})}, nil
}

// chartsTimeout is how long a query waits for the part of the recording that
// it is about.
const chartsTimeout = 3 * time.Second

// read reads a recording, and what is appended to it, until ctx is done.
func (c *recordedCharts) read(ctx context.Context, path string) {
	err := c.follow(ctx, path)
	if err != nil && ctx.Err() == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.failed = err
		c.wakeWaiters()
	}
}

func (c *recordedCharts) follow(ctx context.Context, path string) error {
	r, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	for cur := r.Snapshots(); ; {
		if err := c.readOn(ctx, cur); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
		if err := r.Refresh(); err != nil {
			return err
		}
	}
}

// readOn reads as far as the file goes now.
func (c *recordedCharts) readOn(ctx context.Context, cur *recording.Cursor) error {
	for ctx.Err() == nil {
		rec, err := cur.Next()
		if errors.Is(err, io.EOF) {
			c.reached(cur.Time, false, true)
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Kind != recording.KindSnapshot {
			continue
		}
		snap, err := cur.Snapshot()
		if err != nil {
			return err
		}
		c.store.Add(snap)
		c.reached(rec.Time, true, false)
	}
	return ctx.Err()
}

func (c *recordedCharts) reached(at time.Time, snapshot, whole bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.begun.IsZero() {
		c.begun = at
	}
	if snapshot {
		c.snapshots++
	}
	c.upTo, c.whole = at, whole
	c.wakeWaiters()
}

// wakeWaiters wakes those who wait. With mu.
func (c *recordedCharts) wakeWaiters() {
	close(c.more)
	c.more = make(chan struct{})
}

// apart is the time between two snapshots, on average; 0 where there are none.
func (c *recordedCharts) apart() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.snapshots < 2 {
		return 0
	}
	return c.upTo.Sub(c.begun) / time.Duration(c.snapshots-1)
}

// await waits until what was recorded before a time has been read.
func (c *recordedCharts) await(ctx context.Context, end time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, chartsTimeout)
	defer cancel()
	for {
		c.mu.Lock()
		upTo, whole, more, failed := c.upTo, c.whole, c.more, c.failed
		c.mu.Unlock()
		if failed != nil {
			return failed
		}
		if whole || upTo.After(end) {
			return nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return fmt.Errorf("the recording is being read, up to %s by now; try again", upTo.Local().Format("15:04:05"))
		}
	}
}

// ranges answers for charts.
func (c *recordedCharts) ranges(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]past.Series, error) {
	if err := c.await(ctx, end); err != nil {
		return nil, err
	}
	return rangesOf(ctx, c.engine, c.store, expr, promapi.Window{Start: start, End: end, Step: step, Lookback: max(leastLookback, 3*c.apart())})
}
