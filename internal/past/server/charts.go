package server

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/promapi"
)

// span is how far back snapshots are kept.
func (a *archive) span() (oldest, newest time.Time) {
	if j := a.opened(); j != nil {
		return j.Span()
	}
	return oldest, newest
}

// leastLookback is for how long a sample holds at least: samples of the coarse
// history, and of what hardly changes, are 15 s apart. Where a series ends or
// rows are missing, a marker ends it before.
const leastLookback = 35 * time.Second

// lookback is for how long a sample holds.
func (a *archive) lookback() time.Duration {
	return max(leastLookback, 3*a.recorder.interval())
}

// ranges answers for charts.
func (a *archive) ranges() func(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]past.Series, error) {
	engine := promapi.NewEngine()
	return func(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]past.Series, error) {
		return rangesOf(ctx, engine, a, expr, promapi.Window{Start: start, End: end, Step: step, Lookback: a.lookback()})
	}
}

func rangesOf(ctx context.Context, e *promql.Engine, q storage.Queryable, expr string, w promapi.Window) ([]past.Series, error) {
	lines, err := promapi.Range(ctx, e, q, expr, w)
	if err != nil {
		return nil, err
	}
	out := make([]past.Series, len(lines))
	for i, l := range lines {
		out[i] = past.Series(l)
	}
	return out, nil
}
