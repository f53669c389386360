package metric_test

import (
	"testing"

	"github.com/ttmon/ttmon/internal/field/metric"
)

func TestForms(t *testing.T) {
	for _, c := range []struct {
		got, want string
	}{
		{metric.Bytes.Format(10952166604), "10.2 GiB"},
		{metric.Rate.Format(1 << 20), "1.0 MiB/s"},
		{metric.Watts.Format(61.4), "61 W"},
		{metric.Celsius.Format(52), "52 °C"},
		{metric.Ratio.Format(0.58), "58 %"},
		{metric.Estimate.Format(0.58), "~58 %"},
		{metric.Generation.Format(4), "Gen4"},
		{metric.PerHour.Format(3), "3.0/h"},
		{metric.Volts.Format(0.8), "0.800 V"},
		{metric.PerSecond.Format(9.96), "10/s"},
		{metric.PerSecond.Format(9.94), "9.9/s"},
		{metric.Seconds.Format(0.26), "0.3 s"},
		{metric.Bytes.Tick(24<<30, 1<<30), "24"},
		{metric.Bytes.Tick(1.5*(1<<30), 1<<30), "1.5"},
		{metric.Ratio.Tick(0.5, 0.01), "50"},
		{metric.Volts.Tick(0.25, 1), "0.25"},
		{metric.RPM.Tick(1.5e6, 1), "1.5e+06"},
		{metric.Bytes.Number(10952166604, 1<<30), "10.2"},
		{metric.Watts.Number(61, 1), "61"},
		{metric.Watts.Number(161.7, 1), "162"},
		{metric.Volts.Number(0.812, 1), "0.81"},
	} {
		t.Run(c.want, func(t *testing.T) {
			if c.got != c.want {
				t.Errorf("%q, want %q", c.got, c.want)
			}
		})
	}
	for _, c := range []struct {
		form metric.Form
		top  float64
		name string
		per  float64
	}{
		{metric.Bytes, 32 << 30, "GiB", 1 << 30},
		{metric.Bytes, 500, "B", 1},
		{metric.Rate, 3 << 20, "MiB/s", 1 << 20},
		{metric.Watts, 300, "W", 1},
		{metric.Ratio, 1, "%", 0.01},
		{metric.Celsius, 75, "°C", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			if name, per := c.form.Axis(c.top); name != c.name || per != c.per {
				t.Errorf("axis up to %v: %s per %v, want %s per %v", c.top, name, per, c.name, c.per)
			}
		})
	}
}

// A counter of nanoseconds is written in seconds, as its unit says.
func TestNanoseconds(t *testing.T) {
	f := metric.Named("busy.time")
	if got := f.Form().Format(11_908_636_000); got != "12 s" {
		t.Errorf("%q", got)
	}
	if got := f.Form().Format(4_200_000_000); got != "4.2 s" {
		t.Errorf("%q", got)
	}
}
