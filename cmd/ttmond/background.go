package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/hostfs"
	"github.com/ttmon/ttmon/internal/ledger"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/allocsock"
)

// background makes snapshots and publishes them.
type background struct {
	interval  time.Duration
	log       *slog.Logger
	collector *collect.Collector
	latest    atomic.Pointer[model.Snapshot]
	devices   atomic.Pointer[[]allocsock.DeviceInfo]
}

func newBackground(c config, log *slog.Logger) *background {
	return &background{
		interval:  c.Collect.Interval.Duration,
		log:       log,
		collector: collect.New(hostfs.At(c.Root), collect.Options{}),
	}
}

// run collects until ctx is done.
func (b *background) run(ctx context.Context, l *ledger.Ledger) error {
	defer b.collector.Close()
	tick := time.NewTicker(b.interval)
	defer tick.Stop()
	for {
		b.collect(ctx, l)
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
	}
}

func (b *background) collect(ctx context.Context, _ *ledger.Ledger) {
	s := b.collector.Collect(ctx)
	s.Source = model.Daemon
	b.latest.Store(s)
	infos := deviceInfos(s)
	b.devices.Store(&infos)
}

// deviceInfo is what the allocation server says about the chips.
func (b *background) deviceInfo() []allocsock.DeviceInfo {
	if p := b.devices.Load(); p != nil {
		return *p
	}
	return nil
}

func deviceInfos(*model.Snapshot) []allocsock.DeviceInfo { return nil }

func (d *ttmond) serveAPI(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
