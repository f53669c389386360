package main

import (
	"context"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
)

// What a screen starts with of ttmond's history.
const (
	backfillSpan     = 30 * time.Minute
	backfillStep     = 5 * time.Second
	backfillPatience = 700 * time.Millisecond // a screen is not to wait
)

// remembered is a figure of before.
type remembered struct {
	value float64
	bound model.Bound
}

// backfill is a store with what the daemon remembers of the last half hour,
// or nil if there is none: the charts begin with it instead of empty. first
// are the gauges that are asked for before all others.
func (h *host) backfill(first []string) *history.Store {
	path := h.socket()
	if path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), backfillPatience)
	defer cancel()
	c := client.New(path)
	defer c.Close()
	end := time.Now().Truncate(backfillStep)
	start := end.Add(-backfillSpan)
	rows := make([]map[history.Key]remembered, int(backfillSpan/backfillStep)+1)
	found := false
	for _, g := range inOrder(gauge.New(), first) {
		expr, per, ok := g.Query("1m")
		if !ok {
			continue
		}
		list, err := c.Range(ctx, expr, start, end, backfillStep)
		if err != nil {
			break // no history here, or no time for more
		}
		if expr, ok := g.QueryBound(); ok {
			asked, err := c.Range(ctx, expr, start, end, backfillStep)
			if err != nil {
				break // figures without their doubts are worse than none
			}
			client.Bind(list, asked)
		}
		for _, s := range list {
			key := g.Key(s.Labels["pci"])
			for _, p := range s.Points {
				i := int(p.Time.Sub(start) / backfillStep)
				if i < 0 || i >= len(rows) {
					continue
				}
				if rows[i] == nil {
					rows[i] = map[history.Key]remembered{}
				}
				rows[i][key] = remembered{p.Value / per, p.Bound}
				found = true
			}
		}
	}
	if !found {
		return nil
	}
	store := history.New()
	for i, row := range rows {
		if row == nil {
			continue
		}
		store.Begin(start.Add(time.Duration(i) * backfillStep))
		for key, v := range row {
			store.PutBound(key, v.value, v.bound)
		}
	}
	return store
}

// inOrder lists the gauges, some of them first.
func inOrder(set *gauge.Set, first []string) (list []*gauge.Gauge) {
	seen := map[string]bool{}
	add := func(name string) {
		if g := set.Find(name); g != nil && !seen[name] {
			seen[name] = true
			list = append(list, g)
		}
	}
	for _, name := range first {
		add(name)
	}
	for i := range set.All() {
		add(set.All()[i].Name)
	}
	return list
}

// past asks the daemon for a snapshot of another time.
func (h *host) past(ctx context.Context, at time.Time) (*model.Snapshot, error) {
	path := h.socket()
	if path == "" {
		return nil, errNoDaemon
	}
	c := client.New(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return c.Past(ctx, at)
}
