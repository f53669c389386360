// Package answer is a fleet as JSON: what the page is drawn from, and what ttmon
// fleet --json prints.
package answer

import (
	"context"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/sums"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/fleet/query"
)

// Answer is the fleet at one moment: a line for each host. The devices of the
// hosts in view are asked for by themselves: see Cells.
type Answer struct {
	Schema string    `json:"schema"` // ttmon.fleet/2
	Time   time.Time `json:"time"`
	Label  string    `json:"host_label"` // that distinguishes hosts
	// Recorded: the engine evaluates the recording rules, and was asked for sums.
	Recorded bool           `json:"recorded"`
	Metric   string         `json:"metric"`
	Unit     string         `json:"unit"`
	Range    [2]*float64    `json:"range"`  // lowest and highest value of all devices; null: not known
	States   []string       `json:"states"` // what the numbers in cells stand for
	Levels   []string       `json:"levels"` // how bad each state is: ok, warning or critical
	Marks    []string       `json:"marks"`  // the sign of each state
	Total    Figures        `json:"total"`
	Hosts    []*Host        `json:"hosts"` // worst first
	Chips    map[string]int `json:"chips"` // by state
	Alerts   []Firing       `json:"alerts"`
	// Links are the Ethernet links between hosts; null: none is known.
	Links *Links `json:"links"`
	// Simulated counts hosts that ttmon-sim made up.
	Simulated int `json:"simulated,omitempty"`
}

// Figures are the sums of devices; null: not known.
type Figures struct {
	Devices    int         `json:"devices"`
	Hottest    *float64    `json:"hottest_c"`
	Power      *float64    `json:"power_w"`
	PowerBound model.Bound `json:"power_bound"`
	Busy       *float64    `json:"busy"` // mean, 0…1
	BusyBound  model.Bound `json:"busy_bound"`
	Used       *float64    `json:"dram_used_bytes"`
	UsedBound  model.Bound `json:"dram_used_bound"`
	Size       *float64    `json:"dram_bytes"`
}

// Host is one host of a fleet.
type Host struct {
	Name    string `json:"name"`
	Address string `json:"address,omitempty"` // of its own page, where the engine has it
	Level   string `json:"level"`             // of the worst that is known of it
	// Reason is what is wrong, in words; empty: nothing is.
	Reason string `json:"reason,omitempty"`
	Alerts int    `json:"alerts"`
	Figures
	Jobs []string `json:"jobs,omitempty"` // for the search: jobs, pods, users
}

// Firing is an alert and how often it fires.
type Firing struct {
	Name     string `json:"name"`
	Severity string `json:"severity"`
	Count    int    `json:"count"`
}

// Cells are the devices of some hosts.
type Cells struct {
	Schema string `json:"schema"` // ttmon.fleet.cells/1
	Metric string `json:"metric"`
	Unit   string `json:"unit"`
	// Hosts has the devices of each: index, number of the state, value (null: not
	// known), bound (0 exact, 1 at least, 2 unsure).
	Hosts map[string][][4]*float64 `json:"hosts"`
}

// states in the order of their numbers, the worst last.
var states = sync.OnceValue(func() []model.ConditionKind {
	list := assess.States()
	slices.Reverse(list)
	return list
})

// Named lists the states with their words, levels and signs, by their numbers.
func Named() (texts, levels, marks []string) {
	for _, k := range states() {
		texts = append(texts, words.Kind(k))
		levels = append(levels, assess.LevelOf(k).String())
		marks = append(marks, words.StateMark(k))
	}
	return texts, levels, marks
}

// Querier sends the queries of one answer.
type Querier struct {
	Query *query.Query
	// Page is the address of a host's own page: {instance} and {host} stand for its
	// labels. Empty: hosts have no address.
	Page string
}

// timeout is how long an engine may take to answer all questions of an answer.
const timeout = 30 * time.Second

// Query asks for what a page in print would show.
func Query(ctx context.Context, p query.Page) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	q, err := query.New(ctx, p.Engine, p.Label)
	if err != nil {
		return nil, err
	}
	a := &Querier{Query: q}
	if p.Links {
		return a.Links(p.Host, time.Now())
	}
	col, ok := metric.Find(metric.Devices(), sums.Temperature)
	if !ok {
		panic("BUG: there is no field " + sums.Temperature)
	}
	return a.Fleet(col, time.Now())
}

