package mem

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/callsite"
	"github.com/ttmon/ttmon/internal/host"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/runtext"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
	"github.com/ttmon/ttmon/internal/view/words"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// fromLedger answers from the ledger of a process.
func fromLedger(h *host.Host, p track.Process) *Answer {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	snap, err := h.Next(ctx)
	if err != nil {
		snap = &model.Snapshot{}
	}
	a := &Answer{Processes: []*blocks.Process{p.State}, Snapshot: snap, Time: time.Now(), ledger: &p, Place: placesOf(p.Ledger), Tensor: tensorsOf(p.Ledger)}
	a.Refresh = func(_ context.Context, ascii bool) bank.Answer {
		answer := bank.Answer{At: time.Now(), Options: bankmap.Options{Title: title(snap, p.PID), Chip: words.ChipNames(snap), ASCII: ascii}}
		now, ok := h.Ledger(model.ProcessID{PID: p.PID, StartTicks: p.Start})
		if !ok {
			answer.Err = fmt.Errorf("process %d has exited", p.PID)
			return answer
		}
		answer.Process, answer.Options.Place, answer.Options.Tensor = now.State, placesOf(now.Ledger), tensorsOf(now.Ledger)
		return answer
	}
	return a
}

// placesOf says where in the program each block of a ledger was asked for: by tag,
// and by the line that tells it from the others. Nil where nothing is known.
func placesOf(l *ledgerfile.Ledger) func(blocks.Block) string {
	var stacks [][]ledgerfile.Frame
	var live []int
	for i := range l.Sites {
		if s := &l.Sites[i]; s.Live.Blocks > 0 {
			stacks, live = append(stacks, l.Stack(s.Node)), append(live, i)
		}
	}
	names := map[uint32]string{}
	for n, line := range callsite.Lines(stacks) {
		name := words.Escape(l.Sites[live[n]].Tag)
		if line != (ledgerfile.Frame{}) {
			name = strings.TrimSpace(name + " " + runtext.Line(line) + " " + words.Escape(line.Function))
		}
		if name != "" {
			names[uint32(live[n])] = name
		}
	}
	if len(names) == 0 {
		return nil
	}
	return func(b blocks.Block) string { return names[b.Site] }
}

// tensorsOf names the tensors that the blocks of a ledger are for. Nil where
// nothing is known.
func tensorsOf(l *ledgerfile.Ledger) func(blocks.Block) string {
	for i := range l.Sites {
		if l.Sites[i].Tensor != "" && l.Sites[i].Live.Blocks > 0 {
			return func(b blocks.Block) string {
				if int(b.Site) >= len(l.Sites) {
					return ""
				}
				return words.Escape(l.Sites[b.Site].Tensor)
			}
		}
	}
	return nil
}
