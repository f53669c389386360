package server

import (
	"context"
	"net/http"
	"os"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/book/ledger"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/past"
	"github.com/ttmon/ttmon/internal/past/page"
	"github.com/ttmon/ttmon/internal/past/promapi"
)

// Name is what the server calls itself.
const Name = "ttmon-server"

// newAPI makes the API, for all the ways to it.
func (s *Server) newAPI() *api.Server {
	o := api.Options{
		Name: Name, Feed: &s.feed, Ledger: ledger.New(ledger.Options{}), Version: version.Version, Log: s.log,
		Hiding: s.hiding, Interval: s.interval, Health: s.health, Address: s.pageAddress, Beside: s.cfg.Fleet.calls(),
		Dump:  func(string, int, bool) string { return "" },
		Dumps: func() []api.Dump { return nil },
	}
	if s.opt.Configure != nil {
		o.Reload = s.reload
	}
	var moments page.Moments
	if s.archive != nil {
		m := s.memory()
		m.Serve(&o)
		moments = m.Snapshot
	}
	moments.Serve(&o)
	s.host.Serve(&o)
	return api.New(o)
}

// memory is what the API answers about the past from.
func (s *Server) memory() past.Memory {
	m := past.Memory{Events: s.archive.eventLog, Past: s.archive.at, Span: s.archive.span, Held: s.archive.held, Range: s.archive.ranges(), Changed: newComparer(s.archive).find, Runs: s.runs.Find}
	o := promapi.Options{Queryable: s.archive, User: func(r *http.Request) int { return api.UserOf(r.Context()) }, Lookback: s.archive.lookback, Version: version.Version}
	if s.alerts != nil {
		m.Alerts = s.apiAlerts
		o.Rules, o.Alerts = s.alerts.PrometheusRules, s.alerts.PrometheusAlerts
	}
	m.Prometheus = promapi.New(o)
	return m
}

// health adds to the health of the API what the rest of the server knows.
func (s *Server) health(_ context.Context, h *api.Health) {
	h.PID = os.Getpid()
	if s.opt.Logs != nil {
		h.LostLines = s.opt.Logs.Lost()
	}
	s.host.Check(h)
	if s.archive != nil {
		s.archive.check(h, time.Now())
	}
}

// clientKinds are the budgets of the API that count clients, as the metric names them.
var clientKinds = map[string]string{"api_connections": "server_api", "api_watchers": "server_api_watch", "api_viewers": "page"}

// selfMetrics returns the metrics of ttmond itself, with those of the server added.
func (s *Server) selfMetrics() *stream.Self {
	st, _ := s.host.State()
	self := st.Self
	limits, clients := slices.Clip(self.Limits), slices.Clip(self.Clients) // ttmond's stay as they are
	for _, b := range s.api.Budgets() {
		limits = append(limits, stream.Limit{Name: "server_" + b.Name, Max: float64(b.All), Used: float64(b.Used), Dropped: float64(b.Refused)})
		if kind := clientKinds[b.Name]; kind != "" {
			clients = append(clients, stream.Client{Kind: kind, Count: int(b.Used)})
		}
	}
	if l := s.http.Load(); l != nil {
		st := l.Stats()
		limits = append(limits, stream.Limit{Name: "http_connections", Max: float64(st.Max), Used: float64(st.Open), Dropped: float64(st.Refused + st.Evicted)})
		clients = append(clients, stream.Client{Kind: "http", Count: st.Open})
	}
	if s.archive != nil {
		h := s.archive.stats()
		limits = append(limits, stream.Limit{Name: "history_series", Max: float64(s.cfg.History.MaxSeries), Used: float64(h.Series), Dropped: float64(h.Dropped)},
			stream.Limit{Name: "history_bytes", Max: float64(h.MaxBytes), Used: float64(h.Bytes)})
	}
	for _, r := range s.remotes.senders() {
		x := r.Stats()
		limits = append(limits, stream.Limit{Name: "remote_write_buffer_bytes " + r.Name(), Max: float64(x.MaxBytes), Used: float64(x.Bytes), Dropped: float64(x.Dropped)})
	}
	if s.outbox != nil {
		limits = append(limits, stream.Limit{Name: "alert_messages", Dropped: float64(s.outbox.Dropped())})
	}
	return &stream.Self{Sources: self.Sources, Limits: limits, Clients: clients}
}
