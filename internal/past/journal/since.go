package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// Since calls each with the snapshots after a time, in their order. A segment that
// cannot be read is left out, and is the error.
func (j *Journal) Since(ctx context.Context, from time.Time, each func(*model.Snapshot)) error {
	j.flush()
	var failed error
	for _, s := range j.list() {
		if s.first.IsZero() || !s.last.After(from) || ctx.Err() != nil {
			continue
		}
		if err := snapshotsIn(ctx, s.path, from, each); err != nil {
			failed = errors.Join(failed, fmt.Errorf("reading %s: %w", s.path, err))
		}
	}
	return errors.Join(failed, ctx.Err())
}

// snapshotsIn reads those of one segment.
func snapshotsIn(ctx context.Context, path string, from time.Time, each func(*model.Snapshot)) error {
	r, err := recording.Open(path)
	if err != nil {
		return err
	}
	defer r.Close()
	c, err := r.SnapshotsFrom(from)
	for err == nil && ctx.Err() == nil {
		var rec recording.Record
		if rec, err = c.Next(); err != nil || rec.Kind != recording.KindSnapshot || !rec.Time.After(from) {
			continue
		}
		var s *model.Snapshot
		if s, err = c.Snapshot(); s != nil {
			each(s)
		}
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
