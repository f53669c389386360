package pagejson

import (
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// totals adds up the host.
func totals(s *model.Snapshot, a *assess.Assessment) Totals {
	sums := words.TotalsOf(s)
	t := Totals{
		Devices: sums.Devices, Chips: sums.Chips, States: []Count{}, Power: sums.Power, Hottest: sums.Hottest,
		DRAM: figure(words.FigureOf(sums.DRAM, sums.Size), sums.DRAM),
	}
	for _, n := range a.Counts() {
		t.States = append(t.States, Count{string(n.Kind), words.Kind(n.Kind), n.Level.String(), n.N})
	}
	if n, _, known := sums.DRAM.Best(); known && sums.Size > 0 {
		ratio := float64(n) / float64(sums.Size)
		t.DRAM.Ratio = &ratio
	}
	return t
}
