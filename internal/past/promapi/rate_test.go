package promapi

import (
	"context"
	"fmt"
	"math"
	"path/filepath"
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/history/disk"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// Traffic that is steady is told as steady, or not at all: it neither begins nor
// fades where its counter was not read.
func TestRateAtGaps(t *testing.T) {
	s, err := disk.Open(disk.Options{Dir: filepath.Join(t.TempDir(), "h"), FineFor: time.Hour, CoarseFor: time.Hour, MaxBytes: 1 << 30, MaxSeries: 100})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	f := &prom.Family{Name: "tenstorrent_pcie_transferred_bytes_total"}
	for i := range 120 {
		s.AddSnapshot(func(emit prom.Emit) {
			if i < 50 || i >= 70 {
				emit(f, prom.Pairs("device", "0", "direction", "to_device"), float64(1000+100*i))
			}
		})
		s.Append(t0.Add(time.Duration(i) * time.Second))
	}
	field := metric.Field[*model.Device]{Name: "pcie.rx"}
	expr, _, _ := field.Query("10s")
	lines, err := Range(context.Background(), NewEngine(), s, expr, Window{Start: t0, End: t0.Add(119 * time.Second), Step: time.Second, Lookback: 5 * time.Second})
	if err != nil || len(lines) != 1 {
		t.Fatalf("%d series, %v", len(lines), err)
	}
	known := map[int64]bool{}
	for i, v := range lines[0].Values {
		second := lines[0].Times[i]/1000 - t0.Unix()
		known[second] = true
		if math.Abs(v-100) > 1 {
			t.Errorf("%v bytes a second at second %d", v, second)
		}
	}
	for second, want := range map[int64]bool{5: false, 15: true, 45: true, 60: false, 75: false, 85: true, 119: true} {
		t.Run(fmt.Sprint(second), func(t *testing.T) {
			if known[second] != want {
				t.Errorf("known at second %d: %v, want %v", second, known[second], want)
			}
		})
	}
}
