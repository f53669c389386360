package local

import (
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// exited keeps what the ledger of one of this user's processes says of its lines.
func (h *Host) exited(x track.Exited) { h.lines.Exited(x.ID, x.UID, x.Ledger) }

// Lines are the lines of code of a process of this user, at its peak.
func (h *Host) Lines(id model.ProcessID, began time.Time) (api.LinesOf, bool) {
	return api.FindLines(h.ledgerOf, h.lines)(id, began)
}

// ledgerOf is the ledger of a process that runs; nil: there is none. Ledgers of other
// users cannot be read.
func (h *Host) ledgerOf(id model.ProcessID) (*ledgerfile.Ledger, int) {
	for _, p := range h.collector.Ledgers() {
		if p.PID == id.PID && p.Start == id.StartTicks {
			return p.Ledger, os.Geteuid()
		}
	}
	return nil, 0
}
