// Package doctor gathers what ttmon doctor examines, and packs it into a support
// bundle. The checks themselves are internal/view/doctor's.
package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/ttmon/ttmon/internal/base/version"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/collect"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/source/setup"
	checks "github.com/ttmon/ttmon/internal/view/doctor"
)

// JSON is the report for scripts.
func JSON(r *checks.Report) []byte {
	b, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		panic("BUG: a report that is no JSON: " + err.Error())
	}
	return b
}

// Subject gathers what is examined: this process's own view of the host, since
// that is what is asked about, and ttmond's word on itself.
func Subject(from host.Options) (*checks.Subject, error) {
	h, err := host.Open(from)
	if err != nil {
		return nil, err
	}
	defer h.Close()
	s := &checks.Subject{Root: os.Geteuid() == 0, Version: version.Version}
	said := make(chan checks.DaemonState, 1)
	go func() { said <- askHealth(h) }()
	s.Setup = setup.Read(h.Root)
	s.Snapshot = snapshot(h)
	s.Daemon = <-said
	return s, nil
}

// snapshot is the daemon's where it answers, for it sees more; it must be of
// this host.
func snapshot(h *host.Host) *model.Snapshot {
	devices, all := 500*time.Millisecond, 900*time.Millisecond // an answer within a second, whatever hangs
	if h.Timeout > 0 {
		devices, all = h.Timeout, 2*h.Timeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), all)
	defer cancel()
	if s, _ := h.ReadSnapshot(ctx); s != nil { // why not is said about the daemon
		return s
	}
	c := collect.New(h.Root, collect.Options{Timeout: devices, Thresholds: h.Thresholds()})
	defer c.Close()
	return c.Collect(ctx)
}

// askHealth asks ttmond how it is doing.
func askHealth(h *host.Host) checks.DaemonState {
	path := h.Socket()
	if path == "" {
		return checks.DaemonState{}
	}
	ctx, cancel := context.WithTimeout(context.Background(), h.DaemonTimeout())
	defer cancel()
	c := client.New(path)
	defer c.Close()
	health, _, err := c.Health(ctx)
	if err != nil {
		if op, away := errors.AsType[*net.OpError](err); away && op.Op == "dial" && !h.Named {
			return checks.DaemonState{} // a stale socket
		}
		return checks.DaemonState{Path: path, Why: err.Error()}
	}
	s := checks.DaemonState{Answers: true, Path: path, Version: health.Version}
	for _, p := range health.Problems {
		s.Problems = append(s.Problems, p.Part+": "+p.Reason)
	}
	for _, p := range health.Warnings {
		s.Warnings = append(s.Warnings, p.Part+": "+p.Reason)
	}
	if u := health.Uprobe; u != nil {
		s.Watch, s.Reason, s.Watched, s.Waits = u.State, u.Reason, u.Processes, u.Waits
		if u.Late != "" {
			s.Unwatched = append(s.Unwatched, u.Late)
		}
		for _, l := range u.Libraries {
			if l.Reason != "" {
				s.Unwatched = append(s.Unwatched, fmt.Sprintf("%s is not watched: %s", l.Path, l.Reason))
			}
		}
	}
	return s
}
