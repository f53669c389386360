package past

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
)

// Series is one line of an answer to a question in PromQL. Times are in Unix
// milliseconds.
type Series struct {
	Labels map[string]string
	Times  []int64
	Values []float64
}

const (
	maxRangeMetrics = 8
	maxRangePoints  = 4000
	rangePoints     = 500
)

// rangeQuery is a parsed /v1/range.
type rangeQuery struct {
	metrics    []metric.Column[*model.Device]
	device     string // bus id; empty: all
	start, end time.Time
	step       time.Duration
	most       bool // the most of each step, instead of the value at its end
	over       metric.Over
}

// rangeSeries is a line on the common times of an answer.
type rangeSeries struct {
	Metric string     `json:"metric"`
	Unit   string     `json:"unit"`
	Device *int       `json:"device"`
	BusID  string     `json:"bus_id"`
	Values []*float64 `json:"values"`
	Bounds []*float64 `json:"bounds,omitempty"` // 0 exact, 1 at least, 2 unsure
}

// rangeOf answers with metrics of devices over time, on common times.
func (s calls) rangeOf(w http.ResponseWriter, r *http.Request) {
	q, err := parseRange(r, s.Now())
	if err != nil {
		api.Fail(w, http.StatusBadRequest, "%v", err)
		return
	}
	q.over.Apart = s.Interval()
	n := int(q.end.Sub(q.start)/q.step) + 1
	times := make([]float64, n)
	for i := range times {
		times[i] = float64(q.start.Add(time.Duration(i)*q.step).UnixMilli()) / 1000
	}
	out := []*rangeSeries{}
	for _, m := range q.metrics {
		list, err := s.rangeOfMetric(r.Context(), m, &q, n)
		if err != nil {
			api.Fail(w, http.StatusServiceUnavailable, "asking the history for %s: %v", m.Name, err)
			return
		}
		out = append(out, list...)
	}
	reply := map[string]any{
		"schema": "ttmon.range/1", "start": q.start.UTC(), "end": q.end.UTC(), "step_s": q.step.Seconds(), "times": times, "series": out,
	}
	if away := s.away(r.Context(), &q, n); away != nil {
		reply["away"] = away
	}
	api.Answer(w, http.StatusOK, reply)
}

// away is where nothing was sampled, from the series that every row of the history
// has; nil where that is not known. The end is not known yet.
func (s calls) away(ctx context.Context, q *rangeQuery, n int) []bool {
	list, err := s.Memory.Range(ctx, q.each("tenstorrent_up", q.most), q.start, q.end, q.step)
	if err != nil || len(list) == 0 {
		return nil
	}
	away := make([]bool, n)
	for i := range away {
		away[i] = true
	}
	last := 0
	for _, l := range list {
		for i, v := range q.spread(l, 1, n) {
			if v != nil {
				away[i], last = false, max(last, i)
			}
		}
	}
	for i := last + 1; i < min(last+3, n); i++ {
		away[i] = false
	}
	return away
}

func (s calls) rangeOfMetric(ctx context.Context, m metric.Column[*model.Device], q *rangeQuery, n int) (out []*rangeSeries, err error) {
	var only []string
	if q.device != "" {
		only = []string{metric.Matcher("pci", q.device)}
	}
	asked, _ := m.Question(q.over, only...)
	most := q.most && !m.Rate
	list, err := s.Memory.Range(ctx, q.each(asked.Expr, most), q.start, q.end, q.step)
	if err != nil {
		return nil, err
	}
	byBus := map[string]*rangeSeries{}
	for _, l := range list {
		x := &rangeSeries{Metric: m.Name, Unit: m.Unit, BusID: l.Labels["pci"], Values: q.spread(l, asked.Divide, n)}
		if i, err := strconv.Atoi(l.Labels["device"]); err == nil {
			x.Device = &i
		}
		out = append(out, x)
		byBus[x.BusID] = x
	}
	if asked.Bound != "" {
		bounds, err := s.Memory.Range(ctx, q.each(asked.Bound, most), q.start, q.end, q.step)
		if err != nil {
			return nil, err
		}
		for _, l := range bounds {
			if x := byBus[l.Labels["pci"]]; x != nil {
				x.Bounds = q.spread(l, 1, n)
			}
		}
		for _, x := range out {
			x.doubtful(n)
		}
	}
	slices.SortStableFunc(out, func(a, b *rangeSeries) int { return strings.Compare(a.BusID, b.BusID) })
	return out, nil
}

// doubtful marks figures without a companion: they are not known to be exact.
func (x *rangeSeries) doubtful(n int) {
	unsure := float64(model.Unsure)
	if x.Bounds == nil {
		x.Bounds = make([]*float64, n)
	}
	for i, v := range x.Values {
		if v != nil && x.Bounds[i] == nil {
			x.Bounds[i] = &unsure
		}
	}
}

// each is a question about each step as a whole, where that is wanted.
func (q *rangeQuery) each(expr string, most bool) string {
	if !most {
		return expr
	}
	return "max_over_time(" + expr + "[" + strconv.Itoa(int(q.step.Seconds())) + "s])"
}

// spread puts points on the common times.
func (q *rangeQuery) spread(l Series, per float64, n int) []*float64 {
	out := make([]*float64, n)
	for i, ms := range l.Times {
		k := int((time.UnixMilli(ms).Sub(q.start) + q.step/2) / q.step)
		if v := l.Values[i] / per; k >= 0 && k < n && !math.IsNaN(v) && !math.IsInf(v, 0) {
			out[k] = &v
		}
	}
	return out
}

func parseRange(r *http.Request, now time.Time) (q rangeQuery, err error) {
	v := r.URL.Query()
	if q.metrics, err = parseMetrics(v.Get("metric")); err != nil {
		return q, err
	}
	switch v.Get("of") {
	case "", "end":
	case "most":
		q.most = true
	default:
		return q, fmt.Errorf("of: %q is neither end nor most", v.Get("of"))
	}
	q.device = v.Get("device")
	if q.start, q.end, err = api.ParsePeriod(v, now); err != nil {
		return q, err
	}
	q.step = max(time.Second, (q.end.Sub(q.start) / rangePoints).Round(time.Second))
	if text := v.Get("step"); text != "" {
		if q.step, err = time.ParseDuration(text); err != nil || q.step < time.Second {
			return q, fmt.Errorf("step: %q is not a duration of a second or more, like 15s", text)
		}
	}
	if q.end.Sub(q.start)/q.step > maxRangePoints {
		return q, fmt.Errorf("step: it would make more than %d points: ask for a longer one", maxRangePoints)
	}
	q.over = metric.Over{Age: now.Sub(q.start), Step: q.step}
	// Whole steps, so that the same points are asked for again.
	q.start, q.end = q.start.Truncate(q.step), q.end.Truncate(q.step)
	if q.most {
		q.end = q.end.Add(q.step) // the step that has not ended yet
	}
	return q, nil
}

// parseMetrics finds the metrics of a list with commas.
func parseMetrics(list string) (found []metric.Column[*model.Device], err error) {
	names := strings.Split(list, ",")
	if len(names) > maxRangeMetrics {
		return nil, fmt.Errorf("metric: %d are more than %d", len(names), maxRangeMetrics)
	}
	for _, name := range names {
		col, ok := metric.Find(metric.Devices(), name)
		if !ok {
			return nil, fmt.Errorf("metric: there is no %q; /v1/metrics lists them", name)
		}
		if _, _, ok := col.Query("1m"); !ok {
			return nil, fmt.Errorf("metric: %s is not kept over time; /v1/metrics lists those that are", name)
		}
		found = append(found, col)
	}
	return found, nil
}
