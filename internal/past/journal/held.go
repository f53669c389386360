package journal

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/ttmon/ttmon/internal/field/wire"
	"github.com/ttmon/ttmon/internal/past/history/held"
	"github.com/ttmon/ttmon/internal/past/recording"
)

// heldSpan is how much of the journal is read for what a process held; before that
// single moments have to do.
const heldSpan = time.Hour

// Held tells what a process held between two times, change by change, and from
// when on every change is in it. Ticks 0 stands for any process that had the pid.
func (j *Journal) Held(ctx context.Context, pid int, ticks uint64, from, to time.Time, n int) (list []held.Point, since time.Time, step time.Duration) {
	j.flush()
	segments := j.list()
	oldest, newest := j.Span()
	if oldest.IsZero() || !from.Before(to) || to.Before(oldest) {
		return nil, oldest, 0
	}
	if to.After(newest) {
		to = newest
	}
	since = from
	for _, t := range []time.Time{oldest, to.Add(-heldSpan)} {
		if t.After(since) {
			since = t
		}
	}
	line := held.NewLine(since, to)
	for _, s := range segments {
		if s.first.IsZero() || s.last.Before(since) || s.first.After(to) || ctx.Err() != nil {
			continue
		}
		if r, err := recording.Open(s.path); err == nil {
			_ = HeldIn(ctx, r, line, pid, ticks, since, to)
			r.Close()
		}
	}
	list, step = line.Points(n)
	return list, since, step
}

// HeldIn reads what a process held out of a recording.
func HeldIn(ctx context.Context, r *recording.Reader, line *held.Line, pid int, ticks uint64, from, to time.Time) error {
	c, err := r.SnapshotsFrom(from)
	if err != nil {
		return err
	}
	var decoder wire.Decoder
	see := func(at time.Time) error {
		processes, err := decoder.Processes(c.JSON())
		if err != nil {
			return err
		}
		line.See(at, held.By(processes, pid, ticks))
		return nil
	}
	if at, ok := c.SnapshotTime(); ok {
		if err := see(at); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		rec, err := c.NextUntil(to)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if rec.Kind == recording.KindSnapshot {
			if err := see(rec.Time); err != nil {
				return err
			}
		}
	}
	return ctx.Err()
}
