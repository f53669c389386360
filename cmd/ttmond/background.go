package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/proc"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// background makes snapshots and publishes them.
type background struct {
	interval  atomic.Int64  // ns
	changed   chan struct{} // the interval has
	log       *slog.Logger
	collector *collect.Collector
	feed      api.Feed
	devices   atomic.Pointer[[]allocsock.DeviceInfo]

	// Reporters are processes of our own pid namespace, so they are looked at
	// in our own /proc, wherever the collector's root is.
	reporters *proc.Reader
	visible   map[ledger.Key]string // TT_VISIBLE_DEVICES, which does not change
}

func newBackground(c config, log *slog.Logger) *background {
	b := &background{
		changed:   make(chan struct{}, 1),
		log:       log,
		collector: collect.New(hostfs.At(c.Root), collect.Options{}),
		reporters: proc.New(hostfs.Root{}),
		visible:   map[ledger.Key]string{},
	}
	b.setInterval(c.Collect.Interval.Duration)
	return b
}

func (b *background) setInterval(d time.Duration) {
	b.interval.Store(int64(d))
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// run collects until ctx is done. since tells how long the ledger has listened.
func (b *background) run(ctx context.Context, l *ledger.Ledger, since func() allocsock.Since) error {
	defer b.collector.Close()
	tick := time.NewTicker(time.Duration(b.interval.Load()))
	defer tick.Stop()
	for {
		b.collect(ctx, l, since())
		select {
		case <-ctx.Done():
			return nil
		case <-b.changed:
			tick.Reset(time.Duration(b.interval.Load()))
		case <-tick.C:
		}
	}
}

// collect makes one snapshot. The collector keeps its own deadline.
func (b *background) collect(ctx context.Context, l *ledger.Ledger, since allocsock.Since) {
	s := b.collector.Collect(ctx)
	s.Source = model.Daemon
	infos := deviceInfos(s)
	b.devices.Store(&infos)
	ledger.Reconcile(s, b.reports(s, l.Processes(), since))
	b.feed.Publish(s)
}

// deviceInfo is what the allocation server says about the chips.
func (b *background) deviceInfo() []allocsock.DeviceInfo {
	if p := b.devices.Load(); p != nil {
		return *p
	}
	return nil
}

// deviceInfos describes the chips in the order in which tt-metal numbers them.
func deviceInfos(s *model.Snapshot) (infos []allocsock.DeviceInfo) {
	for _, at := range ledger.ChipOrder(s.Devices) {
		d := &s.Devices[at.Device]
		info := allocsock.DeviceInfo{Arch: allocsock.ArchNumber(d.Arch)}
		if at.Chip < len(d.Chips) {
			m := &d.Chips[at.Chip].Memory
			info.DRAMBytes, info.L1Bytes = m.Pools[model.DRAM].Total.V, m.Pools[model.L1].Total.V
		}
		if card, ok := board.ByCard(d.Board.V); ok {
			info.DRAMChannels = uint32(card.Banks)
			info.DRAMPerChannel = uint32(min(card.BankBytes, 1<<32-1))
			info.L1PerCore = uint32(card.L1PerCore)
		}
		infos = append(infos, info)
	}
	return infos
}

// reports adds to what processes reported what is needed to place it, and
// adds the reporters that have no device open to the snapshot.
func (b *background) reports(s *model.Snapshot, holdings []ledger.Holding, since allocsock.Since) []ledger.Report {
	known := map[ledger.Key]*model.Process{}
	for i := range s.Processes {
		p := &s.Processes[i]
		known[ledger.Key{PID: p.PID, Start: p.StartTicks}] = p
	}
	b.reporters.Begin()
	defer b.reporters.End()
	b.addStrangers(s, holdings, known)
	reports := make([]ledger.Report, len(holdings))
	seen := map[ledger.Key]string{}
	for i, h := range holdings {
		reports[i] = ledger.Report{Holding: h, Visible: b.visibleDevices(h.Key), Incomplete: incomplete(&h, since)}
		seen[h.Key] = reports[i].Visible
	}
	b.visible = seen
	return reports
}

func (b *background) addStrangers(s *model.Snapshot, holdings []ledger.Holding, known map[ledger.Key]*model.Process) {
	var pids []int
	for i := range holdings {
		if h := &holdings[i]; h.PID != 0 && len(h.Devices) > 0 && known[h.Key] == nil {
			pids = append(pids, h.PID)
		}
	}
	if len(pids) == 0 {
		return
	}
	for _, p := range b.reporters.Describe(pids) {
		if p.State == model.Running {
			s.Processes = append(s.Processes, p)
		}
	}
	for i := range s.Processes { // appending may have moved them
		p := &s.Processes[i]
		known[ledger.Key{PID: p.PID, Start: p.StartTicks}] = p
	}
}

func (b *background) visibleDevices(k ledger.Key) string {
	if v, ok := b.visible[k]; ok {
		return v
	}
	const variable = "TT_VISIBLE_DEVICES"
	p, err := b.reporters.Process(k.PID)
	if err != nil || p.Start != k.Start {
		return "" // it has ended
	}
	env, err := b.reporters.Environ(p, func(key string) bool { return key == variable })
	if err != nil {
		return "" // another user's, and we are not root
	}
	return env[variable]
}

// incomplete says why the ledger may not have heard everything of a process.
func incomplete(h *ledger.Holding, since allocsock.Since) string {
	switch {
	case h.Start < since.Ticks:
		return "it is older than ttmond's account: what it allocated before " + since.Time.Format("15:04:05") + " is not in it"
	case h.Counters.OverLimit > 0:
		return "it has more buffers than ttmond keeps account of (alloc.max_buffers)"
	case h.Counters.RejectedFrames > 0:
		return "some of its reports could not be understood"
	default:
		return ""
	}
}
