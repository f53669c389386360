package promapi

import (
	"encoding/json"
	"net/url"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// A daemon that is away for twenty seconds has no values of that time, whether
// it was stopped or held up: not even with the lookback of Prometheus.
func TestGapIsAGap(t *testing.T) {
	o := disk.Options{Dir: filepath.Join(t.TempDir(), "h"), FineFor: time.Hour, CoarseFor: time.Hour, MaxBytes: 1 << 30, MaxSeries: 100}
	power, limit := &prom.Family{Name: "tenstorrent_core_power_watts"}, &prom.Family{Name: "tenstorrent_core_power_limit_watts", Static: true}
	var s *disk.Store
	start := func() {
		var err error
		if s, err = disk.Open(o); err != nil {
			t.Fatal(err)
		}
	}
	rows := func(from, to int) {
		for i := from; i < to; i++ {
			s.AddSnapshot(func(emit prom.Emit) {
				emit(power, prom.Pairs("device", "0"), 7)
				emit(limit, prom.Pairs("device", "0"), 300)
			})
			s.Append(t0.Add(time.Duration(i) * time.Second))
		}
	}
	start()
	rows(0, 30)
	s.Close() // stopped
	start()
	rows(50, 80)
	rows(100, 130) // held up
	defer s.Close()
	h := New(Options{Queryable: s})
	for _, name := range []string{power.Name, limit.Name} {
		status, body := ask(t, h, "query_range", url.Values{"query": {name}, "start": {"1800000000"}, "end": {"1800000129"}, "step": {"1"}})
		var got struct {
			Data struct{ Result []struct{ Values [][]any } }
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || status != 200 || len(got.Data.Result) != 1 {
			t.Fatalf("%d %s: %v", status, body, err)
		}
		known := map[int]bool{}
		for _, p := range got.Data.Result[0].Values {
			known[int(p[0].(float64))-int(t0.Unix())] = true
		}
		for i := range 130 {
			if want := i < 30 || i >= 50 && i < 80 || i >= 100; known[i] != want {
				t.Errorf("%s at second %d: known %v, want %v", name, i, known[i], want)
			}
		}
	}
}
