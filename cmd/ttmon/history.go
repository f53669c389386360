package main

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"sort"
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
	f.StringSliceVarP(&h.ids, "id", "i", nil, "only these `DEVICES`: index, bus id, serial number or ASIC id")
	f.StringVar(&h.since, "since", "1h", "from this `TIME` on")
	f.StringVar(&h.until, "until", "0s", "up to this `TIME`")
	f.DurationVar(&h.step, "step", 0, "`TIME` between two points (default: as many as fit)")
	f.BoolVar(&h.json, "json", false, "JSON: all points")
	f.BoolVar(&h.csv, "csv", false, "CSV: a line for each point")
	return cmd
}

// remembering is the client of a daemon that remembers.
func (a *app) remembering() (*client.Client, error) {
	if a.direct {
		return nil, usage("--direct: what happened is known to ttmond only")
	}
	h, err := a.openHost()
	if err != nil {
		return nil, err
	}
	path := h.socket()
	if path == "" {
		return nil, exitWith(exitUnsupported, "%w", errNoDaemon)
	}
	return client.New(path), nil
}

var errNoDaemon = errors.New("no ttmond runs here, and only ttmond keeps the past: systemctl start ttmond")

// ago reads a time ago, or a moment.
func ago(flag, s string, now time.Time) (time.Time, error) {
	if rest, ok := strings.CutSuffix(s, "d"); ok {
		if n, err := strconv.ParseFloat(rest, 64); err == nil && n >= 0 && n < 36500 {
			return now.Add(-time.Duration(n * 24 * float64(time.Hour))), nil
		}
	}
	if d, err := time.ParseDuration(s); err == nil && d >= 0 {
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
	now := time.Now()
	start, err := ago("--since", h.since, now)
	if err != nil {
		return err
	}
	end, err := ago("--until", h.until, now)
	if err != nil {
		return err
	}
	switch {
	case !start.Before(end):
		return usage("--since is not before --until")
	case h.json && h.csv:
		return usage("--json and --csv cannot be used together")
	case h.step < 0:
		return usage("--step: %v is negative", h.step)
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
	var out []byte
	var all []series
	for _, arg := range args {
		q, err := h.question(arg, snap, len(sel) > 0)
		if err != nil {
			return err
		}
		if h.json || h.csv {
			list, err := h.points(ctx, c, q, start, end)
			if err != nil {
				return err
			}
			all = append(all, list...)
			continue
		}
		plot, err := h.plot(ctx, c, q, snap, start, end)
		if err != nil {
			return err
		}
		out = text.AppendHistory(out, plot, h.ascii || asciiLocale(h.getenv))
	}
	switch {
	case h.json:
		b, err := json.MarshalIndent(map[string]any{"schema": "ttmon.history/1", "start": start.UTC(), "end": end.UTC(), "series": all}, "", " ")
		if err != nil {
			return err
		}
		out = append(b, '\n')
	case h.csv:
		out = appendCSV(nil, all)
	}
	return h.output("").write(out)
}

// question finds out what a METRIC is.
func (h *historyCmd) question(arg string, snap *model.Snapshot, chosen bool) (metricQuery, error) {
	if strings.ContainsAny(arg, "({ ") || strings.HasPrefix(arg, "tenstorrent_") {
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

// series is a line in JSON and CSV.
type series struct {
	Metric string            `json:"metric"`
	Unit   string            `json:"unit,omitempty"`
	Labels map[string]string `json:"labels"`
	Points []point           `json:"points"`
}

type point struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
	// Bound is exact, at_least or unsure; empty for what is never doubtful.
	Bound string `json:"bound,omitempty"`
}

func ask(ctx context.Context, c *client.Client, expr string, start, end time.Time, step time.Duration) ([]client.Series, error) {
	list, err := c.Range(ctx, expr, start, end, step)
	if errors.Is(err, client.ErrNotFound) {
		return nil, exitWith(exitUnsupported, "this ttmond keeps no history (history.enabled in its configuration)")
	}
	if err != nil {
		return nil, exitWith(exitInternal, "%w", err)
	}
	return list, nil
}

func (h *historyCmd) points(ctx context.Context, c *client.Client, q metricQuery, start, end time.Time) (out []series, err error) {
	step := h.step
	if step == 0 {
		step = max(end.Sub(start)/1000, time.Second).Truncate(time.Second)
	}
	list, err := ask(ctx, c, q.expr, start, end, step)
	if err == nil && q.bound != "" {
		var companions []client.Series
		companions, err = ask(ctx, c, q.bound, start, end, step)
		client.Bind(list, companions)
	}
	for _, s := range list {
		delete(s.Labels, "__name__")
		x := series{Metric: q.title, Unit: q.unit, Labels: s.Labels, Points: []point{}}
		for _, p := range s.Points {
			if !math.IsNaN(p.Value) && !math.IsInf(p.Value, 0) {
				x.Points = append(x.Points, point{p.Time.UTC(), p.Value / q.divide, q.boundWord(p.Bound)})
			}
		}
		out = append(out, x)
	}
	return out, err
}

// boundWord is how a figure is to be read, in JSON and CSV.
func (q *metricQuery) boundWord(b model.Bound) string {
	if q.bound == "" {
		return ""
	}
	return b.String()
}

func appendCSV(dst []byte, all []series) []byte {
	dst = append(dst, "time,metric,unit,device,pci,labels,value,bound\n"...)
	for _, s := range all {
		var rest []string
		for k, v := range s.Labels {
			if k != "device" && k != "pci" && k != "chip_id" {
				rest = append(rest, k+"="+v)
			}
		}
		sort.Strings(rest)
		quote := func(v string) string {
			if strings.ContainsAny(v, ",\"\n") {
				return `"` + strings.ReplaceAll(v, `"`, `""`) + `"`
			}
			return v
		}
		for _, p := range s.Points {
			for _, field := range []string{p.Time.Format("2006-01-02T15:04:05.000Z"), quote(s.Metric), s.Unit, s.Labels["device"], s.Labels["pci"], quote(strings.Join(rest, " "))} {
				dst = append(append(dst, field...), ',')
			}
			dst = append(strconv.AppendFloat(dst, p.Value, 'f', -1, 64), ',')
			dst = append(append(dst, p.Bound...), '\n')
		}
	}
	return dst
}

// plot asks for minimum, maximum and average of as many parts of the time as
// the terminal has room for.
func (h *historyCmd) plot(ctx context.Context, c *client.Client, q metricQuery, snap *model.Snapshot, start, end time.Time) (text.History, error) {
	out := text.History{Title: q.title, Unit: q.unit, Decimals: q.decimals, Start: start, End: end}
	columns, _, ok := size(h.stdout)
	if !ok {
		columns = 100
	}
	n := min(max(columns-62, 10), 400)
	step := h.step
	if step == 0 {
		step = max(end.Sub(start)/time.Duration(n), time.Second)
	}
	n = int(end.Sub(start)/step) + 1
	window := strconv.FormatInt(max(step.Milliseconds(), 1), 10) + "ms"
	expr := q.expr
	if q.rate || strings.ContainsAny(expr, "( ") {
		expr = "(" + expr + ")[" + window + ":" + window + "]"
	} else {
		expr += "[" + window + "]"
	}
	lines := map[string]*text.Line{}
	var order []string
	for _, part := range []struct {
		function string
		to       func(*text.Line) []float64
	}{
		{"min_over_time", func(l *text.Line) []float64 { return l.Min }},
		{"max_over_time", func(l *text.Line) []float64 { return l.Max }},
		{"avg_over_time", func(l *text.Line) []float64 { return l.Avg }},
	} {
		list, err := ask(ctx, c, part.function+"("+expr+")", start, end, step)
		if err != nil {
			return out, err
		}
		for _, s := range list {
			key := lineName(s.Labels, snap)
			l := lines[key]
			if l == nil {
				l = &text.Line{Name: key, Min: blank(n), Max: blank(n), Avg: blank(n), Last: math.NaN()}
				lines[key] = l
				order = append(order, key)
			}
			for _, p := range s.Points {
				if i := int(p.Time.Sub(start) / step); i >= 0 && i < n {
					part.to(l)[i] = p.Value / q.divide
				}
			}
		}
	}
	list, err := ask(ctx, c, q.expr, end, end, time.Second) // what has ended has no value there
	if err != nil {
		return out, err
	}
	for _, s := range list {
		if l := lines[lineName(s.Labels, snap)]; l != nil && len(s.Points) > 0 {
			l.Last = s.Points[0].Value / q.divide
		}
	}
	if err := h.mark(ctx, c, q, snap, lines, start, end); err != nil {
		return out, err
	}
	sort.Slice(order, func(i, j int) bool { return before(order[i], order[j]) })
	for _, key := range order {
		out.Lines = append(out.Lines, *lines[key])
	}
	return out, nil
}

// mark says how the figures of lines are to be read: those of the whole time
// as the worst of them, the last one by itself.
func (h *historyCmd) mark(ctx context.Context, c *client.Client, q metricQuery, snap *model.Snapshot, lines map[string]*text.Line, start, end time.Time) error {
	if q.bound == "" {
		return nil
	}
	window := strconv.FormatInt(end.Sub(start).Milliseconds(), 10) + "ms"
	for _, ask1 := range []struct {
		expr string
		to   func(*text.Line) *model.Bound
	}{
		{"max_over_time(" + q.bound + "[" + window + "])", func(l *text.Line) *model.Bound { return &l.Bound }},
		{q.bound, func(l *text.Line) *model.Bound { return &l.LastBound }},
	} {
		for _, l := range lines {
			*ask1.to(l) = model.Unsure // until it is known better
		}
		list, err := ask(ctx, c, ask1.expr, end, end, time.Second)
		if err != nil {
			return err
		}
		for _, s := range list {
			if l := lines[lineName(s.Labels, snap)]; l != nil && len(s.Points) > 0 {
				*ask1.to(l) = client.BoundOf(s.Points[0].Value)
			}
		}
	}
	return nil
}

func blank(n int) []float64 {
	list := make([]float64, n)
	for i := range list {
		list[i] = math.NaN()
	}
	return list
}

// before orders "2 n300" before "10 n300".
func before(a, b string) bool {
	x, errX := strconv.Atoi(strings.SplitN(a, " ", 2)[0])
	y, errY := strconv.Atoi(strings.SplitN(b, " ", 2)[0])
	if errX == nil && errY == nil && x != y {
		return x < y
	}
	return a < b
}

// lineName is what a series is called: a device by index and board, else its labels.
func lineName(labels map[string]string, snap *model.Snapshot) string {
	name := labels["device"]
	for i := range snap.Devices {
		if d := &snap.Devices[i]; d.BusID == labels["pci"] && d.Board.Known() {
			name += " " + d.Board.V
		}
	}
	var rest []string
	for k, v := range labels {
		switch k {
		case "device", "pci", "chip_id", "__name__":
		default:
			rest = append(rest, k+"="+v)
		}
	}
	sort.Strings(rest)
	name = strings.TrimSpace(name + " " + strings.Join(rest, " "))
	if name == "" {
		return "value"
	}
	return name
}
