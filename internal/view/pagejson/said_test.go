package pagejson

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/wire/sample"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Devices and processes are in the snapshot's order, and every figure is what
// words says of it.
func TestAsWordsSay(t *testing.T) {
	for name, s := range map[string]*model.Snapshot{"four": sample.Four(), "galaxy": sample.Galaxy(), "none": sample.None()} {
		t.Run(name, func(t *testing.T) {
			got := Of(s)
			if len(got.Devices) != len(s.Devices) || len(got.Processes) != len(s.Processes) {
				t.Fatalf("%d devices and %d processes", len(got.Devices), len(got.Processes))
			}
			for i := range s.Devices {
				d := &s.Devices[i]
				for _, p := range model.Pools() {
					if f := got.Devices[i].Pools[p.String()]; f.Text != words.PoolLong(p, &d.Memory.Pools[p], d.Memory.Tracking) {
						t.Errorf("%v of device %d is %q", p, d.Index, f.Text)
					}
				}
				if got.Devices[i].State != words.State(assess.Of(s), d) || got.Devices[i].Mark != words.StateMark(assess.Of(s).Device(d.Index).Kind) || len(got.Devices[i].Chips) != len(d.Chips) {
					t.Errorf("device %d: %+v", d.Index, got.Devices[i])
				}
			}
			if len(got.Notices) != len(words.Notices(s)) {
				t.Errorf("%d notices", len(got.Notices))
			}
			b, err := json.Marshal(got)
			if err != nil || strings.Contains(string(b), ":null") && strings.Contains(string(b), `"reasons":null`) {
				t.Errorf("a list is null: %v", err)
			}
		})
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
	if f := Of(s).Processes[0].Values["dram"]; f.N == nil || *f.N != 3<<30 || f.Text != "3.0 GiB" || f.Bound != "" {
		t.Errorf("%+v", f)
	}
	s.Processes[0].Devices[1].Memory[model.DRAM] = model.NoBytes(model.Denied)
	if f := Of(s).Processes[0].Values["dram"]; f.Text != "≥1.0 GiB" || f.Bound != "at_least" {
		t.Errorf("%+v", f)
	}
}

// How busy a process has chips is said of the busiest of all, and of each device
// by itself, with its mark and its reason; nothing is said of who reports nothing.
func TestProcessBusy(t *testing.T) {
	s := sample.Four()
	p := &s.Processes[0]
	p.Devices = append(p.Devices[:1:1], p.Devices[0], p.Devices[0])
	p.Devices[0].Device, p.Devices[1].Device, p.Devices[2].Device = 0, 1, 2
	p.Work = model.ProcessWork{Watched: true, Chips: []model.ChipWork{
		{Device: 0, Work: model.Work{Busy: model.Value(0.2)}},
		{Device: 0, Work: model.Work{Busy: model.Value(0.3)}},
		{Device: 1, Work: model.Work{Busy: model.Value(0.625), Bound: model.AtLeast, Cause: model.WorkLossy}},
	}}
	s.Processes[1].Work = model.ProcessWork{}
	got := Of(s).Processes
	if b := got[0].Values["busy"]; b.Text != "≥62 %" || b.N == nil || *b.N != 0.625 || b.Why != words.WorkCause(model.WorkLossy) {
		t.Errorf("on all devices %+v", b)
	}
	if b := got[0].Uses[0].Values["busy"]; b.Text != "30 %" || b.Why != "" {
		t.Errorf("on device 0 %+v", b)
	}
	if b := got[0].Uses[2].Values["busy"]; b.Text != words.Nothing || b.N != nil {
		t.Errorf("on a device that it does not report of %+v", b)
	}
	if b := got[1].Values["busy"]; b.Text != words.Nothing || b.N != nil {
		t.Errorf("of a process that reports nothing %+v", b)
	}
}
