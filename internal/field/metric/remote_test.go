package metric_test

import (
	"reflect"
	"testing"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

func TestRemoteChips(t *testing.T) {
	chip := func(temperature, power model.Reading[float64]) model.Chip {
		return model.Chip{Remote: true, Temperature: temperature, Power: power}
	}
	none := model.Missing[float64](model.Absent, "tt-telemetry does not export it")
	for name, tt := range map[string]struct {
		chips              []model.Chip
		temperature, power metric.Value
	}{
		"no remote chip": {[]model.Chip{{}}, metric.Value{Status: model.Absent, Why: "the device has no chip behind Ethernet"}, metric.Value{Status: model.Absent, Why: "the device has no chip behind Ethernet"}},
		"not read":       {[]model.Chip{{}, {Remote: true}}, metric.Value{Status: model.Absent, Why: words.RemoteUnread}, metric.Value{Status: model.Absent, Why: words.RemoteUnread}},
		"one":            {[]model.Chip{{}, chip(model.Value(47.5), none)}, metric.Value{Status: model.Known, Num: 47.5}, metric.Value{Status: model.Absent, Why: "tt-telemetry does not export it"}},
		"two":            {[]model.Chip{chip(model.Value(47.0), model.Value(20.0)), chip(model.Value(51.0), model.Value(22.0))}, metric.Value{Status: model.Known, Num: 51}, metric.Value{Status: model.Known, Num: 42}},
		"one of two":     {[]model.Chip{chip(model.Value(47.0), model.Value(20.0)), {Remote: true}}, metric.Value{Status: model.Absent, Why: words.RemoteUnread}, metric.Value{Status: model.Absent, Why: words.RemoteUnread}},
	} {
		t.Run(name, func(t *testing.T) {
			d := &model.Device{Chips: tt.chips}
			for field, want := range map[string]metric.Value{"temperature.remote": tt.temperature, "power.draw.remote": tt.power} {
				c, ok := metric.Find(metric.Devices(), field)
				if !ok {
					t.Fatal("no field " + field)
				}
				if got := c.Get(nil, d); !reflect.DeepEqual(got, want) {
					t.Errorf("%s: %+v, want %+v", field, got, want)
				}
			}
		})
	}
}
