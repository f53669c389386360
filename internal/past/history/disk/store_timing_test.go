package disk

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	hosts "github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// BenchmarkAppend is a second's samples of a Galaxy.
func BenchmarkAppend(b *testing.B) {
	var talk said
	o := options(b.TempDir(), &talk)
	o.MaxSeries = 20_000
	s := open(b, o)
	snap := hosts.Galaxy()
	w := prom.NewWalker(prom.Options{MaxWorkloads: 256})
	w.Observe(snap)
	i := 0
	b.ReportAllocs()
	for b.Loop() {
		s.AddSnapshot(func(emit prom.Emit) { w.Walk(snap, nil, emit) })
		s.Append(t0.Add(time.Duration(i) * time.Second))
		i++
	}
	b.ReportMetric(float64(s.Stats().Samples)/float64(i), "samples/row")
}

// BenchmarkDay asks for a day of 32 series, in as many points as a chart has.
func BenchmarkDay(b *testing.B) {
	var talk said
	o := options(b.TempDir(), &talk)
	s := open(b, o)
	seed := uint32(1)
	row := make([]float64, 32)
	for i := 0; i < 86400; i += 15 {
		step := 1
		if i < 82800 {
			step = 15 // makes no difference there
		}
		for j := 0; j < 15; j += step {
			for d := range row {
				seed = seed*1664525 + 1013904223
				row[d] = 100 + float64(seed>>24)/4
			}
			appendRow(s, t0.Add(time.Duration(i+j)*time.Second), row...)
		}
	}
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 50_000_000, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{})})
	for _, expr := range []string{power.Name, "max_over_time(" + power.Name + "[5m])"} {
		b.Run(fmt.Sprintf("%.13s", expr), func(b *testing.B) {
			for b.Loop() {
				q, err := engine.NewRangeQuery(context.Background(), s, nil, expr, t0, t0.Add(24*time.Hour), 5*time.Minute)
				if err != nil {
					b.Fatal(err)
				}
				r := q.Exec(context.Background())
				if m, err := r.Matrix(); err != nil || len(m) != 32 {
					b.Fatal(len(m), err)
				}
				q.Close()
			}
		})
	}
}
