package promapi

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/storage"
)

// Line is one series of a Range. Times are in Unix milliseconds.
type Line struct {
	Labels map[string]string
	Times  []int64
	Values []float64
}

// Window is the time that a question is about, and the steps it is answered in.
// A value holds for a step, and for no less than Lookback: what is no
// longer sampled has no line.
type Window struct {
	Start, End     time.Time
	Step, Lookback time.Duration
}

// Range answers a question over time.
func Range(ctx context.Context, e *promql.Engine, q storage.Queryable, expr string, w Window) ([]Line, error) {
	query, err := e.NewRangeQuery(ctx, q, promql.NewPrometheusQueryOpts(false, max(w.Step, w.Lookback)), expr, w.Start, w.End, w.Step)
	if err != nil {
		return nil, err
	}
	defer query.Close()
	res := query.Exec(ctx)
	if res.Err != nil {
		return nil, res.Err
	}
	matrix, ok := res.Value.(promql.Matrix)
	if !ok {
		return nil, fmt.Errorf("%s is a %s and no series", expr, res.Value.Type())
	}
	lines := make([]Line, 0, len(matrix))
	for _, s := range matrix {
		l := Line{Labels: s.Metric.Map(), Times: make([]int64, len(s.Floats)), Values: make([]float64, len(s.Floats))}
		for i, p := range s.Floats {
			l.Times[i], l.Values[i] = p.T, p.F
		}
		lines = append(lines, l)
	}
	return lines, nil
}
