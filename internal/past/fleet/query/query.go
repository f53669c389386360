// Package query asks a Prometheus-compatible engine about many hosts, for ttmon
// fleet: one line a host, the chips of some, one host chip by chip. The engine
// adds up.
package query

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/node/api/client"
)

// Query asks the questions of one page.
type Query struct {
	ctx    context.Context
	engine *client.Prometheus
	label  string // that distinguishes hosts
	from   *sums.Source
}

// New is a query within ctx. label distinguishes hosts; without one, the engine
// is asked which it is.
func New(ctx context.Context, engine *client.Prometheus, label string) (*Query, error) {
	if strings.ContainsFunc(label, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		return nil, fmt.Errorf("--host-label: %q is not a label name", label)
	}
	if label == "" {
		var err error
		if label, err = engine.HostLabel(ctx); err != nil {
			return nil, err
		}
	}
	return &Query{ctx: ctx, engine: engine, label: label}, nil
}

// each asks and calls f with every series and its value.
func (q *Query) each(expr string, f func(labels map[string]string, v float64)) error {
	list, err := q.engine.Query(q.ctx, expr)
	for _, s := range list {
		if len(s.Points) > 0 {
			f(s.Labels, s.Points[0].Value)
		}
	}
	return err
}

// all asks several questions at once. The first failure is returned.
func (q *Query) all(n int, expr func(i int) string) ([][]client.Series, error) {
	replies, failures := make([][]client.Series, n), make([]error, n)
	var wait sync.WaitGroup
	for i := range n {
		wait.Go(func() { replies[i], failures[i] = q.engine.Query(q.ctx, expr(i)) })
	}
	wait.Wait()
	for _, err := range failures {
		if err != nil {
			return nil, err
		}
	}
	return replies, nil
}

// source asks where the engine has the sums of hosts. An engine without the
// recording rules, or whose rules are not evaluated any more, adds devices up.
func (q *Query) source() (sums.Source, error) {
	if q.from != nil {
		return *q.from, nil
	}
	expr := []string{"count(count by (" + q.label + ") (tenstorrent_devices))", "count(" + sums.Fresh(q.label) + ")"}
	replies, err := q.all(len(expr), func(i int) string { return expr[i] })
	if err != nil {
		return sums.Devices, err
	}
	var n [2]float64
	for i, list := range replies {
		if len(list) > 0 && len(list[0].Points) > 0 {
			n[i] = list[0].Points[0].Value
		}
	}
	from := sums.Recorded
	switch hosts, recorded := n[0], n[1]; {
	case recorded == 0:
		from = sums.Devices
	case recorded < hosts:
		from = sums.Both
	}
	q.from = &from
	return from, nil
}

// Fleet asks for one line a host: the engine adds up, or has done so.
func (q *Query) Fleet() (*sums.Fleet, error) {
	from, err := q.source()
	if err != nil {
		return nil, err
	}
	a := &answers{label: q.label, from: from, hosts: map[string]*line{}, alerts: map[string]*sums.Alert{}}
	questions := a.questions()
	replies, err := q.all(len(questions), func(i int) string { return questions[i].expr })
	if err != nil {
		return nil, err
	}
	for i, list := range replies {
		for _, s := range list {
			if len(s.Points) > 0 {
				questions[i].take(s.Labels, s.Points[0].Value)
			}
		}
	}
	links, err := q.linksDown(a.linkEnds)
	if err != nil {
		return nil, err
	}
	f := &sums.Fleet{Links: links, Simulated: a.simulated, Alerts: sortedAlerts(a.alerts), Recorded: from != sums.Devices}
	for _, h := range a.hosts {
		f.Hosts = append(f.Hosts, h.host())
	}
	for i := range f.Hosts {
		f.Hosts[i].Suspect = links.Suspect(f.Hosts[i].Name)
	}
	slices.SortFunc(f.Hosts, func(a, b sums.Host) int { return strings.Compare(a.Name, b.Name) })
	return f, nil
}

// Sum asks for a figure of each host.
func (q *Query) Sum(s sums.Sum, take func(labels map[string]string, v float64)) error {
	from := sums.Devices
	if sums.IsRecorded(s) {
		var err error
		if from, err = q.source(); err != nil {
			return err
		}
	}
	return q.each(s.Query(q.label, from), take)
}

// Label distinguishes hosts.
func (q *Query) Label() string { return q.label }

// answers is what the engine has answered about all hosts.
type answers struct {
	label     string // that distinguishes hosts
	from      sums.Source
	hosts     map[string]*line
	alerts    map[string]*sums.Alert
	simulated int
	linkEnds  int
}

// line is a host, and of how many of its devices each sum is.
type line struct {
	sums.Host
	devices, power, used, busy int
}

