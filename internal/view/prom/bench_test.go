package prom

import (
	"bytes"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"
	commonmodel "github.com/prometheus/common/model"

	"github.com/ttmon/ttmon/internal/field/wire/sample"
)

// BenchmarkPage compares a page of 32 boards with one that client_golang writes of
// the same samples (docs/decisions/0004-what-we-write-ourselves.md).
func BenchmarkPage(b *testing.B) {
	s := sample.Galaxy()
	w := NewWalker(all)
	w.Observe(s)
	b.Run("ours", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			var p Page
			w.Walk(s, self, p.Add)
			b.SetBytes(int64(len(p.Bytes())))
		}
	})
	b.Run("client_golang", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			page, err := theirPage(func(add func(*Family, Labels, float64)) { w.Walk(s, self, add) })
			if err != nil {
				b.Fatal(err)
			}
			b.SetBytes(int64(len(page)))
		}
	})
}

// TestPageAsClientGolang: their page has the same series with the same values.
func TestPageAsClientGolang(t *testing.T) {
	s := sample.Galaxy()
	w := NewWalker(all)
	w.Observe(s)
	theirs, err := theirPage(func(add func(*Family, Labels, float64)) { w.Walk(s, self, add) })
	if err != nil {
		t.Fatal(err)
	}
	var p Page
	w.Walk(s, self, p.Add)
	if got, want := values(t, p.Bytes()), values(t, theirs); !maps.Equal(got, want) {
		for series, value := range want {
			if got[series] != value {
				t.Errorf("%s: %v, by client_golang %v", series, got[series], value)
			}
		}
		t.Errorf("%d series, by client_golang %d", len(got), len(want))
	}
}

// collector gives client_golang the samples of a walk, as its interface for figures
// that others collect has it.
type collector func(add func(*Family, Labels, float64))

// Describe implements prometheus.Collector; a collector that describes nothing is
// not checked against what it said before.
func (collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (walk collector) Collect(metrics chan<- prometheus.Metric) {
	walk(func(f *Family, labels Labels, v float64) {
		names, values := make([]string, len(labels)), make([]string, len(labels))
		for i, l := range labels {
			names[i], values[i] = l.Name, l.Value
		}
		kind := prometheus.GaugeValue
		if f.Type == "counter" {
			kind = prometheus.CounterValue
		}
		m, err := prometheus.NewConstMetric(prometheus.NewDesc(f.Name, f.Help, names, nil), kind, v, values...)
		if err != nil {
			m = prometheus.NewInvalidMetric(prometheus.NewInvalidDesc(err), err)
		}
		metrics <- m
	})
}

func theirPage(walk collector) ([]byte, error) {
	registry := prometheus.NewRegistry()
	if err := registry.Register(walk); err != nil {
		return nil, err
	}
	families, err := registry.Gather()
	if err != nil {
		return nil, err
	}
	var page bytes.Buffer
	e := expfmt.NewEncoder(&page, expfmt.NewFormat(expfmt.TypeTextPlain))
	for _, f := range families {
		if err := e.Encode(f); err != nil {
			return nil, err
		}
	}
	return page.Bytes(), nil
}

// values reads a page back, whatever the order of its labels.
func values(t *testing.T, page []byte) map[string]float64 {
	t.Helper()
	parser := expfmt.NewTextParser(commonmodel.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]float64{}
	for name, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			found[name+"{"+strings.Join(slices.Sorted(slices.Values(labels)), ",")+"}"] = m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return found
}
