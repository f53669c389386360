package plot

import (
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/lab/hermetic"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

func TestMain(m *testing.M) { hermetic.Main(m) }

func TestOverTime(t *testing.T) {
	for _, c := range []struct {
		q    Question
		want string
	}{
		{Question{Expr: "tenstorrent_core_power_watts"}, "tenstorrent_core_power_watts[2000ms]"},
		{Question{Expr: `tenstorrent_clock_hertz{clock="ai"}`}, `tenstorrent_clock_hertz{clock="ai"}[2000ms]`},
		{Question{Expr: "tenstorrent_core_power_watts*2"}, "(tenstorrent_core_power_watts*2)[2000ms:1000ms]"},
		{Question{Expr: `a{b="c"}/d{e="f"}`}, `(a{b="c"}/d{e="f"})[2000ms:1000ms]`},
		{Question{Expr: "sum(tenstorrent_core_power_watts)"}, "(sum(tenstorrent_core_power_watts))[2000ms:1000ms]"},
		{Question{Expr: "rate(x[1m])"}, "(rate(x[1m]))[2000ms:1000ms]"},
	} {
		t.Run(c.q.Expr, func(t *testing.T) {
			if got := overTime(c.q, 2*time.Second, 38); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// A part that is shorter than samples are apart has the value that holds in it, and so
// has one in which nothing could be computed before its end. Of many parts less is
// computed in each.
func TestOfParts(t *testing.T) {
	for want, got := range map[string]string{
		`max_over_time(a{b="c"}[1000ms]) or (a{b="c"})`:                 ofParts("max_over_time", Question{Expr: `a{b="c"}`}, time.Second, 38),
		"max_over_time((rate(x[1m]))[94000ms:4700ms]) or (rate(x[1m]))": ofParts("max_over_time", Question{Expr: "rate(x[1m])"}, 94*time.Second, 38),
		"max_over_time((rate(x[1m]))[9000ms:4500ms]) or (rate(x[1m]))":  ofParts("max_over_time", Question{Expr: "rate(x[1m])"}, 9*time.Second, 400),
		"max_over_time((rate(x[1m]))[500ms:500ms]) or (rate(x[1m]))":    ofParts("max_over_time", Question{Expr: "rate(x[1m])"}, time.Second/2, 38),
	} {
		t.Run(want, func(t *testing.T) {
			if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		})
	}
}

// A figure of snapshots is taken as it was kept, also one that needs two of them: what
// is computed begins at a whole multiple of the length of a part.
func TestBusyIsKept(t *testing.T) {
	q, err := parseMetric("busy", metric.Over{}, &model.Snapshot{}, false)
	if got := overTime(q, 94*time.Second, 38); err != nil || !strings.HasSuffix(got, "[94000ms]") {
		t.Errorf("%s, %v", got, err)
	}
}

// A rate is made of samples as far apart as the server takes them: of a window that has
// no two of them nothing would be known.
func TestRatesOfRareSamples(t *testing.T) {
	for name, c := range map[string]struct{ span, window string }{
		"every second":     {`{"interval_s": 1}`, "10s"},
		"every 10 seconds": {`{"interval_s": 10}`, "40s"},
		"not known":        {`{"interval_s": null}`, "10s"},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			s := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path == "/v1/past/span" {
					_, _ = io.WriteString(w, c.span)
				}
			})}
			served := make(chan error, 1)
			go func() { served <- s.Serve(l) }()
			t.Cleanup(func() { s.Close(); <-served })
			p := &Range{Client: client.New(path), Snapshot: &model.Snapshot{}, Start: time.Now().Add(-time.Minute), End: time.Now()}
			t.Cleanup(p.Client.Close)
			list, err := p.Questions(t.Context(), []string{"heartbeat.rate"}, false)
			if err != nil || len(list) != 1 || !strings.Contains(list[0].Expr, "["+c.window+"]") {
				t.Errorf("%+v, %v", list, err)
			}
		})
	}
}

// The last part ends now, whatever the time is divided by.
func TestParts(t *testing.T) {
	end := time.Date(2026, 11, 15, 12, 0, 0, 123e6, time.UTC)
	for _, length := range []time.Duration{time.Second, 61 * time.Second, time.Hour, 24*time.Hour + time.Millisecond} {
		for _, chosen := range []time.Duration{0, time.Microsecond, 7 * time.Second} {
			for _, columns := range []int{10, 38, 399} {
				p := &Range{Start: end.Add(-length), End: end, Step: chosen}
				first, step, n := p.parts(columns)
				if step%time.Millisecond != 0 || step <= 0 || !first.Add(time.Duration(n-1)*step).Equal(end) || first.Before(p.Start) || first.Sub(p.Start) >= step {
					t.Errorf("%v in %d columns of %v: %d parts of %v, the first ends %v after the start", length, columns, chosen, n, step, first.Sub(p.Start))
				}
				if chosen == 0 && n > columns*2 {
					t.Errorf("%v in %d columns: %d parts", length, columns, n)
				}
			}
		}
	}
}

// Names may have commas between them; PromQL has its own.
func TestMetricArgs(t *testing.T) {
	for _, tt := range []struct{ args, want []string }{
		{[]string{"power.draw"}, []string{"power.draw"}},
		{[]string{"power.draw,clocks.current.aiclk", "fan.speed"}, []string{"power.draw", "clocks.current.aiclk", "fan.speed"}},
		{[]string{`sum by (host, pci) (tenstorrent_power_watts)`}, []string{`sum by (host, pci) (tenstorrent_power_watts)`}},
		{[]string{`tenstorrent_power_watts{a="1",b="2"}`}, []string{`tenstorrent_power_watts{a="1",b="2"}`}},
	} {
		t.Run(strings.Join(tt.args, " "), func(t *testing.T) {
			if got := Names(tt.args); !slices.Equal(got, tt.want) {
				t.Errorf("%q: %q, want %q", tt.args, got, tt.want)
			}
		})
	}
}
