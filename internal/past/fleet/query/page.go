package query

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/text"
)

// timeout is how long an engine may take to answer the questions of a page.
const timeout = 30 * time.Second

// Page is the fleet in print.
type Page struct {
	Engine *client.Prometheus
	Label  string // that distinguishes hosts; empty: the engine's own
	Host   string // the one host to show; empty: all
	Links  bool   // show the links between hosts
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
	if p.Links {
		links, err := q.Links(p.Host)
		if err != nil {
			return dst, err
		}
		return text.AppendFleetLinks(dst, links, time.Now(), p.Rows(0)), nil
	}
	if p.Host != "" {
		h, err := q.Host(p.Host)
		if err != nil {
			return dst, err
		}
		return text.AppendFleetHost(dst, h, time.Now()), nil
	}
	all, err := q.Fleet()
	if err != nil {
		return dst, err
	}
	sums.Sort(all.Hosts)
	rows := p.Rows(len(all.Alerts))
	if err := q.Cells(all.Hosts[:min(rows, len(all.Hosts))]); err != nil {
		return dst, err
	}
	return text.AppendFleet(dst, *all, time.Now(), rows), nil
}

// Chips are the chips of some hosts, by the name of the host.
func (q *Query) Chips(names []string) (map[string][]sums.Chip, error) {
	hosts := make([]sums.Host, len(names))
	for i, name := range names {
		hosts[i].Name = name
	}
	if err := q.Cells(hosts); err != nil {
		return nil, err
	}
	chips := map[string][]sums.Chip{}
	for i := range hosts {
		chips[hosts[i].Name] = hosts[i].States
	}
	return chips, nil
}