// host marks the sums that devices are missing in.
func (l *line) host() sums.Host {
	h := l.Host
	n := max(l.devices, h.Chips.Count())
	if l.power < n {
		h.PowerBound = model.AtLeast
	}
	if l.used < n {
		h.Bound = max(h.Bound, model.AtLeast)
	}
	if l.busy < n {
		h.BusyBound = max(h.BusyBound, model.AtLeast)
	}
	h.ShareBusy()
	return h
}

// question is one question, and what is done with each series of the answer.
type question struct {
	expr string
	take func(labels map[string]string, v float64)
}

func (a *answers) questions() []question {
	type labels = map[string]string
	host := a.host
	ask := func(s sums.Sum, take func(labels, float64)) question { return question{s.Query(a.label, a.from), take} }
	return []question{
		ask(sums.Hosts(), func(l labels, v float64) { host(l).devices = int(v) }),
		ask(sums.Conditions(), func(l labels, v float64) { host(l).Chips[stateOf(l["condition"])] += int(v) }),
		ask(sums.Field(sums.Temperature, "max"), func(l labels, v float64) { host(l).Temperature = v }),
		ask(sums.Field(sums.Power, "sum"), func(l labels, v float64) { host(l).Power = v }),
		ask(sums.Field(sums.Power, "count"), func(l labels, v float64) { host(l).power = int(v) }),
		ask(sums.Field(sums.Used, "sum"), func(l labels, v float64) { host(l).Used = v }),
		ask(sums.Field(sums.Used, "count"), func(l labels, v float64) { host(l).used = int(v) }),
		ask(sums.Bound(sums.Used), func(l labels, v float64) { host(l).Bound = max(host(l).Bound, client.BoundOf(v)) }),
		ask(sums.Field(sums.Size, "sum"), func(l labels, v float64) { host(l).Size = v }),
		ask(sums.Field(sums.Busy, "sum"), func(l labels, v float64) { host(l).Busy = v }),
		ask(sums.Field(sums.Busy, "count"), func(l labels, v float64) { host(l).busy = int(v) }),
		ask(sums.Bound(sums.Busy), func(l labels, v float64) { host(l).BusyBound = max(host(l).BusyBound, client.BoundOf(v)) }),
		ask(sums.Links(), func(_ labels, v float64) { a.linkEnds += int(v) }),
		ask(sums.Simulated(), func(_ labels, v float64) { a.simulated += int(v) }),
		{"count by (" + a.label + `, alertname, severity) (ALERTS{alertstate="firing"})`, func(l labels, v float64) { a.alert(l, int(v)) }},
	}
}

// host is the host that labels name.
func (a *answers) host(labels map[string]string) *line {
	name := labels[a.label]
	if a.hosts[name] == nil {
		a.hosts[name] = &line{Host: sums.NewHost(name)}
	}
	return a.hosts[name]
}

// alert counts an alert on its host. An alert without a host is not about devices.
func (a *answers) alert(labels map[string]string, n int) {
	host := labels[a.label]
	if host == "" {
		return
	}
	a.host(labels).Alerts += n
	key := labels["alertname"] + "\x00" + labels["severity"]
	if a.alerts[key] == nil {
		a.alerts[key] = &sums.Alert{Name: labels["alertname"], Severity: labels["severity"], PerHost: map[string]int{}}
	}
	x := a.alerts[key]
	x.Count += n
	x.Hosts = append(x.Hosts, host)
	x.PerHost[host] += n
}

// conditionsOf asks for the conditions and the states of devices that hold.
func conditionsOf(selector string) string {
	return `{__name__=~"tenstorrent_device_(condition|state)",` + selector + `} == 1`
}

// stateOf is the state that a label names. Clients that write to the engine choose the
// label, a future ttmond too: a state that this version does not have is unknown.
func stateOf(word string) model.ConditionKind {
	if k := model.ConditionKind(word); slices.Contains(assess.States(), k) {
		return k
	}
	return model.ConditionUnknown
}

// worse is the worse of a state and the one that labels name. Conditions that
// are no states change nothing.
func worse(is model.ConditionKind, labels map[string]string) model.ConditionKind {
	word := labels["condition"] + labels["state"]
	if k := model.ConditionKind(word); labels["condition"] != "" && !slices.Contains(assess.States(), k) {
		return is
	}
	if k := stateOf(word); is == "" || assess.CompareKinds(k, is) < 0 {
		return k
	}
	return is
}

// sortedAlerts lists alerts, the most severe first.
func sortedAlerts(alerts map[string]*sums.Alert) (list []sums.Alert) {
	for _, a := range alerts {
		slices.Sort(a.Hosts)
		list = append(list, *a)
	}
	slices.SortFunc(list, func(a, b sums.Alert) int {
		return cmp.Or(cmp.Compare(words.AlertLevel(b.Severity), words.AlertLevel(a.Severity)), strings.Compare(a.Name, b.Name))
	})
	return list
}

