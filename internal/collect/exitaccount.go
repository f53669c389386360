package collect

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// accountPlace is where memory is held, as model.Peak has it.
type accountPlace struct {
	device int
	chip   uint64
	pool   model.Pool
}

// accountOf is what the last ledger of a process says of its memory; nil: it allocated
// none, or kept L1 per core and nothing else.
func accountOf(s *model.Snapshot, x *track.Exited) *model.Account {
	l := x.Ledger
	devices := map[uint64]int{}
	for i := range s.Devices {
		for k := range s.Devices[i].Chips {
			if id, ok := s.Devices[i].Chips[k].ID.Get(); ok {
				devices[id] = s.Devices[i].Index
			}
		}
	}
	lists, on := map[accountPlace][]int{}, map[accountPlace]map[int]uint64{} // lists of a place, and on how many chips of it
	bound := ledgerBound(l)
	out := &model.Account{UID: x.UID, Name: l.Comm, Start: l.Started, Last: l.Started}
	for i := range l.Lists {
		list := &l.Lists[i]
		pool, ok := blocks.PoolOf(list.Pool)
		if list.State == ledgerfile.Unused || !ok || list.Total.Blocks == 0 || pool == model.L1 && l.Flags&ledgerfile.PerCore != 0 {
			continue
		}
		ids := blocks.ChipsOf(l, list)
		if len(ids) == 0 || list.Inherited || list.Late { // it may add to what the others held
			bound = max(bound, model.AtLeast)
		}
		for _, t := range []time.Time{list.Made, list.PeakTime, list.Closed} {
			if t.After(out.Last) {
				out.Last = t
			}
		}
		for _, id := range ids {
			device, known := devices[id]
			if !known {
				device = model.NoDevice
			}
			for _, at := range []accountPlace{{model.AllDevices, 0, pool}, {device, 0, pool}, {device, id, pool}} {
				if on[at] == nil {
					on[at] = map[int]uint64{}
				}
				if on[at][i]++; on[at][i] == 1 {
					lists[at] = append(lists[at], i)
				}
			}
		}
	}
	for _, at := range slices.SortedFunc(maps.Keys(lists), func(a, b accountPlace) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.chip, b.chip), cmp.Compare(a.pool, b.pool))
	}) {
		if p := blocks.PeakOf(l, lists[at], func(list int) uint64 { return on[at][list] }); p.List >= 0 {
			out.Peaks = append(out.Peaks, model.Peak{Device: at.device, ChipID: at.chip, Pool: at.pool.String(), Bytes: model.BoundBytes(p.Bytes, max(p.Bound, bound)), At: p.At})
		}
	}
	if len(out.Peaks) == 0 {
		return nil
	}
	return out
}

// ledgerBound is what the peaks of a ledger are at best.
func ledgerBound(l *ledgerfile.Ledger) model.Bound {
	switch {
	case l.Unknown > 0: // events contradict each other
		return model.Unsure
	case l.Flags&ledgerfile.Late != 0 || l.Unmatched > 0: // something was allocated before, or elsewhere
		return model.AtLeast
	}
	return model.Exact
}

// addAccounts takes in what the ledgers of processes that have exited say. A process
// that no snapshot has seen with a device has only that. Its ledger is its user's word,
// as every ledger is, so such processes have half of the room at most.
func (e *exits) addAccounts(s *model.Snapshot, list []track.Exited) {
	for i := range list {
		x := &list[i]
		a := accountOf(s, x)
		if a == nil || x.ID.PID <= 0 {
			continue
		}
		at := slices.IndexFunc(e.recent, func(r model.Exit) bool { return r.ID == x.ID })
		if at < 0 {
			here := slices.ContainsFunc(a.Peaks, func(p model.Peak) bool { return p.Device >= 0 })
			if _, uses := e.before[x.ID]; !uses && (!here || len(e.recent) >= maxExits/2) {
				continue
			}
			at = len(e.recent)
			e.recent = append(e.recent, e.exit(x.ID, s.Time))
		}
		e.recent[at].Account = a
	}
}
