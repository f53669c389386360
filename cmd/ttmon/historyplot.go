package main

import (
	"context"
	"errors"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
)

// plotter asks a ttmond for figures over time.
type plotter struct {
	client     *client.Client
	snap       *model.Snapshot // the devices by their names
	start, end time.Time
	step       time.Duration // between two points; 0: as many as fit
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

// ask asks for a series at every step of a time.
func (p *plotter) ask(ctx context.Context, expr string, start, end time.Time, step time.Duration) ([]client.Series, error) {
	list, err := p.client.Range(ctx, expr, start, end, step)
	if errors.Is(err, client.ErrNotFound) {
		return nil, exitWith(exitUnsupported, "this ttmond keeps no history (history.enabled in its configuration)")
	}
	if err != nil {
		return nil, exitWith(exitInternal, "%w", err)
	}
	return list, nil
}

// atEnd asks for the last value of each series; one that has ended has none.
func (p *plotter) atEnd(ctx context.Context, expr string, lines map[string]*text.Line, take func(*text.Line, float64)) error {
	list, err := p.ask(ctx, expr, p.end, p.end, time.Second)
	for _, s := range list {
		if l := lines[lineName(s.Labels, p.snap)]; l != nil && len(s.Points) > 0 {
			take(l, s.Points[0].Value)
		}
	}
	return err
}

// points are all points of a metric.
func (p *plotter) points(ctx context.Context, q metricQuery) (out []series, err error) {
	step := p.step
	if step == 0 {
		step = max(p.end.Sub(p.start)/1000, time.Second).Truncate(time.Second)
	}
	list, err := p.ask(ctx, q.expr, p.start, p.end, step)
	if err == nil && q.bound != "" {
		var companions []client.Series
		companions, err = p.ask(ctx, q.bound, p.start, p.end, step)
		client.Bind(list, companions)
	}
	for _, s := range list {
		delete(s.Labels, "__name__")
		x := series{Metric: q.title, Unit: q.unit, Labels: s.Labels, Points: []point{}}
		for _, v := range s.Points {
			if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
				x.Points = append(x.Points, point{v.Time.UTC(), v.Value / q.divide, q.boundWord(v.Bound)})
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
		for _, p := range s.Points {
			for _, field := range []string{p.Time.Format("2006-01-02T15:04:05.000Z"), text.CSVField(s.Metric), s.Unit, text.CSVField(s.Labels["device"]), text.CSVField(s.Labels["pci"]), text.CSVField(strings.Join(rest, " "))} {
				dst = append(append(dst, field...), ',')
			}
			dst = append(strconv.AppendFloat(dst, p.Value, 'f', -1, 64), ',')
			dst = append(append(dst, p.Bound...), '\n')
		}
	}
	return dst
}

// plot asks for minimum, maximum and average of as many parts of the time as
// there are columns.
func (p *plotter) plot(ctx context.Context, q metricQuery, columns int) (text.History, error) {
	out := text.History{Title: q.title, Unit: q.unit, Decimals: q.decimals, Start: p.start, End: p.end}
	first, step, n := p.parts(columns)
	lines := map[string]*text.Line{}
	for _, part := range []struct {
		function string
		to       func(*text.Line) []float64
	}{
		{"min_over_time", func(l *text.Line) []float64 { return l.Min }},
		{"max_over_time", func(l *text.Line) []float64 { return l.Max }},
		{"avg_over_time", func(l *text.Line) []float64 { return l.Avg }},
	} {
		list, err := p.ask(ctx, part.function+"("+overTime(q, step)+")", first, p.end, step)
		if err != nil {
			return out, err
		}
		for _, s := range list {
			key := lineName(s.Labels, p.snap)
			if lines[key] == nil {
				lines[key] = &text.Line{Name: key, Min: blank(n), Max: blank(n), Avg: blank(n), Last: math.NaN()}
			}
			for _, v := range s.Points {
				if i := int((v.Time.Sub(first) + step/2) / step); i >= 0 && i < n {
					part.to(lines[key])[i] = v.Value / q.divide
				}
			}
		}
	}
	if err := p.atEnd(ctx, q.expr, lines, func(l *text.Line, v float64) { l.Last = v / q.divide }); err != nil {
		return out, err
	}
	if err := p.bounds(ctx, q, lines); err != nil {
		return out, err
	}
	for _, l := range lines {
		out.Lines = append(out.Lines, *l)
	}
	slices.SortFunc(out.Lines, func(a, b text.Line) int {
		if before(a.Name, b.Name) {
			return -1
		}
		return 1
	})
	return out, nil
}

// parts divides the time into at most so many parts, unless the user chose how
// long they are. first is the end of the first of n parts, and the last one ends
// with the time: what was just measured is in it. Prometheus counts in whole
// milliseconds.
func (p *plotter) parts(columns int) (first time.Time, step time.Duration, n int) {
	length := p.end.Sub(p.start)
	if step = p.step; step == 0 {
		step = max(length/time.Duration(columns), time.Second)
	}
	step = max(step.Truncate(time.Millisecond), time.Millisecond)
	n = int(length/step) + 1
	return p.end.Add(-time.Duration(n-1) * step), step, n
}

// isSelector tells whether a question in PromQL only names series, with or
// without labels. Then the values are taken as they were kept; those of every
// other question are computed.
func isSelector(expr string) bool {
	name, labels, _ := strings.Cut(expr, "{")
	plain := !strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return plain && (labels == "" || strings.IndexByte(labels, '}') == len(labels)-1)
}

// overTime is the values of a metric in one part of the time.
func overTime(q metricQuery, step time.Duration) string {
	window := strconv.FormatInt(max(step.Milliseconds(), 1), 10) + "ms"
	if q.rate || !isSelector(q.expr) {
		return "(" + q.expr + ")[" + window + ":" + window + "]"
	}
	return q.expr + "[" + window + "]"
}

// bounds says how the figures of lines are to be read: those of the whole time
// as the worst of them, the last one by itself.
func (p *plotter) bounds(ctx context.Context, q metricQuery, lines map[string]*text.Line) error {
	if q.bound == "" {
		return nil
	}
	for _, l := range lines {
		l.Bound, l.LastBound = model.Unsure, model.Unsure // until it is known better
	}
	window := strconv.FormatInt(p.end.Sub(p.start).Milliseconds(), 10) + "ms"
	err := p.atEnd(ctx, "max_over_time("+q.bound+"["+window+"])", lines, func(l *text.Line, v float64) { l.Bound = client.BoundOf(v) })
	if err != nil {
		return err
	}
	return p.atEnd(ctx, q.bound, lines, func(l *text.Line, v float64) { l.LastBound = client.BoundOf(v) })
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
