package promapi

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
)

// Bounds of a question.
const (
	maxSamples    = 2_000_000 // in memory at once: 32 MB
	maxConcurrent = 2
	maxPoints     = 11_000 // of a series in an answer, as in Prometheus
	maxSeries     = 20_000 // listed by /series
	maxBody       = 64 << 10
	queryTimeout  = 10 * time.Second
)

// Options of a Handler.
type Options struct {
	// Queryable is the history. It may fail while it is being opened.
	Queryable storage.Queryable
	// Rules and Alerts are the answers of /rules and /alerts; nil: none.
	Rules, Alerts func() any
	Version       string
}

// NewEngine is an engine with the bounds of this package, for whoever else
// asks the history.
func NewEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: queryTimeout, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser:                   Parser(),
		NoStepSubqueryIntervalFn: func(int64) int64 { return (15 * time.Second).Milliseconds() },
	})
}

// Parser reads PromQL.
func Parser() parser.Parser { return parser.NewParser(parser.Options{}) }

type handler struct {
	opt    Options
	engine *promql.Engine
	slots  chan struct{}
}

// New returns a handler for what is below /api/v1/.
func New(o Options) http.Handler {
	o.Queryable = opened{o.Queryable}
	h := &handler{opt: o, engine: NewEngine(), slots: make(chan struct{}, maxConcurrent)}
	mux := http.NewServeMux()
	for path, f := range map[string]func(*http.Request) (any, error){
		"query":               h.query,
		"query_range":         h.queryRange,
		"labels":              h.labelNames,
		"label/{name}/values": h.labelValues,
		"series":              h.series,
		"metadata":            h.metadata,
		"rules":               h.rules,
		"alerts":              h.alerts,
		"query_exemplars":     func(*http.Request) (any, error) { return []any{}, nil },
		"status/buildinfo":    h.buildInfo,
	} {
		answer := h.answer(f)
		mux.Handle("GET /api/v1/"+path, answer)
		mux.Handle("POST /api/v1/"+path, answer)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, &apiError{http.StatusNotFound, "not_found", fmt.Errorf("there is no %s in this Prometheus API", r.URL.Path)})
	})
	return mux
}

// opened marks the errors of a history that cannot be asked now.
type opened struct{ storage.Queryable }

func (o opened) Querier(mint, maxt int64) (storage.Querier, error) {
	q, err := o.Queryable.Querier(mint, maxt)
	if err != nil {
		return nil, &apiError{http.StatusServiceUnavailable, "unavailable", err}
	}
	return q, nil
}

// apiError is an error as Prometheus tells it.
type apiError struct {
	status int
	kind   string
	err    error
}

func (e *apiError) Error() string { return e.err.Error() }
func (e *apiError) Unwrap() error { return e.err }

func bad(param string, err error) error {
	return &apiError{http.StatusBadRequest, "bad_data", fmt.Errorf("invalid parameter %q: %w", param, err)}
}

// answer makes an HTTP handler of a function, with a place among those that
// are answered at once.
func (h *handler) answer(f func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
		defer cancel()
		r = r.WithContext(ctx)
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := r.ParseForm(); err != nil {
			writeError(w, bad("body", err))
			return
		}
		select {
		case h.slots <- struct{}{}:
			defer func() { <-h.slots }()
		case <-ctx.Done():
			writeError(w, &apiError{http.StatusServiceUnavailable, "unavailable", fmt.Errorf("%d questions are being answered already", maxConcurrent)})
			return
		}
		data, err := f(r)
		if err != nil {
			writeError(w, err)
			return
		}
		writeData(w, data)
	})
}

func (h *handler) query(r *http.Request) (any, error) {
	at, err := timeParam(r, "time", time.Now())
	if err != nil {
		return nil, err
	}
	q, err := h.engine.NewInstantQuery(r.Context(), h.opt.Queryable, queryOptions(r), r.Form.Get("query"), at)
	if err != nil {
		return nil, bad("query", err)
	}
	return run(r.Context(), q)
}

func (h *handler) queryRange(r *http.Request) (any, error) {
	start, err := timeParam(r, "start", time.Time{})
	if err != nil {
		return nil, err
	}
	end, err := timeParam(r, "end", time.Time{})
	if err != nil {
		return nil, err
	}
	step, err := durationOf(r.Form.Get("step"))
	switch {
	case err != nil:
		return nil, bad("step", err)
	case step < time.Millisecond: // the engine counts in them
		return nil, bad("step", errors.New("it must be at least a millisecond"))
	case start.IsZero() || end.IsZero():
		return nil, bad("start", errors.New("start and end are needed"))
	case end.Before(start):
		return nil, bad("end", errors.New("it is before start"))
	case (end.UnixMilli()-start.UnixMilli())/step.Milliseconds() > maxPoints: // Sub ends at 292 years
		return nil, bad("step", fmt.Errorf("it would make more than %d points a series: ask for a longer step", maxPoints))
	}
	q, err := h.engine.NewRangeQuery(r.Context(), h.opt.Queryable, queryOptions(r), r.Form.Get("query"), start, end, step)
	if err != nil {
		return nil, bad("query", err)
	}
	return run(r.Context(), q)
}

func queryOptions(r *http.Request) promql.QueryOpts {
	lookback, _ := durationOf(r.Form.Get("lookback_delta"))
	return promql.NewPrometheusQueryOpts(false, lookback)
}

// run answers a query. The result is written before its memory is reused.
func run(ctx context.Context, q promql.Query) (any, error) {
	res := q.Exec(ctx)
	if res.Err != nil {
		q.Close()
		return nil, execError(res.Err)
	}
	return &queryResult{res.Value, q}, nil
}

func execError(err error) error {
	if e, ok := errors.AsType[*apiError](err); ok {
		return e
	}
	var canceled promql.ErrQueryCanceled
	var timeout promql.ErrQueryTimeout
	var storageErr promql.ErrStorage
	switch {
	case errors.As(err, &canceled):
		return &apiError{http.StatusServiceUnavailable, "canceled", err}
	case errors.As(err, &timeout):
		return &apiError{http.StatusServiceUnavailable, "timeout", err}
	case errors.As(err, &storageErr):
		return &apiError{http.StatusServiceUnavailable, "unavailable", err}
	}
	return &apiError{http.StatusUnprocessableEntity, "execution", err}
}

// timeParam reads a time: seconds since 1970, or RFC 3339.
func timeParam(r *http.Request, name string, otherwise time.Time) (time.Time, error) {
	text := r.Form.Get(name)
	if text == "" {
		return otherwise, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(f) || math.Abs(f) > 1e12 {
			return otherwise, bad(name, fmt.Errorf("%q is not a time", text))
		}
		return time.UnixMilli(int64(math.Round(f * 1000))).UTC(), nil
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, bad(name, fmt.Errorf("%q is neither seconds since 1970 nor a time like 2026-11-15T08:30:00Z", text))
	}
	return t, nil
}

// durationOf reads seconds, or a duration like 5m.
func durationOf(text string) (time.Duration, error) {
	if text == "" {
		return 0, nil
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		if math.IsNaN(f) || math.Abs(f) > 1e9 {
			return 0, fmt.Errorf("%q is not a duration", text)
		}
		return time.Duration(f * float64(time.Second)), nil
	}
	d, err := model.ParseDuration(text)
	return time.Duration(d), err
}
