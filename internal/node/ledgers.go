package node

import (
	"time"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/runreport"
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
	of := api.BlocksOf{Process: found.Process, UID: uid}
	if p := found.Ledger; p != nil {
		of.Places = func() *runreport.Report {
			b := runreport.NewBuilder(p.Ledger.Started)
			b.Add(p.Path, p.Ledger, true)
			return b.Report(time.Now())
		}
	}
	return of, true
}
