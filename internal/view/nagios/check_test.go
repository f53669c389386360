package nagios_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/nagios"
)

func device(index int, celsius float64) model.Device {
	return model.Device{
		Index: index, State: model.StateOK, Temperature: model.Value(celsius),
		Fan: model.Reading[float64]{Status: model.Absent},
	}
}

// holding is a device with 50 MiB in use, as far as is known.
func holding(index int, bound model.Bound) model.Device {
	d := model.Device{Index: index, State: model.StateOK, Temperature: model.Reading[float64]{Status: model.Absent}}
	d.Memory.Pools[model.DRAM].Used = model.BoundBytes(50<<20, bound)
	return d
}

func threshold(t *testing.T, level nagios.Status, field, text string) nagios.Threshold {
	t.Helper()
	column, ok := metric.Find(metric.Devices(), field)
	r, err := nagios.ParseRange(text)
	if !ok || err != nil {
		t.Fatal(field, text, err)
	}
	return nagios.Threshold{Field: column, Range: r, Level: level}
}

func TestCheck(t *testing.T) {
	denied := device(0, 40)
	denied.Memory.Stale = model.NoBytes(model.Denied)
	hung := device(1, 50)
	hung.State = model.StateHung
	for _, c := range []struct {
		name    string
		check   nagios.Check
		devices []model.Device
		status  nagios.Status
		want    string
	}{
		{
			"well",
			nagios.Check{Expect: 2},
			[]model.Device{device(0, 40), device(1, 41)},
			nagios.OK,
			"TTMON OK - 2 devices, all ok | 'dev0_temperature_asic'=40 'dev1_temperature_asic'=41\n",
		},
		{
			"a region that may not be read",
			nagios.Check{},
			[]model.Device{denied, device(1, 41)},
			nagios.OK,
			"TTMON OK - 2 devices, all ok; stale memory of device 0 is not known | 'dev0_temperature_asic'=40 'dev1_temperature_asic'=41\n",
		},
		{"none", nagios.Check{}, nil, nagios.Unknown, "TTMON UNKNOWN - no device\n"},
		{
			"too few",
			nagios.Check{Expect: 2},
			[]model.Device{device(0, 40)},
			nagios.Critical,
			"TTMON CRITICAL - 1 device, expected 2 | 'dev0_temperature_asic'=40\n",
		},
		{
			"hung",
			nagios.Check{},
			[]model.Device{device(0, 40), hung},
			nagios.Critical,
			"TTMON CRITICAL - device 1: hung → tt-smi -r /dev/tenstorrent/1 | 'dev0_temperature_asic'=40 'dev1_temperature_asic'=50\n",
		},
		{
			"hung, and that is known",
			nagios.Check{Ignore: []string{"hung"}},
			[]model.Device{hung},
			nagios.OK,
			"TTMON OK - 1 device, all ok | 'dev1_temperature_asic'=50\n",
		},
		{
			"two thresholds of one field say it once",
			nagios.Check{Thresholds: []nagios.Threshold{threshold(t, nagios.Warning, "temperature.asic", "60"), threshold(t, nagios.Critical, "temperature.asic", "70")}},
			[]model.Device{device(0, 65), device(1, 75)},
			nagios.Critical,
			"TTMON CRITICAL - device 1: temperature.asic is 75 C (70) (and 1 more) | 'dev0_temperature_asic'=65;60;70 'dev1_temperature_asic'=75;60;70\n" +
				"CRITICAL: device 1: temperature.asic is 75 C (70)\nWARNING: device 0: temperature.asic is 65 C (60)\n",
		},
		{
			"a value that is missing is no value that is fine",
			nagios.Check{Thresholds: []nagios.Threshold{threshold(t, nagios.Critical, "fan.speed", "100:")}},
			[]model.Device{device(0, 40)},
			nagios.Unknown,
			"TTMON UNKNOWN - device 0: fan.speed is not available | 'dev0_temperature_asic'=40\n",
		},
		{
			"a number that is not exact has its mark below",
			nagios.Check{},
			[]model.Device{holding(0, model.Unsure), holding(1, model.AtLeast), holding(2, model.Exact)},
			nagios.OK,
			"TTMON OK - 3 devices, all ok | 'dev0_memory_used'=52428800B 'dev1_memory_used'=52428800B 'dev2_memory_used'=52428800B\n" +
				"device 0: memory.used is ~50 MiB\ndevice 1: memory.used is ≥50 MiB\n",
		},
		{
			"a lower bound below a limit is not below it",
			nagios.Check{Thresholds: []nagios.Threshold{threshold(t, nagios.Critical, "memory.used", "100")}},
			[]model.Device{holding(0, model.AtLeast)},
			nagios.Unknown,
			"TTMON UNKNOWN - device 0: memory.used is ≥50 MiB, which does not decide (100) | 'dev0_memory_used'=52428800B;;104857600\n" +
				"device 0: memory.used is ≥50 MiB\n",
		},
		{
			"a lower bound above a limit is above it",
			nagios.Check{Thresholds: []nagios.Threshold{threshold(t, nagios.Critical, "memory.used", "40")}},
			[]model.Device{holding(0, model.AtLeast)},
			nagios.Critical,
			"TTMON CRITICAL - device 0: memory.used is ≥50 MiB (40) | 'dev0_memory_used'=52428800B;;41943040\n" +
				"device 0: memory.used is ≥50 MiB\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := c.check.Run(&model.Snapshot{Devices: c.devices, Host: model.Host{DriverLoaded: true}})
			if diff := cmp.Diff(c.want, string(r.Append(nil))); diff != "" || r.Status != c.status {
				t.Errorf("%v:\n%s", r.Status, diff)
			}
		})
	}
}

// Every kind that can be ignored is one that counts.
func TestCodes(t *testing.T) {
	s := &model.Snapshot{Host: model.Host{DriverLoaded: true}}
	for i, state := range []model.State{model.StateHung, model.StateLost, model.StateResetting, model.StateUnknown} {
		d := device(i, 50)
		d.State = state
		s.Devices = append(s.Devices, d)
	}
	all := nagios.Check{Ignore: nagios.Codes()}
	if r := all.Run(s); r.Status != nagios.OK {
		t.Errorf("%s", r.Append(nil))
	}
}
