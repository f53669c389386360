package said

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
	"github.com/ttmon/ttmon/internal/wire/sample"
)

// Devices and processes are in the snapshot's order, and every figure is what
// words says of it.
func TestAsWordsSay(t *testing.T) {
	for name, s := range map[string]*model.Snapshot{"four": sample.Four(), "galaxy": sample.Galaxy(), "none": sample.None()} {
		got := Of(s)
		if len(got.Devices) != len(s.Devices) || len(got.Processes) != len(s.Processes) {
			t.Fatalf("%s: %d devices and %d processes", name, len(got.Devices), len(got.Processes))
		}
		for i := range s.Devices {
			d := &s.Devices[i]
			for _, p := range model.Pools() {
				if f := got.Devices[i].Pools[p.String()]; f.Text != words.PoolLong(p, &d.Memory.Pools[p], d.Memory.Tracking) {
					t.Errorf("%s: %v of device %d is %q", name, p, d.Index, f.Text)
				}
			}
			if got.Devices[i].State != words.State(assess.Of(s), d) || len(got.Devices[i].Chips) != len(d.Chips) {
				t.Errorf("%s: device %d: %+v", name, d.Index, got.Devices[i])
			}
		}
		if len(got.Notices) != len(words.Notices(s)) {
			t.Errorf("%s: %d notices", name, len(got.Notices))
		}
		b, err := json.Marshal(got)
		if err != nil || strings.Contains(string(b), ":null") && strings.Contains(string(b), `"reasons":null`) {
			t.Errorf("%s: a list is null: %v", name, err)
		}
	}
}

// A sum that leaves something out says so.
func TestTotals(t *testing.T) {
	s := sample.Four()
	whole := Of(s).Totals
	if whole.Devices != len(s.Devices) || whole.DRAM.Bytes == nil {
		t.Fatalf("%+v", whole)
	}
	s.Devices[0].Power = model.Missing[float64](model.Hung, "")
	s.Devices[0].Memory.Pools[model.DRAM].Used = model.NoBytes(model.Denied)
	less := Of(s).Totals
	if !strings.HasPrefix(less.Power, words.Mark(model.AtLeast)) {
		t.Errorf("power without a device is %q", less.Power)
	}
	if less.DRAM.Bound == model.Exact.String() {
		t.Errorf("DRAM without a device is %+v", less.DRAM)
	}
}

func TestProcessSums(t *testing.T) {
	d := sample.P150a(0, 1)
	e := sample.P150a(1, 2)
	s := &model.Snapshot{Devices: []model.Device{d, e}, Processes: []model.Process{sample.Serve(7, sample.Use(&d, 1<<30, 0), sample.Use(&e, 2<<30, 0))}}
	if f := Of(s).Processes[0].Pools["dram"]; f.Bytes == nil || *f.Bytes != 3<<30 || f.Text != "3.0 GiB" || f.Bound != "exact" {
		t.Errorf("%+v", f)
	}
	s.Processes[0].Devices[1].Memory[model.DRAM] = model.NoBytes(model.Denied)
	if f := Of(s).Processes[0].Pools["dram"]; f.Text != "≥1.0 GiB" || f.Bound != "at_least" {
		t.Errorf("%+v", f)
	}
}
