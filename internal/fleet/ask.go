package fleet

import (
	"cmp"
	"context"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/api/client"
	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Answer is the fleet at one moment, coloured by one metric.
type Answer struct {
	Schema string         `json:"schema"` // ttmon.fleet/1
	Time   time.Time      `json:"time"`
	Label  string         `json:"host_label"` // that tells hosts apart
	Metric string         `json:"metric"`
	Unit   string         `json:"unit"`
	States []string       `json:"states"` // what the numbers in cells stand for
	Levels []string       `json:"levels"` // how bad each state is: ok, warning or critical
	Hosts  []*Host        `json:"hosts"`  // worst first
	Chips  map[string]int `json:"chips"`  // by state
	Alerts []Firing       `json:"alerts"`
}

// Host is one host of a fleet.
type Host struct {
	Name    string   `json:"name"`
	Address string   `json:"address,omitempty"` // of its own page, where the engine tells it
	Alerts  int      `json:"alerts"`
	Jobs    []string `json:"jobs,omitempty"` // for the search: jobs, pods, users
	// Cells are its devices: index, number of the state, value (null: not
	// known), bound (0 exact, 1 at least, 2 unsure).
	Cells [][4]*float64 `json:"cells"`

	tally   assess.Tally
	highest float64
}

// Firing is an alert and how often it fires.
type Firing struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
}

// states in the order of their numbers, the worst last.
var states = func() []model.ConditionKind {
	list := assess.States()
	slices.Reverse(list)
	return list
}()

// named lists the states with their words and levels, by their numbers.
func named() (texts, levels []string) {
	for _, k := range states {
		texts = append(texts, words.Kind(k))
		levels = append(levels, assess.LevelOf(k).String())
	}
	return texts, levels
}

// asker asks the questions of one answer.
type asker struct {
	ctx   context.Context
	p     *client.Prometheus
	label string
	page  string // see Options
}

// each asks and calls f with every series and its value.
func (a *asker) each(expr string, f func(labels map[string]string, v float64)) error {
	list, err := a.p.Query(a.ctx, expr)
	for i := range list {
		if len(list[i].Points) > 0 {
			f(list[i].Labels, list[i].Points[0].Value)
		}
	}
	return err
}

// fleet asks for every chip of every host.
func (a *asker) fleet(m metric.Column[*model.Device], now time.Time) (_ *Answer, err error) {
	if a.label == "" {
		if a.label, err = a.p.HostLabel(a.ctx); err != nil {
			return nil, err
		}
	}
	out := &Answer{Schema: "ttmon.fleet/1", Time: now.UTC(), Label: a.label, Metric: m.Name, Unit: m.Unit, Hosts: []*Host{}, Chips: map[string]int{}, Alerts: []Firing{}}
	out.States, out.Levels = named()
	hosts := map[string]*Host{}
	cells := map[string]map[string][4]*float64{}
	steps := []func() error{
		func() error { return a.stateCells(out, hosts, cells) },
		func() error { return a.values(m, cells) },
		func() error { return a.alerts(out, hosts) },
		func() error { return a.jobs(hosts) },
		func() error { return a.addresses(hosts) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return nil, err
		}
	}
	for name, h := range hosts {
		for _, key := range slices.SortedFunc(maps.Keys(cells[name]), byNumber) {
			h.add(cells[name][key])
		}
		out.Hosts = append(out.Hosts, h)
	}
	slices.SortFunc(out.Hosts, worse)
	return out, nil
}

func byNumber(a, b string) int {
	x, _ := strconv.Atoi(a)
	y, _ := strconv.Atoi(b)
	return cmp.Or(cmp.Compare(x, y), strings.Compare(a, b))
}

// add takes a cell in, and notes how bad it is.
func (h *Host) add(c [4]*float64) {
	h.Cells = append(h.Cells, c)
	h.tally[states[int(*c[1])]]++
	if c[2] != nil {
		h.highest = max(h.highest, *c[2])
	}
}

// worse orders hosts: trouble first, then alerts, then the highest value.
func worse(a, b *Host) int {
	return cmp.Or(a.tally.Compare(b.tally), cmp.Compare(b.Alerts, a.Alerts), cmp.Compare(b.highest, a.highest), strings.Compare(a.Name, b.Name))
}

