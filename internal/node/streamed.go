package node

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/stream"
)

// remember starts what follows the snapshots: the backlog for ttmon-server.
func (d *ttmond) remember(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return d.collector.pods.poll(ctx) })
	g.Go(func() error { d.backlog.Run(ctx, &d.collector.feed); return nil })
}

// streamed is what followers get beside the snapshots.
func (d *ttmond) streamed() *api.Stream {
	return &api.Stream{Events: d.backlog.Events, State: d.state, Instance: d.instance}
}

// state is what followers receive with each snapshot.
func (d *ttmond) state() stream.State {
	return stream.State{
		Interval: d.collector.pace.every().Seconds(), Hiding: stream.Hiding(d.hiding.get()), Self: d.selfMetrics(),
	}
}

// hidingCache remembers how /proc hides processes: followers are told with every
// snapshot, and the list of mounts of a busy node is long.
type hidingCache struct {
	mu   sync.Mutex
	last api.Hiding
	at   time.Time
}

const hidingEvery = 10 * time.Second

func (c *hidingCache) get() api.Hiding {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); c.at.IsZero() || now.Sub(c.at) > hidingEvery {
		c.last, c.at = readHiding(), now
	}
	return c.last
}

// selfMetrics is how the daemon itself is doing.
func (d *ttmond) selfMetrics() (self stream.Self) {
	budgets := d.api.Budgets()
	for _, b := range slices.Concat(budgets, d.server.Budgets(), d.watcher.budgets(), []budget.State{d.ledger.Budget()}) {
		self.Limits = append(self.Limits, stream.Limit{Name: b.Name, Max: float64(b.All), Used: float64(b.Used), Dropped: float64(b.Refused)})
	}
	self.Clients = []stream.Client{{Kind: "alloc", Count: int(d.server.Stats().Connections)}}
	for _, b := range budgets {
		if kind := map[string]string{"api_connections": "api", "api_watchers": "api_watch"}[b.Name]; kind != "" {
			self.Clients = append(self.Clients, stream.Client{Kind: kind, Count: int(b.Used)})
		}
	}
	for _, r := range d.collector.collector.Runs() {
		self.Sources = append(self.Sources, stream.Source{Name: r.Name, Duration: r.Took, OK: r.OK, LastOK: r.LastOK})
	}
	if s, ok := d.collector.pods.source(); ok {
		self.Sources = append(self.Sources, s)
	}
	return self
}
