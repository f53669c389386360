package sums

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Fleet is many hosts, as an engine aggregates them.
type Fleet struct {
	Hosts     []Host
	Alerts    []Alert
	Simulated int // hosts that ttmon-sim made up
	// Recorded: the engine had sums of hosts, and was not asked to add devices up.
	Recorded bool
	Links    *HostLinks // those that are down; nil: no host reports links to others
}

// Host is one host. Figures that are not known are NaN.
type Host struct {
	Name        string
	Chips       assess.Tally
	States      []Chip      // of the chips one by one; empty if not requested
	Temperature float64     // of the hottest chip, °C
	Power       float64     // W
	PowerBound  model.Bound // AtLeast where the power of some chips is not known
	Busy        float64     // mean of all its chips, 0…1; what is not known counts as idle
	BusyBound   model.Bound // AtLeast where it is not known of some chips
	Used, Size  float64     // DRAM, bytes
	Bound       model.Bound // of Used
	Alerts      int
	// Suspect: links to other hosts are down, and the cause is more likely this host
	// than those.
	Suspect *assess.SuspectHost
	Links   *HostLinks // to other hosts; nil if not requested
}

// NewHost is a host of which nothing is known.
func NewHost(name string) Host {
	nan := math.NaN()
	return Host{Name: name, Chips: assess.Tally{}, Temperature: nan, Power: nan, Busy: nan, Used: nan, Size: nan}
}

// NewChip is a chip of which nothing is known.
func NewChip(device int) Chip {
	nan := math.NaN()
	return Chip{Device: device, Temperature: nan, Power: nan, Clock: nan, Busy: nan, Used: nan, Size: nan}
}

// ShareBusy makes the mean of all chips out of the sum of those that report.
func (h *Host) ShareBusy() {
	if n := h.Chips.Count(); n > 0 {
		h.Busy = min(h.Busy/float64(n), 1)
		return
	}
	h.Busy = math.NaN()
}

// BusyText is how busy chips are, with its mark, or –.
func BusyText(ratio float64, bound model.Bound) string {
	if math.IsNaN(ratio) {
		return words.Nothing
	}
	return words.Busy(&model.Work{Busy: model.Value(ratio), Bound: bound})
}

// Watts is the host's power, marked where it leaves chips out.
func (h *Host) Watts() string {
	if math.IsNaN(h.Power) {
		return Watts(h.Power)
	}
	return words.Mark(h.PowerBound) + Watts(h.Power)
}

// Chip is one chip of a host.
type Chip struct {
	Device      int
	Board       string
	State       model.ConditionKind
	Temperature float64 // °C
	Power       float64 // W
	Clock       float64 // MHz
	Busy        float64 // 0…1
	BusyBound   model.Bound
	Used, Size  float64 // DRAM, bytes
	Bound       model.Bound
}

// Alert is an alert and where it fires.
type Alert struct {
	Name, Severity string
	Count          int
	Hosts          []string
	PerHost        map[string]int
}

// Level is how bad the worst is that is known of the host.
func (h *Host) Level() model.Level {
	if l := h.Chips.Level(); l > model.Fine || h.Alerts == 0 && h.Suspect == nil {
		return l
	}
	return model.Warning
}

// Reason is what is wrong with a host, in words: the conditions of its devices and
// the alerts that fire on it. Empty: nothing is.
func (h *Host) Reason(alerts []Alert) string {
	var list []string
	for _, c := range h.Chips.Counts() {
		if c.Level > model.Fine {
			list = append(list, fmt.Sprintf("%d %s", c.N, words.Kind(c.Kind)))
		}
	}
	if h.Suspect != nil {
		list = append(list, "likely cause of "+words.Count(h.Suspect.Links, "link")+" down")
	}
	for _, a := range alerts {
		if n := a.PerHost[h.Name]; n > 1 {
			list = append(list, fmt.Sprintf("%d × %s", n, words.Escape(a.Name)))
		} else if n == 1 {
			list = append(list, words.Escape(a.Name))
		}
	}
	return strings.Join(list, ", ")
}

// Sort puts the worst hosts first, then the hottest.
func Sort(hosts []Host) {
	slices.SortStableFunc(hosts, func(a, b Host) int {
		if order := cmp.Or(a.Chips.Compare(b.Chips), cmp.Compare(b.Alerts, a.Alerts)); order != 0 {
			return order
		}
		if ta, tb := a.Temperature, b.Temperature; !math.IsNaN(ta) && !math.IsNaN(tb) && ta != tb {
			return cmp.Compare(tb, ta)
		}
		return strings.Compare(a.Name, b.Name)
	})
}

