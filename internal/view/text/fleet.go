package text

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Fleet is many hosts, as an engine aggregates them.
type Fleet struct {
	Hosts     []FleetHost
	Alerts    []FleetAlert
	Simulated int // hosts that ttmon-sim made up
	// Recorded: the engine had sums of hosts, and was not asked to add devices up.
	Recorded bool
	Links    *FleetLinks // those that are down; nil: no host reports links to others
}

// FleetHost is one host. Figures that are not known are NaN.
type FleetHost struct {
	Name        string
	Chips       assess.Tally
	States      []FleetChip // of the chips one by one; empty if not requested
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
	Links   *FleetLinks // to other hosts; nil if not requested
}

// NewFleetHost is a host of which nothing is known.
func NewFleetHost(name string) FleetHost {
	nan := math.NaN()
	return FleetHost{Name: name, Chips: assess.Tally{}, Temperature: nan, Power: nan, Busy: nan, Used: nan, Size: nan}
}

// NewFleetChip is a chip of which nothing is known.
func NewFleetChip(device int) FleetChip {
	nan := math.NaN()
	return FleetChip{Device: device, Temperature: nan, Power: nan, Clock: nan, Busy: nan, Used: nan, Size: nan}
}

// ShareBusy makes the mean of all chips out of the sum of those that report.
func (h *FleetHost) ShareBusy() {
	if n := h.Chips.Count(); n > 0 {
		h.Busy = min(h.Busy/float64(n), 1)
		return
	}
	h.Busy = math.NaN()
}

// FleetBusy is how busy chips are, with its mark, or N/A.
func FleetBusy(ratio float64, bound model.Bound) string {
	if math.IsNaN(ratio) {
		return "N/A"
	}
	return words.Busy(&model.Work{Busy: model.Value(ratio), Bound: bound})
}

// Watts is the host's power, marked where it leaves chips out.
func (h *FleetHost) Watts() string {
	if math.IsNaN(h.Power) {
		return Watts(h.Power)
	}
	return words.Mark(h.PowerBound) + Watts(h.Power)
}

