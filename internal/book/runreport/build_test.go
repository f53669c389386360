package runreport

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/book/runs"
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
			if got := b.Report(time.Unix(1001, 0), nil).Run.Pools["dram"].PeakBytes(); got != model.BoundBytes(32, c.want) {
				t.Errorf("%v, want %v", got, c.want)
			}
		})
	}
}

// What is held now of L1 that was given out core by core is in no sum: several of its
// lists have the same blocks.
func TestNowPerCore(t *testing.T) {
	list := func(pool ledgerfile.Pool) ledgerfile.List {
		return ledgerfile.List{State: ledgerfile.Open, Pool: pool, Banks: 8, Chips: []int{0}, Live: ledgerfile.Sum{Bytes: 4, Blocks: 1}}
	}
	l := &ledgerfile.Ledger{PID: 7, Flags: ledgerfile.PerCore, Chips: []ledgerfile.Chip{{ID: 99}}, Lists: []ledgerfile.List{{}, list(ledgerfile.DRAM), list(ledgerfile.L1), list(ledgerfile.L1)}}
	b := NewBuilder(time.Unix(1000, 0))
	b.Add("a", l, true)
	if diff := cmp.Diff(map[uint64]map[model.Pool]uint64{99: {model.DRAM: 32}}, b.Now(time.Unix(1001, 0))); diff != "" {
		t.Error(diff)
	}
}

// Processes of a run that held memory of a chip at once may have held the sum of it,
// and those that came one after the other did not. The same holds for all chips.
func TestPeaksOfSeveral(t *testing.T) {
	const mib = 1 << 20
	started := time.Unix(1000, 0)
	process := func(pid int, peak uint64, from, to time.Duration, chips ...int) *ledgerfile.Ledger {
		l := &ledgerfile.Ledger{PID: pid, Chips: []ledgerfile.Chip{{ID: 11}, {ID: 12}}, Lists: []ledgerfile.List{{}}}
		for _, chip := range chips {
			l.Lists = append(l.Lists, ledgerfile.List{
				State: ledgerfile.Closed, Pool: ledgerfile.DRAM, Banks: 8, Chips: []int{chip}, Made: started.Add(from), Closed: started.Add(to),
				Peak: ledgerfile.Sum{Bytes: peak, Blocks: 1}, Total: ledgerfile.Sum{Bytes: peak, Blocks: 1}, Capacity: 4 * peak,
			})
		}
		return l
	}
	for name, c := range map[string]struct {
		list   []*ledgerfile.Ledger
		peak   uint64
		bound  string
		most   uint64
		within [3]runs.Limit // of 8, 24 and 40 MiB
	}{
		"one":                     {[]*ledgerfile.Ledger{process(1, 2*mib, 0, 5, 0)}, 16 * mib, "exact", 0, [3]runs.Limit{runs.Exceeded, runs.Within, runs.Within}},
		"two at once":             {[]*ledgerfile.Ledger{process(1, 2*mib, 0, 5, 0), process(2, 2*mib, 3, 6, 0)}, 16 * mib, "at_least", 32 * mib, [3]runs.Limit{runs.Exceeded, runs.Uncertain, runs.Within}},
		"two after each other":    {[]*ledgerfile.Ledger{process(1, 1*mib, 0, 5, 0), process(2, 2*mib, 5, 6, 0)}, 16 * mib, "exact", 0, [3]runs.Limit{runs.Exceeded, runs.Within, runs.Within}},
		"a third while the first": {[]*ledgerfile.Ledger{process(1, 1*mib, 0, 9, 0), process(2, 2*mib, 5, 6, 0), process(3, 1*mib, 7, 8, 0)}, 16 * mib, "at_least", 32 * mib, [3]runs.Limit{runs.Exceeded, runs.Uncertain, runs.Within}},
		"two chips":               {[]*ledgerfile.Ledger{process(1, 1*mib, 0, 9, 0, 1)}, 8 * mib, "at_least", 16 * mib, [3]runs.Limit{runs.Uncertain, runs.Within, runs.Within}},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(started)
			for _, l := range c.list {
				b.Add(string(rune('a'+l.PID)), l, false)
			}
			p := b.Report(started.Add(time.Second), nil).Run.Pools["dram"]
			if p.Peak != c.peak || p.PeakBound != c.bound || p.PeakMost != c.most {
				t.Errorf("%d %s, at most %d", p.Peak, p.PeakBound, p.PeakMost)
			}
			for i, limit := range []uint64{8 * mib, 24 * mib, 40 * mib} {
				if got := p.Within(limit); got != c.within[i] {
					t.Errorf("within %d: %v, want %v", limit, got, c.within[i])
				}
			}
		})
	}
}

// Chips have their devices: the only chip of one has its memory, of others each has
// its own, and chips of other hosts are behind none.
func TestDevicesOfARun(t *testing.T) {
	host := &model.Snapshot{Devices: []model.Device{
		{Index: 3, BusID: "0000:03:00.0", Board: model.Value("p150a"), Chips: []model.Chip{{ID: model.Value[uint64](13)}}},
		{Index: 4, Board: model.Value("n300"), Chips: []model.Chip{{ID: model.Value[uint64](14), Name: "L"}, {ID: model.Value[uint64](15), Name: "R"}}},
	}}
	l := &ledgerfile.Ledger{PID: 7, Chips: []ledgerfile.Chip{{ID: 13, Logical: 2}, {ID: 15, Logical: 1}, {ID: 99, Logical: 0}}, Lists: []ledgerfile.List{{}}}
	for i := range 4 {
		list := ledgerfile.List{State: ledgerfile.Closed, Pool: ledgerfile.L1, Banks: 1, Peak: ledgerfile.Sum{Bytes: 5, Blocks: 1}, Total: ledgerfile.Sum{Bytes: 5, Blocks: 1}}
		if i < 3 {
			list.Chips = []int{i}
		}
		l.Lists = append(l.Lists, list)
	}
	b := NewBuilder(time.Unix(1000, 0))
	b.Add("a", l, false)
	if !b.Placed(host) {
		t.Error("all chips of the host are known, and one that is not found is awaited")
	}
	unknown := &model.Snapshot{Devices: append(slices.Clone(host.Devices), model.Device{Index: 5})}
	if b.Placed(unknown) {
		t.Error("a device may have the chip, and it is not awaited")
	}
	got := []string{}
	r := b.Report(time.Unix(1001, 0), host).Run
	for d, c := range r.Chips() {
		logical := -1
		if c.Logical != nil {
			logical = *c.Logical
		}
		got = append(got, fmt.Sprintf("%d %s %s%s %s, number %d: %d", d.Index, d.Board, c.ID, c.Name, d.BusID, logical, c.Pools["l1"].Peak))
	}
	want := []string{"-1   , number -1: 5", "-1  99 , number 0: 5", "3 p150a 13 0000:03:00.0, number -1: 5", "4 n300 15R , number 1: 5"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if p := r.Devices[2].Pools["l1"]; r.Devices[2].Index != 4 || p.Peak != 5 || p.Blocks.Allocated.Blocks != 1 {
		t.Errorf("%+v", r.Devices[2])
	}
}
