package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/runreport"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/bankmap"
	"github.com/ttmon/ttmon/internal/view/runtext"
	"github.com/ttmon/ttmon/internal/view/tui/bank"
	"github.com/ttmon/ttmon/internal/view/words"
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
func (m *memCmd) runLedger(h *host, p track.Process, q *bankmap.Wanted) error {
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
		return m.printJSON(found, q, runreport.Sites(p.Ledger))
	}
	if _, _, terminal := size(m.stdout); terminal && q == nil && !m.once && !m.plain {
		return m.showBlocks(h, m.askLedger(p, snap))
	}
	if err := m.printBlocks(found, snap, q); err != nil {
		return err
	}
	o, err := m.textOptions(m.stdout)
	if err != nil {
		return err
	}
	return m.printText(held(p, snap, o.ASCII))
}

// askLedger answers the screen from the ledger of a process.
func (m *memCmd) askLedger(p track.Process, snap *model.Snapshot) func(context.Context) bank.Answer {
	return func(context.Context) bank.Answer {
		answer := bank.Answer{At: time.Now(), Options: bankmap.Options{Title: title(snap, p.PID), Chip: words.ChipNames(snap)}}
		now, ok := m.fromLedger(p.PID)
		if !ok || now.Start != p.Start {
			answer.Err = fmt.Errorf("process %d has ended", p.PID)
			return answer
		}
		answer.Process = now.State
		text := held(now, snap, m.ascii || asciiLocale(m.getenv))
		answer.More = strings.Split(strings.TrimRight(string(text), "\n"), "\n")
		return answer
	}
}

// held is who holds what in a process, by tag and line.
func held(p track.Process, snap *model.Snapshot, ascii bool) []byte {
	b := runreport.NewBuilder(p.Ledger.Started)
	b.Add(p.Path, p.Ledger, true)
	return runtext.AppendHeld(nil, b.Report(), words.ChipNames(snap), runtext.Options{ASCII: ascii})
}
