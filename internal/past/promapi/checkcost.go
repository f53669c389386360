package promapi

import (
	"context"
	"net/http"

	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// checkCost refuses a question that would take more memory or time than one may:
// by its text, by its shape, and by how many series it is about.
func checkCost(ctx context.Context, q storage.Queryable, text string, w Window) error {
	if err := checkText(text); err != nil {
		return bad("query", err)
	}
	expr, err := Parser().ParseExpr(text)
	if err != nil {
		return bad("query", err)
	}
	if err := checkShape(expr); err != nil {
		return refused(err)
	}
	found, err := newCounter(q, expr, w)
	if err != nil {
		return err
	}
	defer found.querier.Close()
	c := cost{selected: func(s *parser.VectorSelector) (extent, error) { return found.count(ctx, s.LabelMatchers) }}
	if _, err := c.of(expr, times{w.End.Sub(w.Start), w.Step}); err != nil {
		return refused(err)
	}
	return nil
}

// counter counts series in the time that a question is about.
type counter struct {
	querier    storage.Querier
	mint, maxt int64
}

func newCounter(q storage.Queryable, expr parser.Expr, w Window) (c counter, err error) {
	if expr, err = promql.PreprocessExpr(expr, w.Start, w.End, w.Step); err != nil {
		return c, bad("query", err)
	}
	c.mint, c.maxt = promql.FindMinMaxTime(&parser.EvalStmt{Expr: expr, Start: w.Start, End: w.End, Interval: w.Step, LookbackDelta: w.Lookback})
	c.querier, err = q.Querier(c.mint, c.maxt)
	return c, err
}

func refused(err error) error {
	if _, ok := err.(*tooCostly); ok {
		return &apiError{http.StatusUnprocessableEntity, "execution", err}
	}
	return execError(err)
}

// count finds how many series a selector is about. It reads the index only.
func (c counter) count(ctx context.Context, matchers []*labels.Matcher) (x extent, err error) {
	found := c.querier.Select(ctx, false, &storage.SelectHints{Start: c.mint, End: c.maxt, Func: "series"}, matchers...)
	for found.Next() {
		x.series++
		if x.series > maxCells || ctx.Err() != nil {
			break
		}
		size := 0.0
		found.At().Labels().Range(func(l labels.Label) {
			size += float64(len(l.Name) + len(l.Value))
			x.value = max(x.value, float64(len(l.Value)))
		})
		x.labels = max(x.labels, size)
	}
	if err := ctx.Err(); err != nil {
		return x, err
	}
	return x, found.Err()
}
