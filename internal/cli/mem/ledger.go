package mem

import (
	"context"
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/callsite"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
)

// fromLedger answers from the ledger of a process.
func fromLedger(h *host.Host, p track.Process, snap *model.Snapshot) *Answer {
	a := &Answer{Processes: []*blocks.Process{p.State}, Snapshot: snap, Time: time.Now(), sites: callsite.Sites(p.Ledger)}
	a.Place, a.Tensor = bankmap.CallSites(a.sites)
	a.Refresh = func(_ context.Context) bank.Answer {
		answer := bank.Answer{At: time.Now(), Options: bankmap.Options{Title: title(snap, p.PID), Chip: words.ChipNames(snap)}}
		now, ok := h.Ledger(model.ProcessID{PID: p.PID, StartTicks: p.Start})
		if !ok {
			answer.Err = fmt.Errorf("process %d has exited", p.PID)
			return answer
		}
		answer.Process = now.State
		answer.Options.Place, answer.Options.Tensor = bankmap.CallSites(callsite.Sites(now.Ledger))
		return answer
	}
	return a
}

// nextOf is a snapshot, or an empty one where there is none soon.
func nextOf(h *host.Host) *model.Snapshot {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	snap, err := h.Next(ctx)
	if err != nil {
		return &model.Snapshot{}
	}
	return snap
}

// fromLedgers answers for the processes that use the chosen devices, if all of them
// keep a complete ledger, or some do and no ttmond knows the others; nil: ttmond has to
// answer.
func (q Question) fromLedgers(ctx context.Context, h *host.Host, some bool) (*Answer, error) {
	snap, err := h.Next(ctx)
	if err != nil {
		return nil, nil // the next to answer says why
	}
	chosen, err := q.Only.From(snap)
	if err != nil {
		return nil, err
	}
	var found []track.Process
	for i := range chosen.Processes {
		if p, ok := h.Ledger(chosen.Processes[i].ID()); ok && (some || p.State.Complete()) {
			found = append(found, p)
		} else if !some {
			return nil, nil
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return fromLedger(h, found[0], snap), nil
	}
	a := &Answer{Snapshot: snap, Time: time.Now()} // a block's call site is a number in its own ledger
	for _, p := range found {
		a.Processes = append(a.Processes, p.State)
	}
	return a, nil
}
