package mem

import (
	"context"
	"fmt"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
	"github.com/ttmon/ttmon/internal/view/words"
)

// fromLedger answers from the ledger of a process.
func fromLedger(h *host.Host, p track.Process) *Answer {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	snap, err := h.Next(ctx)
	if err != nil {
		snap = &model.Snapshot{}
	}
	a := &Answer{Processes: []*blocks.Process{p.State}, Snapshot: snap, Time: time.Now(), ledger: &p}
	a.Place, a.Tensor = bankmap.CallSites(runreport.Sites(p.Ledger))
	a.Refresh = func(_ context.Context, ascii bool) bank.Answer {
		answer := bank.Answer{At: time.Now(), Options: bankmap.Options{Title: title(snap, p.PID), Chip: words.ChipNames(snap), ASCII: ascii}}
		now, ok := h.Ledger(model.ProcessID{PID: p.PID, StartTicks: p.Start})
		if !ok {
			answer.Err = fmt.Errorf("process %d has exited", p.PID)
			return answer
		}
		answer.Process = now.State
		answer.Options.Place, answer.Options.Tensor = bankmap.CallSites(runreport.Sites(now.Ledger))
		return answer
	}
	return a
}
