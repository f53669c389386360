package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/text"
	"github.com/ttmon/ttmon/internal/view/words"
)

// fleetQuery asks the questions of one page.
type fleetQuery struct {
	ctx   context.Context
	p     *client.Prometheus
	label string // that tells hosts apart
}

// findLabel decides by what hosts are told apart.
func (q *fleetQuery) findLabel() (err error) {
	if q.label != "" {
		if strings.ContainsFunc(q.label, func(r rune) bool {
			return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
		}) {
			return fmt.Errorf("--host-label: %q is not a label name", q.label)
		}
		return nil
	}
	q.label, err = q.p.HostLabel(q.ctx)
	return err
}

// each asks and calls f with every series and its value.
func (q *fleetQuery) each(expr string, f func(labels map[string]string, v float64)) error {
	list, err := q.p.Query(q.ctx, expr)
	for _, s := range list {
		if len(s.Points) > 0 {
			f(s.Labels, s.Points[0].Value)
		}
	}
	return err
}

// all asks several questions at once. The first failure is returned.
func (q *fleetQuery) all(n int, expr func(i int) string) ([][]client.Series, error) {
	answers, failures := make([][]client.Series, n), make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { answers[i], failures[i] = q.p.Query(q.ctx, expr(i)) })
	}
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// fleet asks for one line a host: the engine adds up.
func (q *fleetQuery) fleet() (*text.Fleet, error) {
	hosts := map[string]*text.FleetHost{}
	nan := math.NaN()
	get := func(labels map[string]string) *text.FleetHost {
		name := labels[q.label]
		if hosts[name] == nil {
			hosts[name] = &text.FleetHost{Name: name, Chips: map[model.State]int{}, Temperature: nan, Power: nan, Used: nan, Size: nan}
		}
		return hosts[name]
	}
	by := "by (" + q.label
	alerts := map[string]*text.FleetAlert{}
	f := &text.Fleet{}
	asks := []struct {
		expr string
		do   func(map[string]string, float64)
	}{
		{"sum " + by + ", state) (tenstorrent_devices_in_state)", func(l map[string]string, v float64) { get(l).Chips[stateOf(l)] += int(v) }},
		{"max " + by + ") (tenstorrent_asic_temperature_celsius)", func(l map[string]string, v float64) { get(l).Temperature = v }},
		{"sum " + by + ") (tenstorrent_core_power_watts)", func(l map[string]string, v float64) { get(l).Power = v }},
		{"sum " + by + `) (tenstorrent_memory_used_bytes{pool="dram"})`, func(l map[string]string, v float64) { get(l).Used = v }},
		{"sum " + by + `) (tenstorrent_memory_size_bytes{pool="dram"})`, func(l map[string]string, v float64) { get(l).Size = v }},
		{"max " + by + `) (tenstorrent_memory_used_bound{pool="dram"})`, func(l map[string]string, v float64) { get(l).Bound = max(get(l).Bound, client.BoundOf(v)) }},
		// Chips whose memory is not known are not in the sum.
		{"count " + by + `) (tenstorrent_memory_size_bytes{pool="dram"} unless on (` + q.label + `, pci) tenstorrent_memory_used_bytes{pool="dram"})`, func(l map[string]string, _ float64) {
			get(l).Bound = max(get(l).Bound, model.AtLeast)
		}},
		{"count " + by + `) (tenstorrent_device_info unless on (` + q.label + `, pci) tenstorrent_core_power_watts)`, func(l map[string]string, _ float64) {
			get(l).PowerBound = model.AtLeast
		}},
		{"count(tenstorrent_simulated == 1)", func(_ map[string]string, v float64) { f.Simulated = int(v) }},
		{"count " + by + `, alertname, severity) (ALERTS{alertstate="firing"})`, func(l map[string]string, v float64) {
			if l[q.label] == "" {
				return
			}
			get(l).Alerts += int(v)
			key := l["alertname"] + "\x00" + l["severity"]
			if alerts[key] == nil {
				alerts[key] = &text.FleetAlert{Name: l["alertname"], Severity: l["severity"], PerHost: map[string]int{}}
			}
			alerts[key].Count += int(v)
			alerts[key].Hosts = append(alerts[key].Hosts, l[q.label])
			alerts[key].PerHost[l[q.label]] += int(v)
		}},
	}
	answers, err := q.all(len(asks), func(i int) string { return asks[i].expr })
	if err != nil {
		return nil, err
	}
	for i, list := range answers {
		for _, s := range list {
			if len(s.Points) > 0 {
				asks[i].do(s.Labels, s.Points[0].Value)
			}
		}
	}
	for _, h := range hosts {
		f.Hosts = append(f.Hosts, *h)
	}
	slices.SortFunc(f.Hosts, func(a, b text.FleetHost) int { return strings.Compare(a.Name, b.Name) })
	f.Alerts = sortedAlerts(alerts)
	return f, nil
}

