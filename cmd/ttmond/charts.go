package main

import (
	"context"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/promapi"
)

// span is how far back snapshots are kept.
func (a *archive) span() (oldest, newest time.Time) {
	a.mu.Lock()
	p := a.past
	a.mu.Unlock()
	if p == nil {
		return oldest, newest
	}
	return p.Span()
}

// Samples are a second apart in the last hours and 15 seconds before: a value
// that is older than a few of them is not the value of that moment.
const (
	fineLookback   = 5 * time.Second
	coarseLookback = 35 * time.Second
)

// lookback is for how long a sample holds, for a question that begins at a time.
func (a *archive) lookback(start time.Time) time.Duration {
	if time.Since(start) > time.Hour || a.cfg.Collect.Interval.Duration > time.Second {
		return max(coarseLookback, 3*a.cfg.Collect.Interval.Duration)
	}
	return fineLookback
}

// ranges answers for charts.
func (a *archive) ranges() func(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]api.Series, error) {
	engine := promapi.NewEngine()
	return func(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]api.Series, error) {
		return rangesOf(ctx, engine, a, expr, promapi.Window{Start: start, End: end, Step: step, Lookback: a.lookback(start)})
	}
}

func rangesOf(ctx context.Context, e *promql.Engine, q storage.Queryable, expr string, w promapi.Window) ([]api.Series, error) {
	lines, err := promapi.Range(ctx, e, q, expr, w)
	if err != nil {
		return nil, err
	}
	out := make([]api.Series, len(lines))
	for i, l := range lines {
		out[i] = api.Series(l)
	}
	return out, nil
}