// Total is all hosts together.
func (f *Fleet) Total() Host {
	total := NewHost("")
	for i := range f.Hosts {
		h := &f.Hosts[i]
		for state, n := range h.Chips {
			total.Chips[state] += n
		}
		total.Power, total.Used, total.Size = Plus(total.Power, h.Power), Plus(total.Used, h.Used), Plus(total.Size, h.Size)
		if math.IsNaN(total.Temperature) || h.Temperature > total.Temperature {
			total.Temperature = h.Temperature
		}
		total.Bound, total.PowerBound, total.BusyBound = max(total.Bound, h.Bound), max(total.PowerBound, h.PowerBound), max(total.BusyBound, h.BusyBound)
		total.Busy = Plus(total.Busy, h.Busy*float64(h.Chips.Count()))
		if math.IsNaN(h.Busy) {
			total.BusyBound = max(total.BusyBound, model.AtLeast)
		}
		if math.IsNaN(h.Used) {
			total.Bound = max(total.Bound, model.AtLeast) // it is not in the sum
		}
		if math.IsNaN(h.Power) {
			total.PowerBound = model.AtLeast
		}
	}
	total.ShareBusy()
	return total
}

// HostLinks are the Ethernet links between hosts, those that are down first.
type HostLinks struct {
	Ends int // that hosts report: two of a link whose ends are both on hosts of the fleet
	// Complete: Links has all of them. Otherwise only those that are down.
	Complete bool
	Links    []assess.HostLink
	Verdicts []assess.LinkVerdict // of each link
	Suspects []assess.SuspectHost
}

// Only leaves the links of one host. The verdicts on them stay those of the fleet.
func (f *HostLinks) Only(host string) {
	links, verdicts := f.Links, f.Verdicts
	f.Links, f.Verdicts = nil, nil
	for i := range links {
		if links[i].Ends[0].Host == host || links[i].Ends[1].Host == host {
			f.Links, f.Verdicts = append(f.Links, links[i]), append(f.Verdicts, verdicts[i])
		}
	}
	f.Suspects = slices.DeleteFunc(f.Suspects, func(s assess.SuspectHost) bool {
		return s.Host != host && !slices.Contains(s.Peers, host)
	})
}

// Down counts the links that are down.
func (f *HostLinks) Down() (n int) {
	for i := range f.Verdicts {
		if f.Verdicts[i].Down {
			n++
		}
	}
	return n
}

// Trouble says which hosts links are down because of, a line each, and then between
// which hosts others are.
func (f *HostLinks) Trouble(now time.Time) (lines []string) {
	for i := range f.Suspects {
		lines = append(lines, words.LinkSuspect(&f.Suspects[i], now))
	}
	type pair [2]string
	var order []pair
	count := map[pair]int{}
	for i := range f.Links {
		if v := &f.Verdicts[i]; !v.Down || v.Suspect != "" {
			continue
		}
		p := pair{f.Links[i].Ends[0].Host, f.Links[i].Ends[1].Host}
		if p[1] != "" && p[1] < p[0] || p[0] == "" {
			p[0], p[1] = p[1], p[0]
		}
		if count[p]++; count[p] == 1 {
			order = append(order, p)
		}
	}
	for _, p := range order {
		lines = append(lines, words.LinkEither(p[0], p[1], count[p]))
	}
	return lines
}

// Suspect is a host as the likely cause of links that are down; nil: it is not.
func (f *HostLinks) Suspect(host string) *assess.SuspectHost {
	if f == nil {
		return nil
	}
	if i := slices.IndexFunc(f.Suspects, func(s assess.SuspectHost) bool { return s.Host == host }); i >= 0 {
		return &f.Suspects[i]
	}
	return nil
}

// Summary counts the links: "12 links between hosts, 2 down".
func (f *HostLinks) Summary() string {
	down := "all up"
	if n := f.Down(); n > 0 {
		down = fmt.Sprintf("%d down", n)
	} else if slices.ContainsFunc(f.Links, unknownLink) {
		down = "none down, as far as they are read"
	}
	if !f.Complete {
		return fmt.Sprintf("%d ends of links between hosts, %s", f.Ends, down)
	}
	return fmt.Sprintf("%s between hosts, %s", words.Count(len(f.Links), "link"), down)
}

func unknownLink(l assess.HostLink) bool {
	return l.Ends[0].Report != assess.EndUp && l.Ends[1].Report != assess.EndUp
}

// Plus adds what is known: NaN is not.
func Plus(a, b float64) float64 {
	switch {
	case math.IsNaN(a):
		return b
	case math.IsNaN(b):
		return a
	}
	return a + b
}

// Celsius is a temperature, or –.
func Celsius(v float64) string { return inForm(metric.Celsius, v) }

// Megahertz is a clock, or –.
func Megahertz(v float64) string { return inForm(metric.Megahertz, v) }

// inForm formats the value that an engine has of a field; NaN is missing.
func inForm(f metric.Form, v float64) string {
	if math.IsNaN(v) {
		return words.Missing(model.Absent)
	}
	return f.Format(v)
}

// Watts is power, or –.
func Watts(v float64) string {
	switch {
	case math.IsNaN(v):
		return words.Nothing
	case v >= 10_000:
		return strconv.FormatFloat(v/1000, 'f', 1, 64) + " kW"
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " W"
}

// MemoryText is "12.3/24.0 GiB", with the mark of the bound.
func MemoryText(used, size float64, bound model.Bound) string {
	if math.IsNaN(used) || math.IsNaN(size) {
		return words.Nothing
	}
	return fmt.Sprintf("%s%.1f/%.1f GiB", words.Mark(bound), used/(1<<30), size/(1<<30))
}
