package said

import (
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// totals adds up the host. A sum that leaves devices out says so.
func totals(s *model.Snapshot) Totals {
	t := Totals{Devices: len(s.Devices), States: map[string]int{}, Power: words.Nothing, Hottest: words.Nothing}
	watts, measured, hottest, heat := 0.0, 0, 0.0, 0
	var used model.Sum
	size := uint64(0)
	for i := range s.Devices {
		d := &s.Devices[i]
		t.Chips += max(len(d.Chips), 1)
		t.States[string(d.State)]++
		if w, ok := d.Power.Get(); ok {
			watts += w
			measured++
		}
		if c, ok := d.Temperature.Get(); ok && (heat == 0 || c > hottest) {
			hottest, heat = c, heat+1
		}
		pool := &d.Memory.Pools[model.DRAM]
		used.Add(pool.Used)
		if n, ok := pool.Total.Get(); ok {
			size += n
		}
	}
	if measured > 0 {
		t.Power = words.Watts(watts)
		if measured < len(s.Devices) {
			t.Power = words.Mark(model.AtLeast) + t.Power
		}
	}
	if heat > 0 {
		t.Hottest = words.Temperature(hottest, words.Celsius)
	}
	sum := used.Bytes()
	t.DRAM = figure(words.FigureOf(sum, size), sum)
	if n, _, known := sum.Best(); known && size > 0 {
		ratio := float64(n) / float64(size)
		t.DRAM.Ratio = &ratio
	}
	return t
}