// stateOf is the state that a label names. Whoever writes to the engine chooses the
// label, a ttmond of the future too: what is no state of ours is not known.
func stateOf(labels map[string]string) model.State {
	if s := model.State(labels["state"]); slices.Contains(model.States(), s) {
		return s
	}
	return model.StateUnknown
}

// sortedAlerts lists alerts, the most severe first.
func sortedAlerts(alerts map[string]*text.FleetAlert) (list []text.FleetAlert) {
	for _, a := range alerts {
		slices.Sort(a.Hosts)
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b text.FleetAlert) int {
		return cmp.Or(cmp.Compare(words.AlertLevel(a.Severity), words.AlertLevel(b.Severity)), strings.Compare(a.Name, b.Name))
	})
	return list
}

// cells asks for the chips of the hosts that are shown, one by one.
func (q *fleetQuery) cells(hosts []text.FleetHost) error {
	at := map[string]*text.FleetHost{}
	var names []string
	for i := range hosts {
		if h := &hosts[i]; h.Name != "" {
			at[h.Name] = h
			names = append(names, quoteMeta(h.Name))
		}
	}
	if len(names) == 0 {
		return nil
	}
	err := q.each(`tenstorrent_device_state{`+q.label+`=~`+strconv.Quote(strings.Join(names, "|"))+`} == 1`, func(l map[string]string, _ float64) {
		n, _ := strconv.Atoi(l["device"])
		if h := at[l[q.label]]; h != nil {
			h.States = append(h.States, text.FleetChip{Device: n, State: stateOf(l)})
		}
	})
	for i := range hosts {
		slices.SortFunc(hosts[i].States, func(a, b text.FleetChip) int { return a.Device - b.Device })
	}
	return err
}

// quoteMeta escapes what is special in a regular expression.
func quoteMeta(s string) string {
	var b strings.Builder
	for _, r := range s {
		if strings.ContainsRune(`\.+*?()|[]{}^$`, r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// host asks for one host, chip by chip.
func (q *fleetQuery) host(name string) (*text.FleetHost, error) {
	nan := math.NaN()
	only := q.label + "=" + strconv.Quote(name)
	chips := map[string]*text.FleetChip{}
	get := func(l map[string]string) *text.FleetChip {
		if chips[l["pci"]] == nil {
			n, _ := strconv.Atoi(l["device"])
			chips[l["pci"]] = &text.FleetChip{Device: n, State: model.StateUnknown, Temperature: nan, Power: nan, Clock: nan, Used: nan, Size: nan}
		}
		return chips[l["pci"]]
	}
	for _, ask := range []struct {
		expr string
		do   func(*text.FleetChip, map[string]string, float64)
	}{
		{`tenstorrent_device_state{` + only + `} == 1`, func(c *text.FleetChip, l map[string]string, _ float64) { c.State = stateOf(l) }},
		{`tenstorrent_device_info{` + only + `}`, func(c *text.FleetChip, l map[string]string, _ float64) { c.Board = l["board"] }},
		{`tenstorrent_asic_temperature_celsius{` + only + `}`, func(c *text.FleetChip, _ map[string]string, v float64) { c.Temperature = v }},
		{`tenstorrent_core_power_watts{` + only + `}`, func(c *text.FleetChip, _ map[string]string, v float64) { c.Power = v }},
		{`tenstorrent_clock_hertz{clock="ai",` + only + `}`, func(c *text.FleetChip, _ map[string]string, v float64) { c.Clock = v / 1e6 }},
		{`tenstorrent_memory_used_bytes{pool="dram",` + only + `}`, func(c *text.FleetChip, _ map[string]string, v float64) { c.Used = v }},
		{`tenstorrent_memory_size_bytes{pool="dram",` + only + `}`, func(c *text.FleetChip, _ map[string]string, v float64) { c.Size = v }},
		{`tenstorrent_memory_used_bound{pool="dram",` + only + `}`, func(c *text.FleetChip, _ map[string]string, v float64) { c.Bound = client.BoundOf(v) }},
	} {
		if err := q.each(ask.expr, func(l map[string]string, v float64) { ask.do(get(l), l, v) }); err != nil {
			return nil, err
		}
	}
	if len(chips) == 0 {
		return nil, fmt.Errorf("there is no host %q: ttmon fleet without it lists them", name)
	}
	h := &text.FleetHost{Name: name, Chips: map[model.State]int{}, Temperature: nan, Power: nan, Used: nan, Size: nan}
	for _, c := range chips {
		h.States = append(h.States, *c)
		h.Chips[c.State]++
		h.Power, h.Used, h.Size, h.Bound = text.Plus(h.Power, c.Power), text.Plus(h.Used, c.Used), text.Plus(h.Size, c.Size), max(h.Bound, c.Bound)
		if math.IsNaN(c.Power) { // it is not in the sum
			h.PowerBound = model.AtLeast
		}
		if math.IsNaN(c.Used) {
			h.Bound = max(h.Bound, model.AtLeast)
		}
	}
	slices.SortFunc(h.States, func(a, b text.FleetChip) int { return a.Device - b.Device })
	return h, nil
}
