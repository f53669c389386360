package node

import (
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/node/api"
)

// findBlocks finds the allocators of a process, as the collector believes them.
func (d *ttmond) findBlocks(pid int) (api.BlocksOf, bool) {
	uid, err := proc.Owner(hostfs.Root{}, pid)
	if err != nil || pid <= 0 {
		return api.BlocksOf{}, false
	}
	found, ok := d.collector.collector.Blocks(pid)
	if !ok {
		return api.BlocksOf{}, false
	}
	if p := found.Ledger; p != nil {
		return api.LedgerBlocks(found.Process, uid, p.Ledger), true
	}
	return api.BlocksOf{Process: found.Process, UID: uid}, true
}
