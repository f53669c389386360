package collect

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// accountOf is what the last ledger of a process says of its memory; nil: it allocated
// none, or kept L1 per core and nothing else.
func accountOf(s *model.Snapshot, x *track.Exited) *model.Account {
	l := x.Ledger
	out := &model.Account{UID: x.UID, Name: l.Comm, Start: l.Started, Last: l.Started}
	for i := range l.Lists {
		list := &l.Lists[i]
		if _, ok := blocks.PoolOf(list.Pool); list.State == ledgerfile.Unused || !ok || list.Total.Blocks == 0 {
			continue
		}
		for _, t := range []time.Time{list.Made, list.PeakTime, list.Closed} {
			if t.After(out.Last) {
				out.Last = t
			}
		}
	}
	for _, x := range blocks.LedgerPools(l, s.DeviceOf) {
		if p := x.Peak; p.List >= 0 && x.Chip != blocks.UnknownChip {
			out.Peaks = append(out.Peaks, model.Peak{Device: x.Device, ChipID: x.Chip, Pool: x.Pool.String(), Bytes: model.BoundBytes(p.Bytes, p.Bound), At: p.At})
		}
	}
	if len(out.Peaks) == 0 {
		return nil
	}
	return out
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
