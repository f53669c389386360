package promapi

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/api"
	v1 "github.com/prometheus/client_golang/api/prometheus/v1"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/storage"

	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/view/prom"
)

var t0 = time.Unix(1_800_000_000, 0)

// filled is a history of two devices and 100 seconds.
func filled(t testing.TB) storage.Queryable {
	t.Helper()
	s, err := disk.Open(disk.Options{Dir: filepath.Join(t.TempDir(), "h"), FineFor: time.Hour, CoarseFor: time.Hour, MaxBytes: 1 << 30, MaxSeries: 100})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	f := &prom.Family{Name: "tenstorrent_core_power_watts"}
	for i := range 100 {
		s.AddSnapshot(func(emit prom.Emit) {
			emit(f, prom.Pairs("device", "0", "pci", "0000:01:00.0"), float64(i))
			emit(f, prom.Pairs("device", "1", "pci", "0000:02:00.0"), 7.5)
		})
		s.Append(t0.Add(time.Duration(i) * time.Second))
	}
	return s
}

func serve(t *testing.T) *httptest.Server {
	t.Helper()
	web := httptest.NewServer(New(Options{Queryable: filled(t), Version: "test"}))
	t.Cleanup(web.Close)
	return web
}

// The Go client of Prometheus understands everything.
func TestGoClient(t *testing.T) {
	c, err := api.NewClient(api.Config{Address: serve(t).URL})
	if err != nil {
		t.Fatal(err)
	}
	a, ctx := v1.NewAPI(c), context.Background()
	now := t0.Add(99 * time.Second)
	v, _, err := a.Query(ctx, `sum(tenstorrent_core_power_watts)`, now)
	if err != nil || v.String() != fmt.Sprintf("{} => 106.5 @[%d]", now.Unix()) {
		t.Errorf("query: %v, %v", v, err)
	}
	if v, _, err = a.Query(ctx, `1 + 1`, now); err != nil || v.Type() != model.ValScalar {
		t.Errorf("scalar: %v, %v", v, err)
	}
	v, _, err = a.QueryRange(ctx, `tenstorrent_core_power_watts{device="0"}`, v1.Range{Start: t0, End: now, Step: 9 * time.Second})
	if m, ok := v.(model.Matrix); err != nil || !ok || len(m) != 1 || len(m[0].Values) != 12 || m[0].Values[11].Value != 99 {
		t.Errorf("range: %v, %v", v, err)
	}
	names, _, err := a.LabelNames(ctx, nil, t0, now)
	if err != nil || fmt.Sprint(names) != "__name__, device, pci" {
		t.Errorf("labels: %v, %v", names, err)
	}
	values, _, err := a.LabelValues(ctx, "device", []string{`{pci="0000:02:00.0"}`}, t0, now)
	if err != nil || fmt.Sprint(values) != "[1]" {
		t.Errorf("values: %v, %v", values, err)
	}
	series, _, err := a.Series(ctx, []string{`{device="0"}`}, t0, now)
	if err != nil || len(series) != 1 {
		t.Errorf("series: %v, %v", series, err)
	}
	meta, err := a.Metadata(ctx, "tenstorrent_core_power_watts", "")
	if err != nil || len(meta) != 1 || meta["tenstorrent_core_power_watts"][0].Unit != "watts" {
		t.Errorf("metadata: %v, %v", meta, err)
	}
	if rules, err := a.Rules(ctx, nil); err != nil || len(rules.Groups) != 0 {
		t.Errorf("rules: %v, %v", rules, err)
	}
	if alerts, err := a.Alerts(ctx); err != nil || len(alerts.Alerts) != 0 {
		t.Errorf("alerts: %v, %v", alerts, err)
	}
	if info, err := a.Buildinfo(ctx); err != nil || info.Version == "" {
		t.Errorf("buildinfo: %v, %v", info, err)
	}
}

