package main

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/view/prom"
)

// remember starts everything that follows the snapshots: metrics, history,
// events, alerts, remote write, and the listener that serves them.
func (d *ttmond) remember(ctx context.Context, g *errgroup.Group) {
	d.recorder = newRecorder(d.cfg, d.log, d.selfMetrics)
	g.Go(func() error { return d.recorder.run(ctx, &d.collector.feed) })
	g.Go(func() error { return d.listen(ctx) })
}

// selfMetrics is how the daemon itself is doing.
func (d *ttmond) selfMetrics() *prom.Self {
	st, led := d.server.Stats(), d.ledger.Stats()
	return &prom.Self{
		Limits: []prom.Limit{
			{Name: "buffers", Max: float64(d.cfg.Alloc.MaxBuffers), Used: float64(led.Buffers)},
		},
		Clients: []prom.Client{{Kind: "alloc", Count: int(st.Connections)}},
	}
}