// Cells asks for the chips of the hosts that are shown, one by one.
func (q *Query) Cells(hosts []sums.Host) error {
	at := map[string]*sums.Host{}
	var names []string
	for i := range hosts {
		if h := &hosts[i]; h.Name != "" {
			at[h.Name] = h
			names = append(names, h.Name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	err := q.each(conditionsOf(metric.Matcher(q.label, names...)), func(l map[string]string, _ float64) {
		h := at[l[q.label]]
		if h == nil {
			return
		}
		n, _ := strconv.Atoi(l["device"])
		i := slices.IndexFunc(h.States, func(c sums.Chip) bool { return c.Device == n })
		if i < 0 {
			i, h.States = len(h.States), append(h.States, sums.Chip{Device: n})
		}
		h.States[i].State = worse(h.States[i].State, l)
	})
	for i := range hosts {
		slices.SortFunc(hosts[i].States, func(a, b sums.Chip) int { return a.Device - b.Device })
	}
	return err
}

// Values asks for a field of the devices of some hosts, in the unit that is shown,
// and for its bounds: 0 exact, 1 at least, 2 unsure.
func (q *Query) Values(m metric.Column[*model.Device], hosts []string, value, bound func(host string, device int, v float64)) error {
	only := metric.Matcher(q.label, hosts...)
	expr, per, ok := m.Query("1m", only)
	if !ok || len(hosts) == 0 {
		return nil
	}
	if m.Per != 0 {
		per *= m.Per
	}
	ask := func(expr string, per float64, take func(string, int, float64)) error {
		return q.each("max by ("+q.label+", device) ("+expr+")", func(l map[string]string, v float64) {
			n, err := strconv.Atoi(l["device"])
			if err == nil && !math.IsNaN(v) && !math.IsInf(v, 0) {
				take(l[q.label], n, v/per)
			}
		})
	}
	if err := ask(expr, per, value); err != nil {
		return err
	}
	if expr, ok := m.QueryBound(only); ok {
		return ask(expr, 1, bound)
	}
	return nil
}

// Host asks for one host, chip by chip.
func (q *Query) Host(name string) (*sums.Host, error) {
	only := q.label + "=" + strconv.Quote(name)
	chips := map[string]*sums.Chip{}
	get := func(l map[string]string) *sums.Chip {
		if chips[l["pci"]] == nil {
			n, _ := strconv.Atoi(l["device"])
			c := sums.NewChip(n)
			chips[l["pci"]] = &c
		}
		return chips[l["pci"]]
	}
	for _, ask := range []struct {
		expr string
		do   func(*sums.Chip, map[string]string, float64)
	}{
		{conditionsOf(only), func(c *sums.Chip, l map[string]string, _ float64) { c.State = worse(c.State, l) }},
		{`tenstorrent_device_info{` + only + `}`, func(c *sums.Chip, l map[string]string, _ float64) { c.Board = l["board"] }},
		{`tenstorrent_asic_temperature_celsius{` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Temperature = v }},
		{`tenstorrent_core_power_watts{` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Power = v }},
		{`tenstorrent_clock_hertz{clock="ai",` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Clock = v / 1e6 }},
		{`tenstorrent_busy_ratio{` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Busy = v }},
		{`tenstorrent_busy_bound{` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.BusyBound = client.BoundOf(v) }},
		{`tenstorrent_memory_used_bytes{pool="dram",` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Used = v }},
		{`tenstorrent_memory_size_bytes{pool="dram",` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Size = v }},
		{`tenstorrent_memory_used_bound{pool="dram",` + only + `}`, func(c *sums.Chip, _ map[string]string, v float64) { c.Bound = client.BoundOf(v) }},
	} {
		if err := q.each(ask.expr, func(l map[string]string, v float64) { ask.do(get(l), l, v) }); err != nil {
			return nil, err
		}
	}
	if len(chips) == 0 {
		return nil, fmt.Errorf("no such host: %q; ttmon fleet lists them", name)
	}
	h := sums.NewHost(name)
	for _, c := range chips {
		c.State = stateOf(string(c.State))
		h.States = append(h.States, *c)
		h.Chips[c.State]++
		h.Power, h.Used, h.Size, h.Bound = sums.Plus(h.Power, c.Power), sums.Plus(h.Used, c.Used), sums.Plus(h.Size, c.Size), max(h.Bound, c.Bound)
		h.Busy, h.BusyBound = sums.Plus(h.Busy, c.Busy), max(h.BusyBound, c.BusyBound)
		if math.IsNaN(c.Busy) {
			h.BusyBound = max(h.BusyBound, model.AtLeast)
		}
		if math.IsNaN(c.Power) { // it is not in the sum
			h.PowerBound = model.AtLeast
		}
		if math.IsNaN(c.Used) {
			h.Bound = max(h.Bound, model.AtLeast)
		}
	}
	slices.SortFunc(h.States, func(a, b sums.Chip) int { return a.Device - b.Device })
	h.ShareBusy()
	links, err := q.Links(name)
	if err != nil {
		return nil, err
	}
	h.Links = links
	return &h, nil
}
