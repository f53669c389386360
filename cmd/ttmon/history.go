package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/nearest"
	"github.com/ttmon/ttmon/internal/view/text"
)

// historyCmd is the command ttmon history with its flags.
type historyCmd struct {
	*app
	ids          []string
	since, until string
	step         time.Duration
	json, csv    bool
}

func newHistory(a *app) *cobra.Command {
	h := &historyCmd{app: a}
	cmd := &cobra.Command{
		Use:   "history METRIC…",
		Short: "Prints and plots figures over time, from ttmond's history",
		Long: `Prints and plots figures over time, as ttmond remembers them: every second of
the last hours, every 15 seconds of the last weeks. METRIC is a field of
ttmon smi --help-query-device (power.draw, temperature.asic, memory.used, …), or
any question in PromQL.

--since and --until are a time ago (90s, 2h, 7d) or a moment (2026-11-15T03:00).`,
		Example: `  ttmon history power.draw                       the last hour, all devices
  ttmon history temperature.asic power.draw -i 0 --since 12h
  ttmon history memory.used --since 7d --csv >memory.csv
  ttmon history 'sum(tenstorrent_core_power_watts)' --since 1d`,
		Args: cobra.ArbitraryArgs,
		RunE: func(_ *cobra.Command, args []string) error { return h.run(args) },
	}
	f := cmd.Flags()
	f.StringArrayVarP(&h.ids, "id", "i", nil, "only these `DEVICES`: index, bus id, serial number or ASIC id, separated by commas")
	f.StringVar(&h.since, "since", "1h", "from this `TIME` on")
	f.StringVar(&h.until, "until", "0s", "up to this `TIME`")
	f.DurationVar(&h.step, "step", 0, "`TIME` between two points (default: as many as fit)")
	f.BoolVar(&h.json, "json", false, "JSON: all points")
	f.BoolVar(&h.csv, "csv", false, "CSV: a line for each point")
	return cmd
}

// remembering is the client of a daemon that remembers.
func (a *app) remembering() (*client.Client, error) { return a.daemonFor(errNoDaemon) }

// daemonFor is the client of a ttmond, without which a command can do nothing;
// without is the error that says so.
func (a *app) daemonFor(without error) (*client.Client, error) {
	if a.direct {
		return nil, usage("--direct: this is asked of a ttmond")
	}
	h, err := a.openHost()
	if err != nil {
		return nil, err
	}
	path := h.socket()
	if path == "" {
		return nil, exitWith(exitUnsupported, "%w", without)
	}
	return client.New(path), nil
}

var errNoDaemon = errors.New("no ttmond runs here, and only ttmond keeps the past: systemctl start ttmond")

// parseSpan reads a length of time: 90s, 2h, -30s, 7d.
func parseSpan(s string) (time.Duration, bool) {
	if rest, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseFloat(rest, 64); err == nil && math.Abs(n) < 36500 {
			return time.Duration(n * 24 * float64(time.Hour)), true
		}
	}
	d, err := time.ParseDuration(s)
	return d, err == nil
}

// ago reads a time ago, or a moment.
func ago(flag, s string, now time.Time) (time.Time, error) {
	if d, ok := parseSpan(s); ok && d >= 0 {
		return now.Add(-d), nil
	}
	for _, form := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02T15:04", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", "15:04"} {
		if t, err := time.ParseInLocation(form, s, time.Local); err == nil {
			if form == "15:04" {
				y, m, d := now.Local().Date()
				if t = time.Date(y, m, d, t.Hour(), t.Minute(), 0, 0, time.Local); t.After(now) {
					t = t.AddDate(0, 0, -1)
				}
			}
			return t, nil
		}
	}
	return now, usage("%s: %q is neither a time ago like 2h or 7d nor a moment like 2026-11-15T03:00", flag, s)
}

// metricQuery is what is asked about a METRIC.
type metricQuery struct {
	title, unit string
	expr        string
	bound       string // what to ask for its bounds; "": it is never doubtful
	divide      float64
	decimals    int
	rate        bool
}

