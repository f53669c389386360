package words_test

import (
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func TestThrottling(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*model.Snapshot, *model.Device)
		want   string
	}{
		"full clock": {func(_ *model.Snapshot, d *model.Device) { d.AICLK = model.Value(1000.0) }, "no"},
		"idle":       {func(s *model.Snapshot, _ *model.Device) { s.Processes = nil }, "no"},
		"no clock":   {func(_ *model.Snapshot, d *model.Device) { d.AICLK = model.Reading[float64]{} }, "–"},
		"heat":       {func(_ *model.Snapshot, d *model.Device) { d.Temperature = model.Value(74.5) }, "~by heat (700 of 1000 MHz"},
		"power":      {func(_ *model.Snapshot, d *model.Device) { d.Power = model.Value(99.0) }, "~by power"},
		"current":    {func(_ *model.Snapshot, d *model.Device) { d.Current = model.Value(99.0) }, "~by current"},
		"neither":    {func(*model.Snapshot, *model.Device) {}, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			s := sample.One()
			d := &s.Devices[0]
			s.Processes = []model.Process{sample.Serve(7, sample.Use(d, 1, 1))}
			d.AICLK, d.AICLKMax = model.Value(700.0), model.Value(1000.0)
			d.Temperature, d.TemperatureLimit = model.Value(50.0), model.Value(75.0)
			d.Power, d.PowerLimit = model.Value(50.0), model.Value(100.0)
			d.Current, d.CurrentLimit = model.Value(50.0), model.Value(100.0)
			c.change(s, d)
			if got := words.Throttling(assess.Of(s), d); !strings.HasPrefix(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}
