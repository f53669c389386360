// Package plot asks ttmond for figures over time, and makes of them what ttmon
// history prints: charts for people, points for scripts.
package plot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/ttmon/ttmon/internal/base/exit"
	"github.com/ttmon/ttmon/internal/base/nearest"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
	"github.com/ttmon/ttmon/internal/view/text"
)

// Range is a time of a ttmond's history.
type Range struct {
	Client     *client.Client
	Snapshot   *model.Snapshot // the devices by their names
	Start, End time.Time
	Step       time.Duration // between two points; 0: as many as fit
}

// Question is what is asked about a metric.
type Question struct {
	Title, Unit string
	Expr        string
	Bound       string // what to ask for its bounds; "": it is never doubtful
	Divide      float64
	Decimals    int
}

// Series is a line in JSON and CSV.
type Series struct {
	Metric string            `json:"metric"`
	Unit   string            `json:"unit,omitempty"`
	Labels map[string]string `json:"labels"`
	Points []Point           `json:"points"`
}

// Point is a figure at a moment.
type Point struct {
	Time  time.Time `json:"time"`
	Value float64   `json:"value"`
	// Bound is exact, at_least or unsure; empty for what is never doubtful.
	Bound string `json:"bound,omitempty"`
}

// query asks for a series at every step of a time.
func (p *Range) query(ctx context.Context, q Question, start, end time.Time, step time.Duration) ([]client.Series, error) {
	list, err := p.Client.BoundRange(ctx, q.Expr, q.Bound, start, end, step)
	if errors.Is(err, client.ErrNotFound) {
		return nil, exit.With(exit.Unsupported, "no history is kept here: start ttmon-server, and leave history.enabled in its configuration true")
	}
	if err != nil {
		return nil, exit.With(exit.Internal, "%w", err)
	}
	return list, nil
}

// atEnd asks for the last value of each series; one that has ended has none.
func (p *Range) atEnd(ctx context.Context, expr string, lines map[string]*text.Line, take func(*text.Line, float64)) error {
	list, err := p.query(ctx, Question{Expr: expr}, p.End, p.End, time.Second)
	for _, s := range list {
		if l := lines[lineName(s.Labels, p.Snapshot)]; l != nil && len(s.Points) > 0 {
			take(l, s.Points[0].Value)
		}
	}
	return err
}

// points are all points of a metric.
func (p *Range) points(ctx context.Context, q Question) (out []Series, err error) {
	step := p.Step
	if step == 0 {
		step = max(p.End.Sub(p.Start)/1000, time.Second).Truncate(time.Second)
	}
	list, err := p.query(ctx, q, p.Start, p.End, step)
	for _, s := range list {
		delete(s.Labels, "__name__")
		x := Series{Metric: q.Title, Unit: q.Unit, Labels: s.Labels, Points: []Point{}}
		for _, v := range s.Points {
			if !math.IsNaN(v.Value) && !math.IsInf(v.Value, 0) {
				x.Points = append(x.Points, Point{v.Time.UTC(), v.Value / q.Divide, q.boundWord(v.Bound)})
			}
		}
		out = append(out, x)
	}
	return out, err
}

// boundWord is how a figure is to be read, in JSON and CSV.
func (q *Question) boundWord(b model.Bound) string {
	if q.Bound == "" {
		return ""
	}
	return b.String()
}

