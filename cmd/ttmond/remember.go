package main

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/ttmon/ttmon/internal/api"
	"github.com/ttmon/ttmon/internal/budget"
	"github.com/ttmon/ttmon/internal/jobs"
	"github.com/ttmon/ttmon/internal/promapi"
	"github.com/ttmon/ttmon/internal/version"
	"github.com/ttmon/ttmon/internal/view/prom"
)

// remember starts everything that follows the snapshots: metrics, history,
// events, alerts, remote write, and the listener that serves them.
func (d *ttmond) remember(ctx context.Context, g *errgroup.Group) {
	g.Go(func() error { return d.collector.pods.follow(ctx) })
	if node := d.reloads.flags.nodeCondition; node != "" {
		g.Go(func() error { return d.tellNode(ctx, node) })
	}
	g.Go(func() error { return d.recorder.run(ctx, &d.collector.feed) })
	if d.archive != nil {
		g.Go(func() error { return d.archive.run(ctx, &d.collector.feed) })
		g.Go(func() error { d.collector.feed.Follow(ctx, d.held.Observe); return nil })
		g.Go(func() error {
			defer d.jobs.Close()
			d.collector.feed.Follow(ctx, d.jobs.Observe)
			return nil
		})
	}
	if d.alerts != nil {
		d.runAlerts(ctx, g)
	}
	g.Go(func() error { d.remotes.run(ctx); return nil })
	g.Go(func() error { return d.listen(ctx) })
}

// prepare makes what remembers, before anybody can ask for it.
func (d *ttmond) prepare() {
	d.recorder = newRecorder(d.cfg.Metrics, d.log, d.selfMetrics, func() time.Duration { return time.Duration(d.collector.interval.Load()) })
	d.remotes = d.newRemotes()
	if d.cfg.History.Enabled {
		d.archive = newArchive(d.cfg, d.log, d.recorder)
		d.jobs = jobs.Open(d.cfg.StateDir, func(err error) { d.log.Warn("jobs", "err", err) })
		if d.cfg.Alerts.Enabled {
			d.prepareAlerts()
		}
	}
}

// apiMemory is what the API tells of it.
func (d *ttmond) apiMemory() api.Memory {
	if d.archive == nil {
		return api.Memory{}
	}
	m := api.Memory{Events: d.archive.eventLog, Past: d.archive.at, Span: d.archive.span, Held: d.held.Points, Range: d.archive.ranges(), Jobs: d.jobs.Find}
	o := promapi.Options{Queryable: d.archive, User: api.UserOf, Lookback: d.archive.lookback, Version: version.Version}
	if d.alerts != nil {
		m.Alerts = d.apiAlerts
		o.Rules, o.Alerts = d.alerts.PrometheusRules, d.alerts.PrometheusAlerts
	}
	m.Prometheus = promapi.New(o)
	return m
}

// selfMetrics is how the daemon itself is doing.
func (d *ttmond) selfMetrics() *prom.Self {
	var limits []prom.Limit
	for _, b := range slices.Concat(d.api.Budgets(), d.server.Budgets(), []budget.State{d.ledger.Budget()}) {
		limits = append(limits, prom.Limit{Name: b.Name, Max: float64(b.All), Used: float64(b.Used), Dropped: float64(b.Refused)})
	}
	clients := []prom.Client{{Kind: "alloc", Count: int(d.server.Stats().Connections)}}
	for _, b := range d.api.Budgets() {
		if kind := map[string]string{"api_connections": "api", "api_watchers": "api_watch", "api_viewers": "page"}[b.Name]; kind != "" {
			clients = append(clients, prom.Client{Kind: kind, Count: int(b.Used)})
		}
	}
	if l := d.http.Load(); l != nil {
		s := l.Stats()
		limits = append(limits, prom.Limit{Name: "http_connections", Max: float64(s.Max), Used: float64(s.Open), Dropped: float64(s.Refused + s.Evicted)})
		clients = append(clients, prom.Client{Kind: "http", Count: s.Open})
	}
	if d.archive != nil {
		h := d.archive.stats()
		limits = append(limits, prom.Limit{Name: "history_series", Max: float64(d.cfg.History.MaxSeries), Used: float64(h.Series), Dropped: float64(h.Dropped)},
			prom.Limit{Name: "history_bytes", Max: float64(h.MaxBytes), Used: float64(h.Bytes)})
	}
	for _, r := range d.remotes.senders() {
		x := r.Stats()
		limits = append(limits, prom.Limit{Name: "remote_write_buffer_bytes " + r.Name(), Max: float64(x.MaxBytes), Used: float64(x.Bytes), Dropped: float64(x.Dropped)})
	}
	if d.outbox != nil {
		limits = append(limits, prom.Limit{Name: "alert_messages", Dropped: float64(d.outbox.Dropped())})
	}
	var sources []prom.Source
	for _, r := range d.collector.collector.Runs() {
		sources = append(sources, prom.Source{Name: r.Name, Duration: r.Took, OK: r.OK, LastOK: r.LastOK})
	}
	if s, ok := d.collector.pods.source(); ok {
		sources = append(sources, s)
	}
	return &prom.Self{
		Sources: sources,
		Limits:  limits,
		Clients: clients,
	}
}
