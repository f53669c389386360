// Package local is a ttmon-server's host where no ttmond runs: it collects what
// an ordinary user may see. That is the boards, this user's processes, and of the
// others what the kernel tells everybody.
package local

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/callsite/atpeak"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/node/eventlog/watch"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/past/server"
	"github.com/ttmon/ttmon/internal/source/track"
)

// Host collects by itself.
type Host struct {
	cfg       daemon.Collect
	root      hostfs.Root
	collector *collect.Collector
	lines     *atpeak.Store
	log       *slog.Logger
	hiding    atomic.Pointer[api.Hiding]
}

// ledgerBytes bounds the copies of this user's ledgers.
const ledgerBytes = 128 << 20

// New returns the host below a root directory. It keeps what has to survive a restart
// in a state directory.
func New(root, stateDir string, c daemon.Collect, conditions assess.Thresholds, log *slog.Logger) *Host {
	h := &Host{cfg: c, root: hostfs.At(root), log: log, lines: atpeak.Open(filepath.Join(stateDir, "lines"), atpeak.DefaultLimits, log)}
	h.collector = collect.New(hostfs.At(root), collect.Options{
		Timeout: c.Timeout.Duration, Thresholds: conditions, Exited: h.exited,
		Ledgers: track.Options{RunTimeout: time.Minute, Memory: budget.Limit{PerUID: ledgerBytes, All: ledgerBytes}},
	})
	return h
}

// Run implements server.Host.
func (h *Host) Run(ctx context.Context, sink server.Sink) error {
	defer h.collector.Close()
	var writer sync.WaitGroup
	defer writer.Wait()
	writer.Go(func() { h.lines.Run(ctx) })
	h.log.Info("no ttmond is running; collecting what this user can see")
	tick := time.NewTicker(h.cfg.Interval.Duration)
	defer tick.Stop()
	var watcher watch.Watcher
	for {
		hiding := readHiding()
		h.hiding.Store(&hiding)
		s := h.collector.Collect(ctx)
		if ctx.Err() != nil {
			return nil
		}
		sink.Snapshot(s, nil)
		if list := watcher.Next(s); len(list) > 0 {
			sink.Events(ctx, list)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

// readHiding is how this process sees /proc. Options that cannot be read hide.
func readHiding() api.Hiding {
	b, err := proc.HostMounts(hostfs.Root{})
	if err != nil {
		return api.Hiding{Level: 2, GID: -1}
	}
	return api.ParseHiding(b)
}

// State implements server.Host.
func (h *Host) State() (stream.State, bool) {
	hiding := h.hiding.Load()
	if hiding == nil {
		return stream.State{}, false
	}
	st := stream.State{Interval: h.cfg.Interval.Seconds(), Hiding: stream.Hiding(*hiding)}
	for _, r := range h.collector.Runs() {
		st.Self.Sources = append(st.Self.Sources, stream.Source{Name: r.Name, Duration: r.Took, OK: r.OK, LastOK: r.LastOK})
	}
	return st, true
}

// Check implements server.Host.
func (h *Host) Check(health *api.Health) {
	health.Warnings = append(health.Warnings, api.Problem{Part: "ttmond", Reason: "none runs: memory is that of this user's processes only"})
	for _, r := range h.collector.Runs() {
		health.AddRun(r.Name, r.Took, r.Since, time.Now(), 5*h.cfg.Interval.Duration+5*time.Second)
	}
}

// Serve implements server.Host.
func (h *Host) Serve(o *api.Options) {
	o.Stale, o.Topology, o.Blocks, o.Lines = h.Leftovers, h.Topology, h.Blocks, h.Lines
}

// Leftovers are what dead processes left in accounting regions.
func (h *Host) Leftovers() ([]model.Leftover, bool) { return h.collector.Leftovers() }

// Topology is how the devices of a snapshot are connected.
func (h *Host) Topology(s *model.Snapshot) *model.Topology { return collect.Topology(h.root, s) }

// Blocks is what the collector last read of the ledger that a process keeps.
func (h *Host) Blocks(pid int) (api.BlocksOf, bool) {
	uid, err := proc.Owner(hostfs.Root{}, pid)
	if err != nil || pid <= 0 {
		return api.BlocksOf{}, false
	}
	found, ok := h.collector.Blocks(pid)
	if !ok {
		return api.BlocksOf{}, false
	}
	if p := found.Ledger; p != nil {
		return api.LedgerBlocks(found.Process, uid, p.Ledger), true
	}
	return api.BlocksOf{Process: found.Process, UID: uid}, true
}
