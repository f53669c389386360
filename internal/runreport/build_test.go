package runreport

import (
	"testing"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// The bound of a peak is that of its ledger, as in ttmon runs: what was allocated
// before libttmon came, or in a list that it does not have, is in no peak.
func TestBoundOfPeak(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*ledgerfile.Ledger)
		want   model.Bound
	}{
		"all was seen":       {func(*ledgerfile.Ledger) {}, model.Exact},
		"it came late":       {func(l *ledgerfile.Ledger) { l.Flags |= ledgerfile.Late }, model.AtLeast},
		"an unknown list":    {func(l *ledgerfile.Ledger) { l.Unmatched = 1 }, model.AtLeast},
		"events are missing": {func(l *ledgerfile.Ledger) { l.Lost = 1 }, model.AtLeast},
		"a list found late":  {func(l *ledgerfile.Ledger) { l.Lists[1].Late = true }, model.AtLeast},
		"contradictions":     {func(l *ledgerfile.Ledger) { l.Unknown = 1 }, model.Unsure},
	} {
		t.Run(name, func(t *testing.T) {
			l := &ledgerfile.Ledger{PID: 7, Chips: []ledgerfile.Chip{{ID: 99}}, Lists: []ledgerfile.List{{}, {
				State: ledgerfile.Closed, Pool: ledgerfile.DRAM, Banks: 8, Chips: []int{0}, Peak: ledgerfile.Sum{Bytes: 4, Blocks: 1}, Total: ledgerfile.Sum{Bytes: 4, Blocks: 1},
			}}}
			c.change(l)
			b := NewBuilder(time.Unix(1000, 0))
			b.Add("a", l, false)
			if got := b.Report(time.Unix(1001, 0)).Chips[0].Pools[0].PeakFigure(); got != model.BoundBytes(32, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}