// stateCells asks for the conditions that hold, and for the states: a ttmond that
// does not tell conditions yet tells those.
func (a *asker) stateCells(out *Answer, hosts map[string]*Host, cells map[string]map[string][4]*float64) error {
	err := a.each("max by ("+a.label+`, device, state, condition) ({__name__=~"tenstorrent_device_(condition|state)"} == 1)`, func(l map[string]string, _ float64) {
		name := l[a.label]
		if hosts[name] == nil {
			hosts[name] = &Host{Name: name, Cells: [][4]*float64{}, tally: assess.Tally{}, highest: math.Inf(-1)}
			cells[name] = map[string][4]*float64{}
		}
		state := slices.Index(states, model.ConditionKind(l["state"]+l["condition"]))
		switch {
		case state < 0 && l["condition"] != "": // no state: worth knowing at most
			state = 0
		case state < 0:
			state = slices.Index(states, model.ConditionUnknown)
		}
		index, _ := strconv.ParseFloat(l["device"], 64)
		number := float64(state)
		if c, ok := cells[name][l["device"]]; ok {
			number = max(number, *c[1])
		}
		cells[name][l["device"]] = [4]*float64{&index, &number, nil, nil}
	})
	for _, list := range cells {
		for _, c := range list {
			out.Chips[words.Kind(states[int(*c[1])])]++
		}
	}
	return err
}

func (a *asker) values(m metric.Column[*model.Device], cells map[string]map[string][4]*float64) error {
	expr, per, _ := m.Query("1m")
	if m.Per != 0 {
		per *= m.Per
	}
	set := func(at int, per float64) func(map[string]string, float64) {
		return func(l map[string]string, v float64) {
			if c, ok := cells[l[a.label]][l["device"]]; ok && !math.IsNaN(v) && !math.IsInf(v, 0) {
				v /= per
				c[at] = &v
				cells[l[a.label]][l["device"]] = c
			}
		}
	}
	if err := a.each("max by ("+a.label+", device) ("+expr+")", set(2, per)); err != nil {
		return err
	}
	bound, ok := m.QueryBound()
	if !ok {
		return nil
	}
	return a.each("max by ("+a.label+", device) ("+bound+")", set(3, 1))
}

func (a *asker) alerts(out *Answer, hosts map[string]*Host) error {
	count := map[Firing]int{}
	err := a.each("count by ("+a.label+`, alertname, severity) (ALERTS{alertstate="firing"})`, func(l map[string]string, v float64) {
		h := hosts[l[a.label]]
		if h == nil {
			return
		}
		h.Alerts += int(v)
		count[Firing{Name: l["alertname"], Severity: l["severity"]}] += int(v)
	})
	for x, n := range count {
		x.Count = n
		out.Alerts = append(out.Alerts, x)
	}
	slices.SortFunc(out.Alerts, func(a, b Firing) int {
		return cmp.Or(cmp.Compare(words.AlertLevel(b.Severity), words.AlertLevel(a.Severity)), strings.Compare(a.Name, b.Name))
	})
	return err
}

// maxJobs bounds what can be searched for on one host.
const maxJobs = 64

func (a *asker) jobs(hosts map[string]*Host) error {
	add := func(h *Host, what string) {
		if h != nil && len(h.Jobs) < maxJobs && !slices.Contains(h.Jobs, what) {
			h.Jobs = append(h.Jobs, what)
		}
	}
	err := a.each("count by ("+a.label+", namespace, pod, container, slurm_job, unit) (tenstorrent_workload_memory_used_bytes)", func(l map[string]string, _ float64) {
		for _, key := range []string{"slurm_job", "pod", "container", "unit", "namespace"} {
			if v := l[key]; v != "" {
				add(hosts[l[a.label]], strings.TrimSuffix(key, "_job")+" "+v)
			}
		}
	})
	if err != nil {
		return err
	}
	return a.each("count by ("+a.label+", user) (tenstorrent_process_memory_used_bytes)", func(l map[string]string, _ float64) {
		if l["user"] != "" {
			add(hosts[l[a.label]], "user "+l["user"])
		}
	})
}

// What labels may be to become part of an address: whatever else an engine has,
// nobody is led to it.
var (
	instance = regexp.MustCompile(`^(\[[0-9a-fA-F:]+\]|[0-9A-Za-z._-]+):[0-9]+$`)
	hostName = regexp.MustCompile(`^(\[[0-9a-fA-F:]+\]|[0-9A-Za-z._-]+)$`)
)

func (a *asker) addresses(hosts map[string]*Host) error {
	return a.each("count by ("+a.label+", instance) (tenstorrent_devices)", func(l map[string]string, _ float64) {
		h := hosts[l[a.label]]
		if h == nil {
			return
		}
		at := l["instance"]
		name := l[a.label]
		if a.label == "instance" { // without its port
			name = name[:max(strings.LastIndex(name, ":"), 0)]
		}
		if strings.Contains(a.page, "{instance}") && !instance.MatchString(at) || strings.Contains(a.page, "{host}") && !hostName.MatchString(name) {
			return
		}
		h.Address = strings.NewReplacer("{instance}", at, "{host}", name).Replace(a.page)
	})
}
