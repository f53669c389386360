// Package screen carries out what the screen of a fleet asks for: it joins
// internal/view/tui/fleet to internal/past/fleet/query.
package screen

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/past/fleet/query"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/fleet"
)

// timeout is how long an engine may take to answer the questions of a screen.
const timeout = 30 * time.Second

// Do carries out what the screen of the fleet asks for.
func Do(engine *client.Prometheus, label string) func(context.Context, tui.Effect) tui.Event {
	return func(ctx context.Context, e tui.Effect) tui.Event {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		q, err := query.New(ctx, engine, label)
		switch e := e.(type) {
		case fleet.FetchCells:
			var chips map[string][]sums.Chip
			if err == nil {
				chips, err = q.Chips(e.Hosts)
			}
			return fleet.Cells{Chips: chips, Err: err}
		case fleet.FetchHost:
			var h *sums.Host
			if err == nil {
				h, err = q.Host(e.Name)
			}
			return fleet.Host{Name: e.Name, Host: h, Err: err}
		default:
			var all *sums.Fleet
			if err == nil {
				all, err = q.Fleet()
			}
			return fleet.Answer{Fleet: all, At: time.Now(), Err: err}
		}
	}
}