// Fleet asks for a line of every host.
func (a *Querier) Fleet(m metric.Column[*model.Device], now time.Time) (*Answer, error) {
	all, err := a.Query.Fleet()
	if err != nil {
		return nil, err
	}
	sums.Sort(all.Hosts)
	total := all.Total()
	out := &Answer{
		Schema: "ttmon.fleet/2", Time: now.UTC(), Label: a.Query.Label(), Recorded: all.Recorded, Metric: m.Name, Unit: m.Unit,
		Links: linksOf(all.Links, now), Total: figures(&total), Hosts: []*Host{}, Chips: map[string]int{}, Alerts: []Firing{}, Simulated: all.Simulated,
	}
	out.States, out.Levels, out.Marks = Named()
	for k, n := range total.Chips {
		out.Chips[words.Kind(k)] += n
	}
	for _, f := range all.Alerts {
		out.Alerts = append(out.Alerts, Firing{f.Name, f.Severity, f.Count})
	}
	byName := map[string]*Host{}
	for i := range all.Hosts {
		h := &all.Hosts[i]
		x := &Host{Name: h.Name, Level: h.Level().String(), Reason: h.Reason(all.Alerts), Alerts: h.Alerts, Figures: figures(h)}
		out.Hosts = append(out.Hosts, x)
		byName[h.Name] = x
	}
	if err := a.scale(m, &out.Range); err != nil {
		return nil, err
	}
	if err := a.addJobs(byName); err != nil {
		return nil, err
	}
	if err := a.addAddresses(byName); err != nil {
		return nil, err
	}
	return out, nil
}

func figures(h *sums.Host) Figures {
	return Figures{
		Devices: h.Chips.Count(), Hottest: known(h.Temperature), Power: known(h.Power), PowerBound: h.PowerBound,
		Busy: known(h.Busy), BusyBound: h.BusyBound, Used: known(h.Used), UsedBound: h.Bound, Size: known(h.Size),
	}
}

// known is a figure, or nil.
func known(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// scale asks for the lowest and the highest value of a field on any device.
func (a *Querier) scale(m metric.Column[*model.Device], ends *[2]*float64) error {
	expr, per, _ := m.Query("1m")
	if m.Per != 0 {
		per *= m.Per
	}
	for i, by := range []string{"min", "max"} {
		err := a.Query.Sum(sums.Sum{Of: expr, By: by}, func(_ map[string]string, v float64) {
			v /= per
			lower := ends[i] == nil || v < *ends[i]
			higher := ends[i] == nil || v > *ends[i]
			if known(v) != nil && (by == "min" && lower || by == "max" && higher) {
				ends[i] = &v
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Cells asks for the devices of some hosts.
func (a *Querier) Cells(m metric.Column[*model.Device], hosts []string) (*Cells, error) {
	chips, err := a.Query.Chips(hosts)
	if err != nil {
		return nil, err
	}
	out := &Cells{Schema: "ttmon.fleet.cells/1", Metric: m.Name, Unit: m.Unit, Hosts: map[string][][4]*float64{}}
	at := map[string]map[int]int{}
	for name, list := range chips {
		at[name] = map[int]int{}
		out.Hosts[name] = make([][4]*float64, len(list))
		for i, c := range list {
			index, state := float64(c.Device), float64(max(slices.Index(states(), c.State), 0))
			out.Hosts[name][i] = [4]*float64{&index, &state}
			at[name][c.Device] = i
		}
	}
	set := func(field int) func(string, int, float64) {
		return func(host string, device int, v float64) {
			if i, ok := at[host][device]; ok {
				out.Hosts[host][i][field] = &v
			}
		}
	}
	return out, a.Query.Values(m, hosts, set(2), set(3))
}

// maxJobs bounds what can be searched for on one host.
const maxJobs = 64

func (a *Querier) addJobs(hosts map[string]*Host) error {
	label := a.Query.Label()
	add := func(h *Host, what string) {
		if h != nil && len(h.Jobs) < maxJobs && !slices.Contains(h.Jobs, what) {
			h.Jobs = append(h.Jobs, what)
		}
	}
	err := a.Query.Sum(sums.Workloads(), func(l map[string]string, _ float64) {
		for _, key := range []string{"slurm_job", "pod", "container", "unit", "namespace"} {
			if v := l[key]; v != "" {
				add(hosts[l[label]], strings.TrimSuffix(key, "_job")+" "+v)
			}
		}
	})
	if err != nil {
		return err
	}
	return a.Query.Sum(sums.Users(), func(l map[string]string, _ float64) {
		if l["user"] != "" {
			add(hosts[l[label]], "user "+l["user"])
		}
	})
}

// Labels come from any host that is scraped: only those that look like a host become
// part of a link.
var (
	instance = regexp.MustCompile(`^(\[[0-9a-fA-F:]+\]|[0-9A-Za-z._-]+):[0-9]+$`)
	hostName = regexp.MustCompile(`^(\[[0-9a-fA-F:]+\]|[0-9A-Za-z._-]+)$`)
)

func (a *Querier) addAddresses(hosts map[string]*Host) error {
	label := a.Query.Label()
	return a.Query.Sum(sums.Instances(), func(l map[string]string, _ float64) {
		h := hosts[l[label]]
		if h == nil {
			return
		}
		at := l["instance"]
		name := l[label]
		if label == "instance" { // without its port
			name = name[:max(strings.LastIndex(name, ":"), 0)]
		}
		if strings.Contains(a.Page, "{instance}") && !instance.MatchString(at) || strings.Contains(a.Page, "{host}") && !hostName.MatchString(name) {
			return
		}
		h.Address = strings.NewReplacer("{instance}", at, "{host}", name).Replace(a.Page)
	})
}
