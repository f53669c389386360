package top

import (
	"fmt"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/chart"
	"github.com/ttmon/ttmon/internal/view/tui/gauge"
)

// wanted is a chart as people write it in top.charts.metrics: one metric
// (power), several of one unit (pcie_to+pcie_from), and behind an @ the devices
// (power@0/2).
type wanted struct {
	gauges  []*gauge.Gauge
	devices []string // by any of their names; empty: all
}

func (s *State) parseChart(text string) (w wanted, err error) {
	metrics, devices, chosen := strings.Cut(text, "@")
	for name := range strings.SplitSeq(metrics, "+") {
		g := s.gauges.Find(name)
		if g == nil {
			return w, fmt.Errorf("unknown metric %q: one of %s", name, s.gauges.Names())
		}
		if len(w.gauges) > 0 && g.Form != w.gauges[0].Form {
			return w, fmt.Errorf("%q: %s and %s have different units: they cannot share an axis", text, w.gauges[0].Name, g.Name)
		}
		w.gauges = append(w.gauges, g)
	}
	if chosen {
		for name := range strings.SplitSeq(devices, "/") {
			if name == "" {
				return w, fmt.Errorf("%q: name devices behind the @, as in power@0/2", text)
			}
			w.devices = append(w.devices, name)
		}
	}
	return w, nil
}

// metricNames are the metrics in a list of charts, each once.
func metricNames(charts []string) (names []string) {
	seen := map[string]bool{}
	for _, c := range charts {
		metrics, _, _ := strings.Cut(c, "@")
		for name := range strings.SplitSeq(metrics, "+") {
			if !seen[name] {
				names = append(names, name)
			}
			seen[name] = true
		}
	}
	return names
}

// title names the metrics of a chart.
func (sp *spec) title() string {
	var parts []string
	for _, g := range append([]*gauge.Gauge{sp.gauge}, sp.more...) {
		parts = append(parts, g.Title)
	}
	return strings.Join(parts, " + ")
}

// metricLines draws a line per metric: of its devices together, since lines of
// each of them could not be told apart.
func (a *chartArea) metricLines(s *State, sp spec, c *chart.Chart, columns int) (limit float64) {
	n := len(sp.devices)
	sum := sp.gauge.Form.Adds()
	for i, g := range append([]*gauge.Gauge{sp.gauge}, sp.more...) {
		most := 0.0
		for j, d := range sp.devices {
			s.hist.Range(a.buffer(j, columns), g.Key(d.BusID), c.From, c.Step)
			if of := g.Limit(s.shown, d); sum {
				most += of
			} else {
				most = max(most, of)
			}
		}
		limit = max(limit, most)
		c.Lines = append(c.Lines, chart.Line{
			Label: strings.TrimPrefix(g.Name, "pcie_"), Style: cells.Series(i), Buckets: a.together(n, n+i, columns, sum),
		})
	}
	return limit
}

// together is the sum or the average of the first n lines, in the room of
// another one. A sum without one of them is at least so much.
func (a *chartArea) together(n, room, columns int, sum bool) []history.Bucket {
	out := a.buffer(room, columns)
	clear(out)
	for i := range out {
		total, known, worst := 0.0, 0, model.Exact
		for _, b := range a.buckets[:n] {
			if b[i].Known() {
				total += float64(b[i].Last)
				worst = max(worst, b[i].Bound)
				known++
			} else if out[i].State == history.Empty {
				out[i].State = b[i].State
			}
		}
		if known == 0 {
			continue
		}
		if sum && known < n {
			worst = max(worst, model.AtLeast)
		} else if !sum {
			total /= float64(known)
		}
		v := float32(total)
		out[i] = history.Bucket{State: history.Sampled, Min: v, Max: v, Last: v, Bound: worst}
	}
	return out
}
