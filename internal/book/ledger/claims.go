package ledger

import (
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// Account is when the ledger started to receive all events.
type Account struct {
	Ticks uint64    // processes that started before, in clock ticks after boot, may have held something already
	Since time.Time // the same moment
}

// Claims returns what the reporters say about memory. visible returns the
// TT_VISIBLE_DEVICES of a reporter, empty if it has none or may not be read; a
// reporter numbers its devices itself.
func (l *Ledger) Claims(a Account, visible func(model.ProcessID) string) claim.Set {
	set := claim.Set{Source: model.FromSocket}
	holdings := l.Processes()
	for i := range holdings {
		h := &holdings[i]
		if len(h.Devices) == 0 {
			continue
		}
		doubts := h.doubts(a)
		env := visible(h.ProcessID)
		for j := range h.Devices {
			u := &h.Devices[j]
			set.Held = append(set.Held, claim.Held{
				Process: h.ProcessID,
				Chip:    claim.Chip{ByNumber: true, Number: int(u.Device), Visible: env},
				Bytes:   u.figures(doubts), CB: model.CBReported, Doubts: doubts,
				Partial: model.WorstBound(doubts) != model.Exact,
			})
		}
		set.Known = append(set.Known, h.known())
	}
	return set
}

// doubts are why the ledger may have missed events of a process.
func (h *Holding) doubts(a Account) (list []model.Doubt) {
	if h.StartTicks <= a.Ticks { // in the same tick, either may have been first
		list = append(list, model.Doubt{Kind: model.ReportLate, Detail: a.Since.UTC().Format(time.RFC3339)})
	}
	if h.Counters.OverLimit > 0 || h.Counters.OverCapacity > 0 {
		list = append(list, model.Doubt{Kind: model.ReportOverLimit})
	}
	if n := h.Counters.RejectedFrames; n > 0 {
		list = append(list, model.Doubt{Kind: model.ReportRejected, Count: int(n)})
	}
	return list
}

// figures are the pools of one use. A pool that this process never reported
// anything of is not known to be empty where not every client reports it.
func (u *Use) figures(doubts []model.Doubt) (b model.PoolBytes) {
	for _, pool := range model.Pools() {
		if (pool == model.CB || pool == model.Kernel) && u.Peak[pool] == 0 {
			continue
		}
		b[pool] = model.ExactBytes(u.Bytes[pool]).Doubted(model.WorstBound(doubts))
	}
	return b
}

// known is what the ledger itself knows about a reporter.
func (h *Holding) known() model.Process {
	p := model.Process{
		PID: h.PID, StartTicks: h.StartTicks, State: model.Running,
		UID: model.Value(h.UID), User: model.Value(fmt.Sprint(h.UID)), Name: model.Value(h.Name),
	}
	if h.PID == 0 {
		p.State = model.Hidden
	}
	return p
}
