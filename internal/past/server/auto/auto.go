// Package auto is the default host of a ttmon-server: the ttmond of this machine
// while one runs, and what this user can see while none does.
package auto

import (
	"context"
	"log/slog"
	"net"
	"sync/atomic"
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api"
	"github.com/ttmon/ttmon/internal/node/stream"
	"github.com/ttmon/ttmon/internal/past/server"
	"github.com/ttmon/ttmon/internal/past/server/follow"
	"github.com/ttmon/ttmon/internal/past/server/local"
)

// lookEvery is how often a ttmond is looked for while none runs, awayAfter how
// long one may be away before it is given up: a restart takes a second.
const (
	lookEvery = 2 * time.Second
	awayAfter = 30 * time.Second
)

// Host is whichever there is.
type Host struct {
	paths   []string
	local   func() *local.Host
	log     *slog.Logger
	current atomic.Pointer[present]
}

// present is the host of the moment: one of the two.
type present struct {
	server.Host
	follow *follow.Host
	local  *local.Host
}

// New returns the host of the first ttmond that listens at one of paths, or of
// local.
func New(paths []string, local func() *local.Host, log *slog.Logger) *Host {
	return &Host{paths: paths, local: local, log: log}
}

// Run implements server.Host.
func (h *Host) Run(ctx context.Context, sink server.Sink) error {
	for ctx.Err() == nil {
		if path := h.find(ctx); path != "" {
			f := follow.New(path, h.log)
			h.current.Store(&present{Host: f, follow: f})
			h.until(ctx, f, sink, func() bool { return f.Away() > awayAfter })
			continue
		}
		l := h.local()
		h.current.Store(&present{Host: l, local: l})
		h.until(ctx, l, sink, func() bool { return h.find(ctx) != "" })
	}
	return nil
}

// until runs a host until another takes its place.
func (h *Host) until(ctx context.Context, host server.Host, sink server.Sink, over func() bool) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = host.Run(ctx, sink) // it ends with ctx
	}()
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			if over() {
				cancel()
			}
		}
	}
}

// find returns the socket of a ttmond that listens; "" where there is none.
func (h *Host) find(ctx context.Context) string {
	for _, path := range h.paths {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "unix", path)
		if err == nil {
			c.Close()
			return path
		}
	}
	return ""
}

// State implements server.Host.
func (h *Host) State() (stream.State, bool) {
	if p := h.current.Load(); p != nil {
		return p.State()
	}
	return stream.State{}, false
}

// Check implements server.Host.
func (h *Host) Check(health *api.Health) {
	if p := h.current.Load(); p != nil {
		p.Check(health)
	}
}

// Serve implements server.Host.
func (h *Host) Serve(o *api.Options) {
	o.Upstream = func() api.Upstream {
		if p := h.current.Load(); p != nil && p.follow != nil {
			return p.follow.Upstream()
		}
		return nil
	}
	o.Blocks = func(pid int) (found api.BlocksOf, ok bool) {
		if l := h.now(); l != nil {
			return l.Blocks(pid)
		}
		return found, false
	}
	o.Lines = func(id model.ProcessID, began time.Time) (found api.LinesOf, ok bool) {
		if l := h.now(); l != nil {
			return l.Lines(id, began)
		}
		return found, false
	}
	o.Stale = func() ([]model.Leftover, bool) {
		if l := h.now(); l != nil {
			return l.Leftovers()
		}
		return nil, false
	}
	o.Topology = func(s *model.Snapshot) *model.Topology {
		if l := h.now(); l != nil {
			return l.Topology(s)
		}
		return nil
	}
}

// now is the local host, if that is the present one.
func (h *Host) now() *local.Host {
	if p := h.current.Load(); p != nil {
		return p.local
	}
	return nil
}
