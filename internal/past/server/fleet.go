package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/base/version"
	prom "github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/node/daemon"
	"github.com/ttmon/ttmon/internal/past/fleet"
	"github.com/ttmon/ttmon/internal/past/httpguard"
	"github.com/ttmon/ttmon/internal/past/page"
	"github.com/ttmon/ttmon/internal/view/web"
)

// Fleet is where the page asks about other hosts.
type Fleet struct {
	Prometheus string `toml:"prometheus" comment:"A Prometheus, Thanos, Mimir or VictoriaMetrics that has the metrics of many hosts; empty: the page shows this host only."`
	HostLabel  string `toml:"host_label" comment:"The label that tells hosts apart; empty: host, or instance where there is none."`
	NodeURL    string `toml:"node_url" comment:"The address of a host's own page: {instance} and {host} stand for its labels, as in https://{host}:9108/."`
	TokenFile  string `toml:"token_file" comment:"A file with a bearer token for it."`
}

func (c *Fleet) check() error {
	_, err := c.server()
	return err
}

// server answers for the fleet; nil where there is none.
func (c *Fleet) server() (*fleet.Server, error) {
	if c.Prometheus == "" {
		return nil, nil
	}
	token := os.Getenv("TTMON_PROMETHEUS_TOKEN")
	if c.TokenFile != "" {
		b, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return nil, fmt.Errorf("fleet.token_file: %w", err)
		}
		token = strings.TrimSpace(string(b))
	}
	p, err := prom.NewPrometheus(c.Prometheus, token)
	if err != nil {
		return nil, fmt.Errorf("fleet.prometheus: %w", err)
	}
	s, err := fleet.New(fleet.Options{Prometheus: p, Label: c.HostLabel, Page: c.NodeURL})
	if err != nil {
		return nil, fmt.Errorf("fleet: %w", err)
	}
	return s, nil
}

// fleetCalls are what handler answers.
var fleetCalls = []string{"/v1/fleet", "/v1/fleet/cells", "/v1/fleet/links"}

// calls are those that are answered here.
func (c *Fleet) calls() []string {
	if c.Prometheus == "" {
		return nil
	}
	return fleetCalls
}

// serve has them answered below /api.
func (c *Fleet) serve(mux *http.ServeMux) {
	h := http.StripPrefix("/api", c.handler())
	for _, call := range fleetCalls {
		mux.Handle("GET /api"+call, h)
	}
}

// handler answers for the fleet, or says that there is none.
func (c *Fleet) handler() http.Handler {
	s, err := c.server()
	if err != nil || s == nil {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			writeJSON(w, http.StatusNotFound, map[string]any{"error": "this server knows its own host only: set fleet.prometheus in its configuration, or run ttmon fleet --serve"})
		})
	}
	return s.Handler()
}

func writeJSON(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

// ServeFleet serves the page for a fleet alone, without a host of its own, until
// ctx is done. It prints the address to out.
func ServeFleet(ctx context.Context, c *Config, out io.Writer, log *slog.Logger) error {
	if c.Fleet.Prometheus == "" {
		return daemon.Usage(errors.New("no address of Prometheus: use --prometheus URL"))
	}
	if err := c.Fleet.check(); err != nil {
		return daemon.Usage(err)
	}
	if err := c.Listen.check(); err != nil {
		return daemon.Usage(err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.Listen.Address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	mux := http.NewServeMux()
	c.Fleet.serve(mux)
	mux.Handle("GET /api/v1/metrics", http.StripPrefix("/api", page.Static()))
	mux.Handle("GET /api/v1/words", http.StripPrefix("/api", page.Static()))
	mux.HandleFunc("GET /api/v1/version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"name": "ttmon-server fleet", "version": version.Version, "api": []string{"v1"}, "calls": append(slices.Clone(fleetCalls), "/v1/metrics", "/v1/words")})
	})
	mux.HandleFunc("GET /api/", func(w http.ResponseWriter, r *http.Request) {
		writeJSON(w, http.StatusNotFound, map[string]any{"error": "this server serves a fleet only"})
	})
	mux.Handle("GET /{$}", http.RedirectHandler("/fleet", http.StatusFound))
	mux.Handle("/", web.Handler())
	scheme := "http"
	if c.Listen.tls() {
		scheme = "https"
	}
	fmt.Fprintf(out, "the fleet is at %s://%s/fleet\n", scheme, l.Addr())
	return serveHTTP(ctx, httpguard.NewListener(l, maxHTTPConns), mux, c.Listen, log)
}
