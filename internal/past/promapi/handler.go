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

	"github.com/ttmon/ttmon/internal/base/budget"
)

// Bounds of a question.
const (
	maxSamples   = 2_000_000 // in memory at once: 32 MB
	maxPoints    = 11_000    // of a series in an answer, as in Prometheus
	maxSeries    = 20_000    // listed by /series
	maxSelectors = 64        // of /series and /labels
	maxBody      = 64 << 10
	queryTimeout = 10 * time.Second
	turnTimeout  = 5 * time.Second // to wait for other questions of the same user
	subqueryStep = 15 * time.Second
)

// concurrent is how many questions are evaluated at once. Two places are root's
// whatever others ask.
var concurrent = budget.Limit{PerUID: 1, All: 4, Reserve: 2}

// Options of a Handler.
type Options struct {
	// Queryable is the history. It may fail while it is being opened.
	Queryable storage.Queryable
	// Rules and Alerts are the answers of /rules and /alerts; nil: none.
	Rules, Alerts func() any
	// User is who asks; nil: all are one user. Each user has a share of the time
	// that questions take.
	User func(*http.Request) int
	// Lookback is for how long a sample holds where nothing ends it; nil: five
	// minutes, as in Prometheus.
	Lookback func() time.Duration
	Version  string
}

// NewEngine is an engine with the bounds of this package, for other
// readers of the history.
func NewEngine() *promql.Engine {
	return promql.NewEngine(promql.EngineOpts{
		MaxSamples: maxSamples, Timeout: queryTimeout, EnableAtModifier: true, EnableNegativeOffset: true,
		Parser:                   Parser(),
		NoStepSubqueryIntervalFn: func(int64) int64 { return subqueryStep.Milliseconds() },
	})
}

// Parser reads PromQL.
func Parser() parser.Parser { return parser.NewParser(parser.Options{}) }

type handler struct {
	opt    Options
	engine *promql.Engine
	turns  *budget.Pool
}

// New returns a handler for what is below /api/v1/.
func New(o Options) http.Handler {
	o.Queryable = opened{o.Queryable}
	h := &handler{opt: o, engine: NewEngine(), turns: budget.NewPool("promql", concurrent, nil)}
	mux := http.NewServeMux()
	for path, f := range map[string]func(*http.Request) (any, error){
		"query":               h.inTurn(h.query),
		"query_range":         h.inTurn(h.queryRange),
		"labels":              h.inTurn(h.labelNames),
		"label/{name}/values": h.inTurn(h.labelValues),
		"series":              h.inTurn(h.series),
		"metadata":            h.metadata,
		"rules":               h.rules,
		"alerts":              h.alerts,
		"query_exemplars":     func(*http.Request) (any, error) { return []any{}, nil },
		"status/buildinfo":    h.buildInfo,
	} {
		answer := answer(f)
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

// answer makes an HTTP handler of a function.
func answer(f func(*http.Request) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		if err := r.ParseForm(); err != nil {
			writeError(w, bad("body", err))
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

// inTurn has a question wait until its user has no other under way. What its
// answer holds is in memory until it is written, so it is part of the turn.
func (h *handler) inTurn(f func(*http.Request) (any, error)) func(*http.Request) (any, error) {
	return func(r *http.Request) (any, error) {
		uid := -1
		if h.opt.User != nil {
			uid = h.opt.User(r)
		}
		if !h.await(r.Context(), uid) {
			return nil, &apiError{http.StatusServiceUnavailable, "unavailable", errors.New("other queries of yours are still being answered; try again")}
		}
		ctx, cancel := context.WithTimeout(r.Context(), queryTimeout)
		end := func() { cancel(); h.turns.Release(uid, 1) }
		data, err := f(r.WithContext(ctx))
		if err != nil {
			end()
			return nil, err
		}
		return &held{data, end}, nil
	}
}

// held is an answer whose turn ends when it is written.
type held struct {
	data any
	end  func()
}

// await takes a turn for a user.
func (h *handler) await(ctx context.Context, uid int) bool {
	for end := time.Now().Add(turnTimeout); time.Now().Before(end); {
		if h.turns.Try(uid, 1) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(5 * time.Millisecond):
		}
	}
	return h.turns.Acquire(uid, 1)
}

func (h *handler) query(r *http.Request) (any, error) {
	at, err := timeParam(r, "time", time.Now())
	if err != nil {
		return nil, err
	}
	return h.evaluate(r, Window{Start: at, End: at})
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
	case end.UnixMilli()-start.UnixMilli() > maxReach.Milliseconds(): // Sub ends at 292 years
		return nil, bad("end", errors.New("it is too long after start"))
	case (end.UnixMilli()-start.UnixMilli())/step.Milliseconds() > maxPoints:
		return nil, bad("step", fmt.Errorf("more than %d points per series: use a longer step", maxPoints))
	}
	return h.evaluate(r, Window{Start: start, End: end, Step: step})
}

// evaluate answers a question over a window, or at one moment, if it can be
// afforded.
func (h *handler) evaluate(r *http.Request, w Window) (any, error) {
	var err error
	if w.Lookback, err = h.lookback(r); err != nil {
		return nil, err
	}
	text := r.Form.Get("query")
	if err := checkCost(r.Context(), h.opt.Queryable, text, w); err != nil {
		return nil, err
	}
	o := promql.NewPrometheusQueryOpts(false, w.Lookback)
	var q promql.Query
	if w.Step == 0 {
		q, err = h.engine.NewInstantQuery(r.Context(), h.opt.Queryable, o, text, w.Start)
	} else {
		q, err = h.engine.NewRangeQuery(r.Context(), h.opt.Queryable, o, text, w.Start, w.End, w.Step)
	}
	if err != nil {
		return nil, bad("query", err)
	}
	return run(r.Context(), q)
}

// lookback is for how long a sample holds: as long as asked for, or as the
// history says.
func (h *handler) lookback(r *http.Request) (time.Duration, error) {
	if text := r.Form.Get("lookback_delta"); text != "" {
		d, err := durationOf(text)
		if err == nil && (d <= 0 || d > time.Hour) {
			err = errors.New("it must be more than 0 and at most an hour")
		}
		if err != nil {
			return 0, bad("lookback_delta", err)
		}
		return d, nil
	}
	if h.opt.Lookback == nil {
		return 5 * time.Minute, nil
	}
	return h.opt.Lookback(), nil
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