// FleetChip is one chip of a host.
type FleetChip struct {
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

// FleetAlert is an alert and where it fires.
type FleetAlert struct {
	Name, Severity string
	Count          int
	Hosts          []string
	PerHost        map[string]int
}

// Level is how bad the worst is that is known of the host.
func (h *FleetHost) Level() model.Level {
	if l := h.Chips.Level(); l > model.Fine || h.Alerts == 0 && h.Suspect == nil {
		return l
	}
	return model.Warning
}

// Reason is what is wrong with a host, in words: the conditions of its devices and
// the alerts that fire on it. Empty: nothing is.
func (h *FleetHost) Reason(alerts []FleetAlert) string {
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

// SortFleet puts the worst hosts first, then the hottest.
func SortFleet(hosts []FleetHost) {
	slices.SortStableFunc(hosts, func(a, b FleetHost) int {
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
func (f *Fleet) Total() FleetHost {
	total := NewFleetHost("")
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

// AppendFleet draws totals, alerts, and the first rows hosts.
func AppendFleet(dst []byte, f Fleet, now time.Time, rows int) []byte {
	total := f.Total()
	if f.Simulated > 0 {
		dst = fmt.Appendf(dst, "SIMULATED: %s made up by ttmon-sim\n", words.Count(f.Simulated, "host"))
	}
	dst = fmt.Appendf(dst, "%s  %s  %s  hottest %s  %s  busy %s  DRAM %s\n", words.Count(len(f.Hosts), "host"), words.Count(total.Chips.Count(), "device"), stateCounts(total.Chips),
		Celsius(total.Temperature), total.Watts(), FleetBusy(total.Busy, total.BusyBound), FleetMemory(total.Used, total.Size, total.Bound))
	for _, a := range f.Alerts {
		where := a.Hosts[:min(len(a.Hosts), 5)]
		dst = fmt.Appendf(dst, "  alert %s (%s): %d on %s", words.Escape(a.Name), words.Escape(a.Severity), a.Count, words.Escape(strings.Join(where, ", ")))
		if n := len(a.Hosts) - len(where); n > 0 {
			dst = fmt.Appendf(dst, " and %d more", n)
		}
		dst = append(dst, '\n')
	}
	if f.Links != nil {
		for _, line := range f.Links.Trouble(now) {
			dst = fmt.Appendf(dst, "  links: %s\n", line)
		}
	}
	width := 4
	shown := f.Hosts[:min(len(f.Hosts), rows)]
	for i := range shown {
		width = max(width, words.Width(words.Escape(shown[i].Name)))
	}
	width = min(width, 40)
	dst = fmt.Appendf(dst, "\n  %s  %-33s %7s %9s %7s  %s\n", pad("HOST", width, false), "DEVICES", "HOTTEST", "POWER", "BUSY", "DRAM")
	for i := range shown {
		h := &shown[i]
		dst = fmt.Appendf(dst, "  %s  %s %s %s %s  %s", words.Fit(words.Escape(h.Name), width), words.Pad(cellsOf(h), 33),
			words.PadLeft(Celsius(h.Temperature), 7), words.PadLeft(h.Watts(), 9), words.PadLeft(FleetBusy(h.Busy, h.BusyBound), 7), FleetMemory(h.Used, h.Size, h.Bound))
		if h.Level() > model.Fine {
			dst = append(dst, "  "+stateCounts(h.Chips)...)
		}
		if h.Suspect != nil {
			dst = append(dst, "  likely cause of "+words.Count(h.Suspect.Links, "link")+" down"...)
		}
		if h.Alerts > 0 {
			dst = append(dst, "  "+words.Count(h.Alerts, "alert")...)
		}
		dst = append(dst, '\n')
	}
	if n := len(f.Hosts) - len(shown); n > 0 {
		dst = fmt.Appendf(dst, "  … and %s more, all better than these\n", words.Count(n, "host"))
	}
	return dst
}

// AppendFleetHost draws one host, chip by chip.
func AppendFleetHost(dst []byte, h *FleetHost, now time.Time) []byte {
	dst = fmt.Appendf(dst, "%s  %s  %s  %s  busy %s  DRAM %s\n\n", words.Escape(h.Name), words.Count(h.Chips.Count(), "device"), stateCounts(h.Chips), h.Watts(), FleetBusy(h.Busy, h.BusyBound),
		FleetMemory(h.Used, h.Size, h.Bound))
	dst = fmt.Appendf(dst, "  %3s  %-14s %-10s %7s %9s %9s %7s  %s\n", "#", "BOARD", "STATE", "TEMP", "POWER", "AICLK", "BUSY", "DRAM")
	for _, c := range h.States {
		dst = fmt.Appendf(dst, "  %3d  %s %-10s %7s %9s %9s %s  %s\n", c.Device, words.Fit(words.Escape(c.Board), 14), words.Kind(c.State), Celsius(c.Temperature), Watts(c.Power), Megahertz(c.Clock),
			words.PadLeft(FleetBusy(c.Busy, c.BusyBound), 7), FleetMemory(c.Used, c.Size, c.Bound))
	}
	if h.Links != nil && h.Links.Ends > 0 {
		dst = AppendFleetLinks(append(dst, '\n'), h.Links, now, len(h.Links.Links))
	}
	return dst
}

// cellsOf is a cell for each chip, or their number where there are too many.
func cellsOf(h *FleetHost) string {
	if len(h.States) == 0 || len(h.States) > 32 {
		return words.Count(h.Chips.Count(), "device")
	}
	var b strings.Builder
	for _, c := range h.States {
		b.WriteString(words.StateMark(c.State))
	}
	return b.String()
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

func stateCounts(chips assess.Tally) string {
	var list []string
	for _, n := range chips.Counts() {
		list = append(list, fmt.Sprintf("%d %s", n.N, words.Kind(n.Kind)))
	}
	return strings.Join(list, ", ")
}

// Celsius is a temperature, or N/A.
func Celsius(v float64) string { return inForm(metric.Celsius, v) }

// Megahertz is a clock, or N/A.
func Megahertz(v float64) string { return inForm(metric.Megahertz, v) }

// inForm formats the value that an engine has of a field; NaN is missing.
func inForm(f metric.Form, v float64) string {
	if math.IsNaN(v) {
		return words.Missing(model.Absent)
	}
	return f.Format(v)
}

// Watts is power, or N/A.
func Watts(v float64) string {
	switch {
	case math.IsNaN(v):
		return "N/A"
	case v >= 10_000:
		return strconv.FormatFloat(v/1000, 'f', 1, 64) + " kW"
	}
	return strconv.FormatFloat(v, 'f', 0, 64) + " W"
}

// FleetMemory is "12.3/24.0 GiB", with the mark of the bound.
func FleetMemory(used, size float64, bound model.Bound) string {
	if math.IsNaN(used) || math.IsNaN(size) {
		return "N/A"
	}
	return fmt.Sprintf("%s%.1f/%.1f GiB", words.Mark(bound), used/(1<<30), size/(1<<30))
}
