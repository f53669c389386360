package node

import (
	"path/filepath"

	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// newLines is what keeps the lines of code of processes that have exited.
func newLines(d *ttmond) *atpeak.Store {
	return atpeak.Open(filepath.Join(d.cfg.StateDir, "lines"), atpeak.DefaultLimits, d.log)
}

// exited keeps what the ledger of a process says of its lines.
func (b *background) exited(x track.Exited) {
	if b.lines != nil {
		b.lines.Exited(x.ID, x.UID, x.Ledger)
	}
}

// ledgerOf is the ledger of a process that runs, as it was last read; nil: there is
// none.
func (d *ttmond) ledgerOf(id model.ProcessID) (l *ledgerfile.Ledger, uid int) {
	uid, err := proc.Owner(hostfs.Root{}, id.PID)
	if err != nil {
		return nil, 0
	}
	// The pid may have had another process when its owner was asked for.
	if st, err := proc.ReadStat(hostfs.Root{}, id.PID); err != nil || st.Start != id.StartTicks {
		return nil, 0
	}
	for _, p := range d.collector.collector.Ledgers() {
		if p.PID == id.PID && p.Start == id.StartTicks {
			return p.Ledger, uid
		}
	}
	return nil, 0
}
