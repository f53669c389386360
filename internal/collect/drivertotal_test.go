package collect

import (
	"testing"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// TestDriverTotal: what a driver says is allocated on a device is believed beside what
// processes account for, unless they can show more.
func TestDriverTotal(t *testing.T) {
	missing := model.NoBytes(model.Absent)
	for name, c := range map[string]struct {
		accounted, want model.Bytes
		doubt           bool
	}{
		"no process accounts": {missing, model.ExactBytes(5000), false},
		"nothing is known of": {model.ExactBytes(0), model.ExactBytes(5000), false},
		"a part is":           {model.ExactBytes(3000).Doubted(model.AtLeast), model.ExactBytes(5000), false},
		"all is":              {model.ExactBytes(5000), model.ExactBytes(5000), false},
		"perhaps more is":     {model.ExactBytes(6000).Doubted(model.Unsure), model.ExactBytes(5000), false},
		"more is":             {model.ExactBytes(6000), model.ExactBytes(6000).Doubted(model.Unsure), true},
	} {
		t.Run(name, func(t *testing.T) {
			d := model.Device{Index: 3, Chips: make([]model.Chip, 1)}
			for _, m := range []*model.Memory{&d.Memory, &d.Chips[0].Memory} {
				m.Pools[model.DRAM].Used = c.accounted
			}
			s := &model.Snapshot{Devices: []model.Device{d}}
			f := kmd.Found{Device: model.Device{Index: 3}}
			f.Memory.Used[model.DRAM] = model.Value(uint64(5000))
			addDriverTotals(s, kmd.Sweep{Found: []kmd.Found{f}})
			for _, m := range []*model.Memory{&s.Devices[0].Memory, &s.Devices[0].Chips[0].Memory} {
				if got := m.Pools[model.DRAM].Used; got != c.want {
					t.Errorf("%+v, want %+v", got, c.want)
				}
				if got := len(m.Doubts) > 0; got != c.doubt {
					t.Errorf("doubts %+v", m.Doubts)
				}
				if m.Pools[model.L1].Used.Known() {
					t.Error("the driver did not speak of L1")
				}
			}
		})
	}
}

// TestInferredL1: what a driver counts in L1 beside buffers is circular buffers, kernels
// and what else is there: in doubt, and only where the buffers are known.
func TestInferredL1(t *testing.T) {
	missing := model.NoBytes(model.Absent)
	for name, c := range map[string]struct {
		buffers, cb, kernel, want model.Bytes
	}{
		"neither is known":     {model.ExactBytes(3000), missing, missing, model.ExactBytes(2000).Doubted(model.Unsure)},
		"circular buffers are": {model.ExactBytes(3000), model.ExactBytes(500), missing, model.ExactBytes(1500).Doubted(model.Unsure)},
		"more than there is":   {model.ExactBytes(3000), model.ExactBytes(1500), model.ExactBytes(1500), model.ExactBytes(0).Doubted(model.Unsure)},
		"buffers are not":      {missing, missing, missing, model.Bytes{}},
		"sources disagree":     {model.ExactBytes(6000), missing, missing, model.Bytes{}},
	} {
		t.Run(name, func(t *testing.T) {
			d := model.Device{Chips: make([]model.Chip, 1)}
			p := &d.Memory.Pools
			p[model.L1].Used, p[model.CB].Used, p[model.Kernel].Used = c.buffers, c.cb, c.kernel
			addDriverTotal(&d, model.L1, 5000)
			if got := d.Memory.Inferred; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
			if _, bound, known := p[model.L1].Used.Best(); !known || bound != model.Unsure {
				t.Errorf("which part of the total are buffers is not known: %+v", p[model.L1].Used)
			}
		})
	}
}
