package host

import (
	"context"
	"errors"
	"time"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
)

// What a screen starts with of ttmon-server's history.
const (
	backfillSpan    = 30 * time.Minute
	backfillStep    = 5 * time.Second
	backfillTimeout = 700 * time.Millisecond // a screen is not to wait
)

// remembered is a figure of before.
type remembered struct {
	value float64
	bound model.Bound
}

// Backfill is a store with what ttmon-server remembers of the last half hour,
// or nil if there is none: the charts begin with it instead of empty. first
// are the gauges that are asked for before all others.
func (h *Host) Backfill(first []string) *history.Store {
	path := h.Server()
	if path == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), backfillTimeout)
	defer cancel()
	c := client.New(path)
	defer c.Close()
	over := metric.Over{Age: backfillSpan, Step: backfillStep}
	if apart, err := c.Apart(ctx); err == nil {
		over.Apart = apart
	}
	end := time.Now().Truncate(backfillStep)
	rows := make([]row, int(backfillSpan/backfillStep)+1)
	start, found := end.Add(-backfillSpan), false
	for _, g := range inOrder(gauge.New(), first) {
		q, ok := g.Question(over)
		if !ok {
			continue
		}
		list, err := c.BoundRange(ctx, q.Expr, q.Bound, start, end, backfillStep)
		if err != nil {
			break // no history here, or no time for more
		}
		for _, s := range list {
			found = fill(rows, start, g.Key(s.Labels["pci"]), q.Factor, s.Points) || found
		}
	}
	if !found {
		return nil
	}
	return storeOf(rows, start)
}

// row is what was remembered of one moment.
type row map[history.Key]remembered

// fill puts the points of a series into the rows of their moments.
func fill(rows []row, start time.Time, key history.Key, per float64, points []client.Point) (found bool) {
	for _, p := range points {
		i := int(p.Time.Sub(start) / backfillStep)
		if i < 0 || i >= len(rows) {
			continue
		}
		if rows[i] == nil {
			rows[i] = row{}
		}
		rows[i][key] = remembered{p.Value / per, p.Bound}
		found = true
	}
	return found
}

// storeOf is the history that the rows hold.
func storeOf(rows []row, start time.Time) *history.Store {
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

// Past asks ttmon-server for a snapshot of another time.
func (h *Host) Past(ctx context.Context, at time.Time) (*model.Snapshot, error) {
	path := h.Server()
	if path == "" {
		return nil, ErrNoServer
	}
	c := client.New(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	return c.Past(ctx, at)
}

// KeepsRuns reports whether a ttmon-server here keeps runs.
func (h *Host) KeepsRuns(ctx context.Context) bool {
	path := h.Server()
	if path == "" {
		return false
	}
	c := client.New(path)
	defer c.Close()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	_, err := c.Runs(ctx, runs.Query{Limit: 1})
	return err == nil
}

// Simulated reports whether the host is.
func (h *Host) Simulated() bool { return h.simulated }

// ErrNoServer is the error of a question about the past where no ttmon-server runs.
var ErrNoServer = errors.New("no ttmon-server is running, so there is no history: systemctl start ttmon-server, or run ttmon-server as your own user")

// HistoryClient returns a client of the ttmon-server, for commands that need its
// history.
func HistoryClient(o Options) (*client.Client, error) {
	if o.Direct {
		return nil, exit.Usage("--direct cannot be used here: history comes from ttmon-server")
	}
	h, err := Open(o)
	if err != nil {
		return nil, err
	}
	path := h.Server()
	if path == "" {
		return nil, exit.With(exit.Unsupported, "%w", ErrNoServer)
	}
	return client.New(path), nil
}