func (h *historyCmd) run(args []string) error {
	if len(args) == 0 {
		return usage("which metric? For example: ttmon history power.draw (ttmon smi --help-query-device lists them)")
	}
	start, end, err := h.period(time.Now().Truncate(time.Millisecond))
	if err != nil {
		return err
	}
	c, err := h.remembering()
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	snap, err := c.Snapshot(ctx)
	if err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	sel, err := parseSelection(h.ids)
	if err != nil {
		return err
	}
	if snap, err = sel.from(snap); err != nil {
		return err
	}
	var questions []metricQuery
	for _, arg := range metricArgs(args) {
		q, err := h.question(arg, snap, len(sel) > 0)
		if err != nil {
			return err
		}
		questions = append(questions, q)
	}
	p := &plotter{client: c, snap: snap, start: start, end: end, step: h.step}
	if h.json || h.csv {
		return h.printPoints(ctx, p, questions)
	}
	return h.printPlots(ctx, p, questions)
}

// period is the time that --since and --until enclose, and checks the flags
// that go with it.
func (h *historyCmd) period(now time.Time) (start, end time.Time, err error) {
	if start, err = ago("--since", h.since, now); err != nil {
		return start, end, err
	}
	if end, err = ago("--until", h.until, now); err != nil {
		return start, end, err
	}
	switch {
	case !start.Before(end):
		err = usage("--since is not before --until")
	case h.json && h.csv:
		err = usage("--json and --csv cannot be used together")
	case h.step < 0:
		err = usage("--step: %v is negative", h.step)
	}
	return start, end, err
}

// printPoints prints all points of the metrics, for scripts.
func (h *historyCmd) printPoints(ctx context.Context, p *plotter, questions []metricQuery) error {
	all := []series{}
	for _, q := range questions {
		list, err := p.points(ctx, q)
		if err != nil {
			return err
		}
		all = append(all, list...)
	}
	if h.csv {
		return h.output("").write(appendCSV(nil, all))
	}
	doc := map[string]any{"schema": "ttmon.history/1", "start": p.start.UTC(), "end": p.end.UTC(), "series": all}
	b, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		return exitWith(exitInternal, "%w", err)
	}
	return h.output("").write(append(b, '\n'))
}

// printPlots draws the metrics, for people.
func (h *historyCmd) printPlots(ctx context.Context, p *plotter, questions []metricQuery) error {
	columns, _, ok := size(h.stdout)
	if !ok {
		columns = 100
	}
	var out []byte
	for _, q := range questions {
		plot, err := p.plot(ctx, q, min(max(columns-62, 10), 400))
		if err != nil {
			return err
		}
		out = text.AppendHistory(out, plot)
	}
	return h.printText(out)
}

// isPromQL tells a question in PromQL from the name of a metric.
func isPromQL(arg string) bool {
	return strings.ContainsAny(arg, "({ ") || strings.HasPrefix(arg, "tenstorrent_")
}

// metricArgs takes names apart that have commas between them, as other commands
// have them.
func metricArgs(args []string) (list []string) {
	for _, arg := range args {
		if isPromQL(arg) {
			list = append(list, arg)
			continue
		}
		list = append(list, strings.Split(arg, ",")...)
	}
	return list
}

// question finds out what a METRIC is.
func (h *historyCmd) question(arg string, snap *model.Snapshot, chosen bool) (metricQuery, error) {
	if isPromQL(arg) {
		return metricQuery{title: arg, expr: arg, divide: 1, decimals: 2}, nil
	}
	table := metric.Devices()
	col, ok := metric.Find(table, arg)
	if !ok {
		return metricQuery{}, usage("there is no metric %q%s", arg, suggestion(nearest.Word(arg, metric.Names(table))))
	}
	var only []string
	if chosen {
		var buses []string
		for i := range snap.Devices {
			buses = append(buses, snap.Devices[i].BusID)
		}
		only = []string{metric.Matcher("pci", buses...)}
	}
	expr, per, ok := col.Query("1m", only...)
	if !ok {
		return metricQuery{}, usage("%s is not kept over time: it is not a number, or has no series (docs/fields.md)", arg)
	}
	q := metricQuery{title: arg, unit: col.Unit, expr: expr, divide: per, decimals: col.Decimals, rate: col.Rate}
	q.bound, _ = col.QueryBound(only...)
	if col.Per != 0 {
		q.divide *= col.Per
	}
	return q, nil
}

func suggestion(word string) string {
	if word == "" {
		return "; ttmon smi --help-query-device lists them"
	}
	return "; did you mean " + word + "?"
}
