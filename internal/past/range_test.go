package past

import (
	"context"
	"encoding/json"
	"math"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/node/api"
)

// asked notes the questions, and answers each with two points of a device.
type asked struct{ exprs []string }

func (a *asked) answer(_ context.Context, expr string, start, _ time.Time, step time.Duration) ([]Series, error) {
	a.exprs = append(a.exprs, expr)
	times := []int64{start.UnixMilli(), start.Add(2 * step).UnixMilli()}
	if strings.Contains(expr, "_bound") {
		return []Series{{Labels: map[string]string{"pci": "0000:01:00.0"}, Times: times[:1], Values: []float64{1}}}, nil
	}
	return []Series{{Labels: map[string]string{"pci": "0000:01:00.0", "device": "3"}, Times: times, Values: []float64{1 << 30, math.NaN()}}}, nil
}

func TestRange(t *testing.T) {
	var a asked
	h := serve(t, Memory{Range: a.answer})
	end := time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)
	q := url.Values{"metric": {"memory.used"}, "start": {end.Add(-time.Minute).Format(time.RFC3339)}, "end": {end.Format(time.RFC3339)}, "step": {"10s"}}
	status, body := h.get("/v1/range?" + q.Encode())
	var got rangeAnswer
	if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 {
		t.Fatalf("status %d, %v: %s", status, err, body)
	}
	s := got.Series[0]
	switch {
	case len(got.Times) != 7 || len(s.Values) != 7 || *s.Device != 3:
		t.Errorf("%s", body)
	case *s.Values[0] != 1024 || s.Unit != "MiB":
		t.Errorf("1 GiB is %v %s", *s.Values[0], s.Unit)
	case s.Values[1] != nil || s.Values[2] != nil:
		t.Errorf("what is not known is not null: %s", body)
	case *s.Bounds[0] != 1:
		t.Errorf("the bound is %v", *s.Bounds[0])
	case got.Away[0] || got.Away[2] || !got.Away[5]: // a sample may be late
		t.Errorf("away %v", got.Away)
	}
	q.Set("of", "most")
	q.Set("device", "0000:01:00.0")
	a.exprs = nil
	if _, body := h.get("/v1/range?" + q.Encode()); !strings.HasPrefix(a.exprs[0], "max_over_time(tenstorrent_memory_used_bytes{") || !strings.Contains(a.exprs[0], `pci=~"0000:01:00\\.0"`) {
		t.Errorf("it asks %q: %s", a.exprs, body)
	}
}

// A figure whose companion is missing does not count as exact.
func TestRangeWithoutCompanion(t *testing.T) {
	x := &rangeSeries{Values: []*float64{new(float64), nil}}
	x.doubtful(2)
	if *x.Bounds[0] != 2 || x.Bounds[1] != nil {
		t.Errorf("%v", x.Bounds)
	}
}

func TestRangeRefuses(t *testing.T) {
	var a asked
	h := serve(t, Memory{Range: a.answer})
	for query, want := range map[string]string{
		"":                                  "there is no",
		"metric=nothing":                    "/v1/metrics lists them",
		"metric=board.type":                 "not kept over time",
		"metric=power.draw&of=x":            "neither end nor most",
		"metric=power.draw&step=1":          "not a duration",
		"metric=power.draw&start=yesterday": "not a time like",
		"metric=power.draw&start=2026-11-15T12:00:00Z&end=2026-11-15T11:00:00Z":         "not before",
		"metric=power.draw&start=2026-01-15T12:00:00Z&end=2026-11-15T11:00:00Z&step=1s": "longer",
		"metric=" + strings.Repeat("power.draw,", 9):                                    "more than 8",
	} {
		t.Run(query, func(t *testing.T) {
			if status, body := h.get("/v1/range?" + query); status != 400 || !strings.Contains(body, want) {
				t.Errorf("%s: status %d, %s", query, status, body)
			}
		})
	}
	if len(a.exprs) > 0 {
		t.Errorf("the history was asked %q", a.exprs)
	}
}

// Who asks for rates has to know how far apart samples are.
func TestSpanSaysHowFarApart(t *testing.T) {
	for want, apart := range map[string]time.Duration{`"interval_s":null`: 0, `"interval_s":10`: 10 * time.Second} {
		t.Run(want, func(t *testing.T) {
			o := api.Options{Feed: new(api.Feed), Ledger: ledger.New(ledger.Options{}), Interval: func() time.Duration { return apart }}
			Memory{Span: func() (time.Time, time.Time) { return time.Time{}, time.Time{} }}.Serve(&o)
			w := httptest.NewRecorder()
			api.New(o).Handler().ServeHTTP(w, httptest.NewRequest("GET", "/v1/past/span", nil))
			if !strings.Contains(w.Body.String(), want) {
				t.Errorf("no %s in %s", want, w.Body)
			}
		})
	}
}