func TestBadQuestions(t *testing.T) {
	base := serve(t).URL + "/api/v1/"
	for _, c := range []struct {
		path   string
		form   url.Values
		status int
		want   string
	}{
		{"query", url.Values{"query": {"sum("}}, 400, "bad_data"},
		{"query", url.Values{"query": {"x"}, "time": {"yesterday"}}, 400, "neither seconds"},
		{"query", url.Values{"query": {"x"}, "time": {"1e300"}}, 400, "not a time"},
		{"query_range", url.Values{"query": {"x"}, "start": {"1"}, "end": {"2"}}, 400, "millisecond"},
		{"query_range", url.Values{"query": {"x"}, "start": {"1"}, "end": {"2"}, "step": {"x"}}, 400, "step"},
		{"query_range", url.Values{"query": {"x"}, "start": {"2"}, "end": {"1"}, "step": {"1"}}, 400, "before start"},
		{"query_range", url.Values{"query": {"x"}, "step": {"1"}}, 400, "are needed"},
		{"query_range", url.Values{"query": {"x"}, "start": {"1"}, "end": {"99999"}, "step": {"1"}}, 400, "points"},
		{"query_range", url.Values{"query": {"x"}, "start": {"1"}, "end": {"1"}, "step": {"0.0001"}}, 400, "millisecond"},
		{"query_range", url.Values{"query": {"x"}, "start": {"-1e12"}, "end": {"1e12"}, "step": {"1e6"}}, 400, "too long after"},
		{"query", url.Values{"query": {"tenstorrent_core_power_watts + on() tenstorrent_core_power_watts"}, "time": {"1800000099"}}, 422, "many-to-many"},
		{"series", nil, 400, "at least one"},
		{"series", url.Values{"match[]": {"{"}}, 400, "match[]"},
		{"labels", url.Values{"limit": {"-1"}}, 400, "limit"},
		{"nothing", nil, 404, "there is no /api/v1/nothing"},
		{"query", url.Values{"query": {strings.Repeat("x", maxBody)}}, 400, "body"},
	} {
		t.Run(fmt.Sprintf("%s: %.60s", c.path, c.form.Encode()), func(t *testing.T) {
			r, err := http.PostForm(base+c.path, c.form)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(r.Body)
			r.Body.Close()
			if r.StatusCode != c.status || !strings.Contains(string(b), c.want) {
				t.Errorf("%s %.80v: %d %s, want %d %s", c.path, c.form, r.StatusCode, b, c.status, c.want)
			}
		})
	}
}

// A question that would fill the memory, and a history that is not open.
func TestBounds(t *testing.T) {
	base := serve(t).URL + "/api/v1/"
	r, err := http.PostForm(base+"query", url.Values{"query": {`count_over_time(vector(1)[100d:1s])`}, "time": {"1800000000"}})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := io.ReadAll(r.Body)
	r.Body.Close()
	if r.StatusCode != 422 && r.StatusCode != 503 {
		t.Errorf("a huge question: %d %.200s", r.StatusCode, b)
	}
	web := httptest.NewServer(New(Options{Queryable: storage.QueryableFunc(func(int64, int64) (storage.Querier, error) {
		return nil, errors.New("the history is being opened")
	})}))
	defer web.Close()
	for _, path := range []string{"query?query=x", "labels"} {
		r, err := http.Get(web.URL + "/api/v1/" + path)
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != 503 || !strings.Contains(string(b), "being opened") {
			t.Errorf("%s: %d %s", path, r.StatusCode, b)
		}
	}
}

// TestAnswersAreHarmless: neither results nor errors do anything to a terminal.
func TestAnswersAreHarmless(t *testing.T) {
	web := serve(t)
	for _, query := range []string{"label_replace(vector(1), \"x\", \"a\u202e\u009bb\", \"\", \"\")", "\"a\u202e\u009bb\"", "nonsense \u202e\u009b"} {
		r, err := http.Get(web.URL + "/api/v1/query?query=" + url.QueryEscape(query))
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if err != nil || strings.ContainsAny(string(b), "\u202e\u009b") || !strings.Contains(string(b), `\u202e`) {
			t.Errorf("%q: %v", b, err)
		}
	}
}
