package main

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/when"
	"github.com/ttmon/ttmon/internal/cli/console"
	"github.com/ttmon/ttmon/internal/cli/host"
	"github.com/ttmon/ttmon/internal/cli/plot"
	"github.com/ttmon/ttmon/internal/cli/selection"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/past/history/changed"
	"github.com/ttmon/ttmon/internal/view/text"
)

// historyCmd is the command ttmon history with its flags.
type historyCmd struct {
	*app
	ids          []string
	since, until string
	step         time.Duration
	json, csv    bool
	changed      string
}

func newHistory(a *app) *cobra.Command {
	h := &historyCmd{app: a}
	cmd := &cobra.Command{
		Use:   "history METRIC…",
		Short: "Print and plot figures over time",
		Long: `Prints and plots figures over time, from the history of
ttmon-server: every second of the last hours, every 15 seconds of the last weeks.
METRIC is a field of ttmon smi --help-query-device (power.draw, temperature.asic,
memory.used, …), or any query in PromQL.

--changed FROM..TO shows what else changed between two times: every series of the
devices and the host is compared with the time before (four times as long, at most
six hours) and ranked by how far its mean moved, relative to its usual variation.

--since and --until take an age (90s, 2h, 7d) or a date (2026-11-15T03:00).`,
		Example: `  ttmon history power.draw                       the last hour, all devices
  ttmon history temperature.asic power.draw -i 0 --since 12h
  ttmon history memory.used --since 7d --csv >memory.csv
  ttmon history 'sum(tenstorrent_core_power_watts)' --since 1d
  ttmon history --changed 03:00..03:10           what changed in these ten minutes`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return h.run(args) },
	}
	f := cmd.Flags()
	addDevices(f, &h.ids, theseDevices)
	f.StringVar(&h.since, "since", "1h", "start at `TIME`: an age or a date")
	f.StringVar(&h.until, "until", "0s", "end at `TIME`; 0s is now")
	f.DurationVar(&h.step, "step", 0, "`TIME` between two points (default: as many as fit)")
	f.StringVar(&h.changed, "changed", "", "rank what changed between `FROM..TO` (03:00..03:10, 20m..10m; without TO: until now)")
	f.BoolVar(&h.json, "json", false, "print all points as JSON")
	f.BoolVar(&h.csv, "csv", false, "print CSV, one line per point")
	return cmd
}

func (h *historyCmd) run(args []string) error {
	if h.changed != "" {
		return h.printChanged(args)
	}
	if len(args) == 0 {
		return exit.Usage("missing metric, such as ttmon history power.draw (ttmon smi --help-query-device lists them)")
	}
	start, end, err := h.period(time.Now().Truncate(time.Millisecond))
	if err != nil {
		return err
	}
	c, err := host.HistoryClient(h.where)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	sel, err := selection.Parse(h.ids)
	if err != nil {
		return err
	}
	if snap, err = sel.From(snap); err != nil {
		return err
	}
	p := &plot.Range{Client: c, Snapshot: snap, Start: start, End: end, Step: h.step}
	questions, err := p.Questions(ctx, args, len(sel) > 0)
	if err != nil {
		return err
	}
	if h.json || h.csv {
		return h.printPoints(ctx, p, questions)
	}
	return h.printPlots(ctx, p, questions)
}

// period returns the time between --since and --until, and checks the flags that go
// with them.
func (h *historyCmd) period(now time.Time) (start, end time.Time, err error) {
	if start, err = when.Ago("--since", h.since, now); err != nil {
		return start, end, err
	}
	if end, err = when.Ago("--until", h.until, now); err != nil {
		return start, end, err
	}
	switch {
	case !start.Before(end):
		err = exit.Usage("--since is not before --until")
	case h.json && h.csv:
		err = exit.Usage("--json and --csv cannot be used together")
	case h.step < 0:
		err = exit.Usage("--step: %v is negative", h.step)
	}
	return start, end, err
}

// printPoints prints all points of the metrics, for scripts.
func (h *historyCmd) printPoints(ctx context.Context, p *plot.Range, questions []plot.Question) error {
	all, err := p.Points(ctx, questions)
	if err != nil {
		return err
	}
	if h.csv {
		return h.Output("").Write(plot.AppendCSV(nil, all))
	}
	b, err := p.AppendJSON(nil, all)
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	return h.Output("").Write(b)
}

// plotMargin is how many columns a plot leaves for names and figures.
const plotMargin = 62

// printPlots draws the metrics, for people.
func (h *historyCmd) printPlots(ctx context.Context, p *plot.Range, questions []plot.Question) error {
	columns, _, ok := console.Size(h.Stdout)
	if !ok {
		columns = 100
	}
	var out []byte
	for _, q := range questions {
		drawn, err := p.Plot(ctx, q, min(max(columns-plotMargin, 10), 400))
		if err != nil {
			return err
		}
		out = text.AppendHistory(out, drawn)
	}
	return h.PrintText(out)
}

// changedPeriod returns the time that --changed names.
func (h *historyCmd) changedPeriod(now time.Time) (from, to time.Time, err error) {
	first, last, ok := strings.Cut(h.changed, "..")
	if from, err = when.Ago("--changed", first, now); err != nil {
		return from, to, err
	}
	to = now
	if ok && last != "" {
		if to, err = when.Ago("--changed", last, now); err != nil {
			return from, to, err
		}
	}
	switch length := to.Sub(from); {
	case length < time.Second:
		err = exit.Usage("--changed: FROM is not before TO")
	case length > changed.MaxStretch:
		err = exit.Usage("--changed: FROM..TO is longer than %v", changed.MaxStretch)
	}
	return from, to, err
}

// printChanged ranks what changed in the time that --changed names.
func (h *historyCmd) printChanged(args []string) error {
	switch {
	case len(args) > 0 || len(h.ids) > 0:
		return exit.Usage("--changed compares all series: it takes no METRIC and no -i")
	case h.csv:
		return exit.Usage("--changed and --csv cannot be used together")
	}
	from, to, err := h.changedPeriod(time.Now().Truncate(time.Millisecond))
	if err != nil {
		return err
	}
	c, err := host.HistoryClient(h.where)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	a, err := c.Changed(ctx, from, to)
	if errors.Is(err, client.ErrNotFound) {
		return exit.With(exit.Unsupported, "this ttmon-server keeps no history (history.enabled in its configuration)")
	}
	if err != nil {
		return exit.With(exit.Internal, "%w", err)
	}
	if h.json {
		b, err := json.MarshalIndent(a, "", " ")
		if err != nil {
			return exit.With(exit.Internal, "encoding what changed: %w", err)
		}
		return h.Output("").Write(append(b, '\n'))
	}
	o, err := h.TextOptions(h.Stdout)
	if err != nil {
		return err
	}
	return h.PrintText(text.AppendChanged(nil, a, o.Width))
}
