package proc

import (
	"io/fs"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestMachineCPU(t *testing.T) {
	var m machine
	for _, c := range []struct {
		text string
		want model.Reading[float64]
	}{
		{"cpu  100 0 100 700 100 0 0 0 50 0\ncpu0 1 2\n", model.Missing[float64](model.Pending, "needs two samples")},
		{"cpu  150 0 150 750 150 0 0 0 99 0\n", model.Value(50.0)},
		{"cpu  150 0 150 750 150 0 0 0 99 0\n", model.Missing[float64](model.Pending, "needs two samples")}, // no time has passed
		{"cpu  100 0 100 700 100 0 0 0 50 0\n", model.Missing[float64](model.Pending, "needs two samples")}, // it went backwards
		{"cpu  x 0 100 700\n", model.Missing[float64](model.Unsupported, "")},
		{"", model.Missing[float64](model.Unsupported, "")},
	} {
		if got := m.updateCPU(c.text, nil); got != c.want {
			t.Errorf("%q: %+v, want %+v", c.text, got, c.want)
		}
	}
	if got := m.updateCPU("", fs.ErrNotExist); got.Known() {
		t.Errorf("without a file: %+v", got)
	}
}

func TestMachineMemory(t *testing.T) {
	used, total := parseMeminfo("MemTotal:       1000 kB\nMemFree:  1 kB\nMemAvailable:    400 kB\n")
	if used != model.Value[uint64](600<<10) || total != model.Value[uint64](1000<<10) {
		t.Errorf("%+v of %+v", used, total)
	}
	for _, text := range []string{"", "MemTotal: 1000 kB\n", "MemTotal: 1 kB\nMemAvailable: 2 kB\n", "MemTotal: x kB\nMemAvailable: 2 kB\n"} {
		t.Run(text, func(t *testing.T) {
			if used, total := parseMeminfo(text); used.Known() || total.Known() {
				t.Errorf("%q: %+v of %+v", text, used, total)
			}
		})
	}
	if v, ok := parseLoadAverage("0.31 1.38 2.46 1/123 4567\n"); !ok || v != 0.31 {
		t.Errorf("load %v, %v", v, ok)
	}
	for _, text := range []string{"", "x", "-1 0", "NaN 1", "Inf 1"} {
		t.Run(text, func(t *testing.T) {
			if v, ok := parseLoadAverage(text); ok {
				t.Errorf("%q is a load of %v", text, v)
			}
		})
	}
}

func FuzzMachine(f *testing.F) {
	f.Add("cpu  100 0 100 700 100 0 0 0 50 0\nMemTotal: 5 kB\nMemAvailable: 4 kB\n")
	f.Fuzz(func(t *testing.T, text string) {
		var m machine
		m.updateCPU("cpu  1 0 0 1 0\n", nil)
		if v := m.updateCPU(text, nil); v.Known() && (v.V < 0 || v.V > 100) {
			t.Errorf("%v %% of all cores", v.V)
		}
		if used, total := parseMeminfo(text); used.Known() && used.V > total.V {
			t.Errorf("%d of %d", used.V, total.V)
		}
		parseLoadAverage(text)
	})
}
