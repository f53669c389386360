package host

import (
	"context"
	"errors"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/source/track"
	"github.com/ttmon/ttmon/internal/view/tui/act"
)

// errNoAllocators: neither a ledger nor a ttmond knows the allocators.
var errNoAllocators = errors.New("its allocators are not known")

// Allocators finds the allocators of a process: in the ledger that it keeps
// itself, or as a ttmond sees them; collect decides which is believed. As with
// Buffers, it has a connection of its own.
func (h *Host) Allocators(ctx context.Context, id model.ProcessID) (collect.Allocators, error) {
	var list []collect.Allocators
	if p, ok := h.Ledger(id); ok {
		list = append(list, collect.Allocators{Source: model.FromTrack, Process: p.State, Ledger: &p})
	}
	err := errNoAllocators
	if path := h.Socket(); path != "" && (len(list) == 0 || !list[0].Process.Complete()) {
		c := client.New(path)
		defer c.Close()
		var p *blocks.Process
		if p, _, err = c.Blocks(ctx, id.PID); err == nil {
			list = append(list, collect.Allocators{Source: model.FromUprobe, Process: p})
		}
	}
	if best, ok := collect.Best(list...); ok {
		return best, nil
	}
	return collect.Allocators{}, err
}

// Ledger reads the ledger that a process keeps itself. A start time of 0 stands
// for any.
func (h *Host) Ledger(id model.ProcessID) (p track.Process, ok bool) {
	if h.Named || h.instead != nil || h.Root != (hostfs.Root{}) || id.PID <= 0 {
		return p, false
	}
	r := track.NewReader(track.Options{})
	defer r.Close()
	for _, p := range r.Read([]model.ProcessID{id}).Processes {
		if p.PID == id.PID && (id.StartTicks == 0 || p.Start == id.StartTicks) {
			return p, true
		}
	}
	return p, false
}

// Blocks is Allocators for the screens.
func (h *Host) Blocks(ctx context.Context, t act.Target) (*blocks.Process, error) {
	a, err := h.Allocators(ctx, model.ProcessID{PID: t.PID, StartTicks: t.StartTicks})
	if err != nil {
		return nil, act.ErrUnknown
	}
	return a.Process, nil
}
