package main

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/runtext"
)

// fromLedger finds the ledger that a process keeps itself: then no daemon is
// needed, and tags and call sites are known.
func (m *memCmd) fromLedger(pid int) (p track.Process, found bool) {
	root, err := m.host()
	if err != nil || pid <= 0 || m.daemon != "" || root != (hostfs.Root{}) {
		return p, false
	}
	r := track.NewReader(track.Options{Root: root})
	defer r.Close()
	for _, p := range r.Read([]model.ProcessID{{PID: pid}}).Processes {
		if p.PID == pid {
			return p, true
		}
	}
	return p, false
}

// runLedger answers from the ledger of a process.
func (m *memCmd) runLedger(h *host, p track.Process, q *question) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	snap, err := h.Next(ctx)
	if err != nil {
		snap = &model.Snapshot{}
	}
	found := []*blocks.Process{p.State}
	switch {
	case m.blocks.report != "":
		return m.writeReports(p.State)
	case m.blocks.json:
		return m.printJSON(found, q)
	}
	if err := m.printBlocks(found, snap, q); err != nil {
		return err
	}
	o, err := m.textOptions(m.stdout)
	if err != nil {
		return err
	}
	b := runreport.NewBuilder(p.Ledger.Started)
	b.Add(p.Path, p.Ledger, true)
	report := b.Report()
	name := chipNames(snap)
	return m.output("").write(runtext.AppendHeld(nil, report, name, runtext.Options{ASCII: o.ASCII}))
}