// AppendCSV prints a line for each point.
func AppendCSV(dst []byte, all []Series) []byte {
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

// Plot asks for minimum, maximum and average of as many parts of the time as
// there are columns.
func (p *Range) Plot(ctx context.Context, q Question, columns int) (text.History, error) {
	out := text.History{Title: q.Title, Unit: q.Unit, Decimals: q.Decimals, Start: p.Start, End: p.End}
	first, step, n := p.parts(columns)
	lines, err := p.lines(ctx, q, first, step, n)
	if err != nil {
		return out, err
	}
	if err := p.atEnd(ctx, q.Expr, lines, func(l *text.Line, v float64) { l.Last = v / q.Divide }); err != nil {
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

// lines are the series of a question, each in n parts of the time.
func (p *Range) lines(ctx context.Context, q Question, first time.Time, step time.Duration, n int) (map[string]*text.Line, error) {
	lines := map[string]*text.Line{}
	for _, part := range []struct {
		function string
		to       func(*text.Line) []float64
	}{
		{"min_over_time", func(l *text.Line) []float64 { return l.Min }},
		{"max_over_time", func(l *text.Line) []float64 { return l.Max }},
		{"avg_over_time", func(l *text.Line) []float64 { return l.Avg }},
	} {
		list, err := p.query(ctx, Question{Expr: ofParts(part.function, q, step, n)}, first, p.End, step)
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			key := lineName(s.Labels, p.Snapshot)
			if lines[key] == nil {
				lines[key] = &text.Line{Name: key, Min: blank(n), Max: blank(n), Avg: blank(n), Last: math.NaN()}
			}
			for _, v := range s.Points {
				if i := int((v.Time.Sub(first) + step/2) / step); i >= 0 && i < n {
					part.to(lines[key])[i] = v.Value / q.Divide
				}
			}
		}
	}
	return lines, nil
}

// parts divides the time into at most so many parts, unless the user chose how
// long they are. first is the end of the first of n parts, and the last one ends
// with the time: what was just measured is in it. Prometheus counts in whole
// milliseconds.
func (p *Range) parts(columns int) (first time.Time, step time.Duration, n int) {
	length := p.End.Sub(p.Start)
	if step = p.Step; step == 0 {
		step = max(length/time.Duration(columns), time.Second)
	}
	step = max(step.Truncate(time.Millisecond), time.Millisecond)
	n = int(length/step) + 1
	return p.End.Add(-time.Duration(n-1) * step), step, n
}

// isSelector reports whether a question in PromQL only names series, with or
// without labels. Then the values are taken as they were kept; those of every
// other question are computed.
func isSelector(expr string) bool {
	name, labels, _ := strings.Cut(expr, "{")
	plain := !strings.ContainsFunc(name, func(r rune) bool { return r != '_' && r != ':' && !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	return plain && (labels == "" || strings.IndexByte(labels, '}') == len(labels)-1)
}

// maxComputed is how many values of a question that is computed are asked for in all
// parts together, and inPart in one of them.
const (
	maxComputed = 800
	inPart      = 20
)

// overTime is the values of a metric in one of n parts of the time. Those that are
// computed are at whole multiples of the time between them.
func overTime(q Question, step time.Duration, n int) string {
	ms := func(d time.Duration) string { return strconv.FormatInt(max(d.Milliseconds(), 1), 10) + "ms" }
	if isSelector(q.Expr) {
		return q.Expr + "[" + ms(step) + "]"
	}
	apart := max(step/time.Duration(min(max(maxComputed/n, 1), inPart)), min(step, time.Second))
	return "(" + q.Expr + ")[" + ms(step) + ":" + ms(apart) + "]"
}

// ofParts asks for a function of each of n parts of the time. A part without a value
// of its own has the one that holds in it: samples may be further apart than parts
// are long, and what is computed may be known at the end of the part only.
func ofParts(function string, q Question, step time.Duration, n int) string {
	return function + "(" + overTime(q, step, n) + ") or (" + q.Expr + ")"
}

// bounds says how the figures of lines are to be read: those of the whole time
// as the worst of them, the last one by itself.
func (p *Range) bounds(ctx context.Context, q Question, lines map[string]*text.Line) error {
	if q.Bound == "" {
		return nil
	}
	for _, l := range lines {
		l.Bound, l.LastBound = model.Unsure, model.Unsure // until it is known better
	}
	window := strconv.FormatInt(p.End.Sub(p.Start).Milliseconds(), 10) + "ms"
	err := p.atEnd(ctx, "max_over_time("+q.Bound+"["+window+"])", lines, func(l *text.Line, v float64) { l.Bound = client.BoundOf(v) })
	if err != nil {
		return err
	}
	return p.atEnd(ctx, q.Bound, lines, func(l *text.Line, v float64) { l.LastBound = client.BoundOf(v) })
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

// isPromQL distinguishes a question in PromQL from the name of a metric.
func isPromQL(arg string) bool {
	return strings.ContainsAny(arg, "({ ") || strings.HasPrefix(arg, "tenstorrent_")
}

// Names takes names apart that have commas between them, as other commands
// have them.
func Names(args []string) (list []string) {
	for _, arg := range args {
		if isPromQL(arg) {
			list = append(list, arg)
			continue
		}
		list = append(list, strings.Split(arg, ",")...)
	}
	return list
}

// Questions are those about METRICs. With chosen, they are about the devices of the
// snapshot alone.
func (p *Range) Questions(ctx context.Context, args []string, chosen bool) (list []Question, err error) {
	over := metric.Over{Age: time.Since(p.Start), Step: p.Step}
	if apart, err := p.Client.Apart(ctx); err == nil { // else the questions themselves say why there is no history
		over.Apart = apart
	}
	for _, arg := range Names(args) {
		q, err := parseMetric(arg, over, p.Snapshot, chosen)
		if err != nil {
			return nil, err
		}
		list = append(list, q)
	}
	return list, nil
}

// parseMetric is the question about a METRIC: the name of a field, or PromQL.
func parseMetric(arg string, over metric.Over, snap *model.Snapshot, chosen bool) (Question, error) {
	if isPromQL(arg) {
		return Question{Title: arg, Expr: arg, Divide: 1, Decimals: 2}, nil
	}
	table := metric.Devices()
	col, ok := metric.Find(table, arg)
	if !ok {
		return Question{}, exit.Usage("unknown metric %q%s", arg, nearest.Suggest(arg, metric.Names(table), "ttmon smi --help-query-device lists them"))
	}
	var only []string
	if chosen {
		var buses []string
		for i := range snap.Devices {
			buses = append(buses, snap.Devices[i].BusID)
		}
		only = []string{metric.Matcher("pci", buses...)}
	}
	asked, ok := col.Question(over, only...)
	if !ok {
		return Question{}, exit.Usage("%s has no history: it is not a number, or has no series (docs/fields.md)", arg)
	}
	return Question{Title: arg, Unit: col.Unit, Expr: asked.Expr, Bound: asked.Bound, Divide: asked.Divide, Decimals: col.Decimals}, nil
}

// Points are all points of some questions.
func (p *Range) Points(ctx context.Context, questions []Question) ([]Series, error) {
	all := []Series{}
	for _, q := range questions {
		list, err := p.points(ctx, q)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	return all, nil
}

// AppendJSON prints all points as a document (ttmon.history/1).
func (p *Range) AppendJSON(dst []byte, all []Series) ([]byte, error) {
	b, err := json.MarshalIndent(map[string]any{"schema": "ttmon.history/1", "start": p.Start.UTC(), "end": p.End.UTC(), "series": all}, "", " ")
	if err != nil {
		return nil, fmt.Errorf("encoding points: %w", err)
	}
	return append(append(dst, b...), '\n'), nil
}
