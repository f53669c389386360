package words

import (
	"github.com/ttmon/ttmon/internal/model"
)

// Totals are sums over a host. A sum that leaves devices out says so.
type Totals struct {
	Devices, Chips int
	DRAM           model.Bytes
	Size           uint64 // of all DRAM
	Power          string // of the core rails: "≥171 W"; Nothing where none is known
	Hottest        string // chip; Nothing where none is known
	Board          string // that all devices are; empty where they differ
}

// TotalsOf adds up a host.
func TotalsOf(s *model.Snapshot) Totals {
	t := Totals{Devices: len(s.Devices), Power: Nothing, Hottest: Nothing}
	var used model.Sum
	watts, measured := 0.0, 0
	var hottest model.Reading[float64]
	for i := range s.Devices {
		d := &s.Devices[i]
		t.Chips += max(len(d.Chips), 1)
		if w, ok := d.Power.Get(); ok {
			watts += w
			measured++
		}
		if v, ok := d.Temperature.Get(); ok && (!hottest.Known() || v > hottest.V) {
			hottest = model.Value(v)
		}
		pool := &d.Memory.Pools[model.DRAM]
		used.Add(pool.Used)
		t.Size += pool.Total.V
		if board := boardOf(d); i == 0 {
			t.Board = board
		} else if board != t.Board {
			t.Board = ""
		}
	}
	t.DRAM = used.Bytes()
	if measured > 0 {
		t.Power = AddedWatts(watts)
		if measured < len(s.Devices) {
			t.Power = Mark(model.AtLeast) + t.Power
		}
	}
	if v, ok := hottest.Get(); ok {
		t.Hottest = Temperature(v)
	}
	return t
}

// AddedWatts is the power of several devices: "640 W", "12.3 kW".
func AddedWatts(w float64) string {
	if w >= 10_000 {
		return Fixed(w/1000, 1) + " kW"
	}
	return Watts(w)
}
