package query

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/fleet"
)

// timeout is how long an engine may take to answer the questions of a page.
const timeout = 30 * time.Second

// Page is the fleet in print.
type Page struct {
	Engine *client.Prometheus
	Label  string // that distinguishes hosts; empty: the engine's own
	Host   string // the one host to show; empty: all
	// Rows is how many hosts there is room for beside so many alerts.
	Rows func(alerts int) int
}

// Append asks, and prints the answer.
func (p Page) Append(ctx context.Context, dst []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := New(ctx, p.Engine, p.Label)
	if err != nil {
		return dst, err
	}
	if p.Host != "" {
		h, err := q.Host(p.Host)
		if err != nil {
			return dst, err
		}
		return text.AppendFleetHost(dst, h), nil
	}
	all, err := q.Fleet()
	if err != nil {
		return dst, err
	}
	text.SortFleet(all.Hosts)
	rows := p.Rows(len(all.Alerts))
	if err := q.Cells(all.Hosts[:min(rows, len(all.Hosts))]); err != nil {
		return dst, err
	}
	return text.AppendFleet(dst, *all, rows), nil
}

// Do carries out what the screen of the fleet asks for.
func Do(engine *client.Prometheus, label string) func(context.Context, tui.Effect) tui.Event {
	return func(ctx context.Context, e tui.Effect) tui.Event {
		ctx, cancel := context.WithTimeout(ctx, timeout)
		defer cancel()
		q, err := New(ctx, engine, label)
		switch e := e.(type) {
		case fleet.AskCells:
			var chips map[string][]text.FleetChip
			if err == nil {
				chips, err = q.chips(e.Hosts)
			}
			return fleet.Cells{Chips: chips, Err: err}
		case fleet.AskHost:
			var h *text.FleetHost
			if err == nil {
				h, err = q.Host(e.Name)
			}
			return fleet.Host{Name: e.Name, Host: h, Err: err}
		default:
			var all *text.Fleet
			if err == nil {
				all, err = q.Fleet()
			}
			return fleet.Answer{Fleet: all, At: time.Now(), Err: err}
		}
	}
}

// chips are the chips of some hosts, by the name of the host.
func (q *Query) chips(names []string) (map[string][]text.FleetChip, error) {
	hosts := make([]text.FleetHost, len(names))
	for i, name := range names {
		hosts[i].Name = name
	}
	if err := q.Cells(hosts); err != nil {
		return nil, err
	}
	chips := map[string][]text.FleetChip{}
	for i := range hosts {
		chips[hosts[i].Name] = hosts[i].States
	}
	return chips, nil
}
