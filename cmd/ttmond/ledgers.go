package main

import (
	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/runreport"
)

// findBlocks finds the allocators of a process: in the ledger that it keeps
// itself, which knows call sites too, or as they are watched through the kernel.
func (d *ttmond) findBlocks(pid int) (api.BlocksOf, bool) {
	uid, err := proc.Owner(hostfs.Root{}, pid)
	if err != nil || pid <= 0 {
		return api.BlocksOf{}, false
	}
	if of, ok := d.fromLedger(pid); ok {
		of.UID = uid
		return of, true
	}
	if find := d.watcher.find(); find != nil {
		return find(pid)
	}
	return api.BlocksOf{}, false
}

// fromLedger is what the collector last read of a process's ledger.
func (d *ttmond) fromLedger(pid int) (api.BlocksOf, bool) {
	p, ok := d.collector.collector.Ledger(pid)
	if !ok {
		return api.BlocksOf{}, false
	}
	places := func() *runreport.Report {
		b := runreport.NewBuilder(p.Ledger.Started)
		b.Add(p.Path, p.Ledger, true)
		return b.Report()
	}
	return api.BlocksOf{Process: p.State, Places: places}, true
}
