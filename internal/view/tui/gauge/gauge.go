// Package gauge lists what ttmon top and ttmon mem can draw over time: fields
// of the table of metrics, each with a short name, its limit and the way its
// scale is written.
//
// It stands between metric, which knows how to get a figure, history, which
// keeps it, and chart, which draws it.
package gauge

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/history"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Gauge is one quantity of a device that changes over time.
type Gauge struct {
	Name  string // in the configuration: "dram"
	Title string // above its chart: "DRAM"
	Help  string
	Unit  Unit
	get   func(*model.Snapshot, *model.Device) metric.Value
	limit func(*model.Snapshot, *model.Device) metric.Value // nil: none
	full  float64                                           // a limit that is the same for all; 0: none
	// query is the PromQL behind it; see metric.Field.Query.
	query      func(window string, selector ...string) (expr string, per float64, ok bool)
	queryBound func(selector ...string) (expr string, ok bool)
}

// Set is the table of gauges.
type Set struct{ list []Gauge }

// New builds the table.
func New() *Set {
	fields := metric.Devices()
	get := func(name string) func(*model.Snapshot, *model.Device) metric.Value {
		c, ok := metric.Find(fields, name)
		if !ok {
			panic("BUG: there is no metric " + name)
		}
		return c.Get
	}
	var s Set
	add := func(name, title, field, limit string, unit Unit) *Gauge {
		c, ok := metric.Find(fields, field)
		if !ok {
			panic("BUG: there is no metric " + field)
		}
		g := Gauge{Name: name, Title: title, Help: c.Help, Unit: unit, get: c.Get, query: c.Query, queryBound: c.QueryBound}
		if limit != "" {
			g.limit = get(limit)
		}
		s.list = append(s.list, g)
		return &s.list[len(s.list)-1]
	}
	add("dram", "DRAM", "memory.used", "memory.total", Bytes)
	add("l1", "L1, buffers", "l1.used", "", Bytes)
	add("power", "Power", "power.draw", "power.limit", Watts)
	add("temperature", "Temperature", "temperature.asic", "temperature.asic.limit.throttle", Celsius)
	add("activity", "Activity, estimated", "activity.estimate", "", Ratio).full = 1
	add("aiclk", "AICLK", "clocks.ai", "clocks.max.ai", Megahertz)
	add("pcie_to", "PCIe to device", "pcie.rx", "", Rate)
	add("pcie_from", "PCIe from device", "pcie.tx", "", Rate)
	add("voltage", "Voltage", "voltage.core", "voltage.core.max", Volts)
	add("current", "Current", "current.core", "current.core.max", Amperes)
	add("fan", "Fan", "fan.speed", "", RPM)
	add("heartbeat", "Heartbeat", "heartbeat.rate", "", PerSecond)
	for _, p := range []model.Pool{model.L1Small, model.Trace, model.CB, model.Kernel} {
		add(p.String(), words.PoolName(p), p.String()+".used", "", Bytes)
	}
	return &s
}

// All lists the gauges.
func (s *Set) All() []Gauge { return s.list }

// Find is the gauge with a name, or nil.
func (s *Set) Find(name string) *Gauge {
	if i := slices.IndexFunc(s.list, func(g Gauge) bool { return g.Name == name }); i >= 0 {
		return &s.list[i]
	}
	return nil
}

// Names lists the names, for messages and menus.
func (s *Set) Names() string {
	var names []string
	for i := range s.list {
		names = append(names, s.list[i].Name)
	}
	return strings.Join(names, ", ")
}

// Value is the gauge's figure for a device, in its own unit.
func (g *Gauge) Value(s *model.Snapshot, d *model.Device) (float64, bool) {
	v := g.get(s, d)
	return v.Num, v.Known()
}

// Limit is the most the gauge can show for a device; 0: not known.
func (g *Gauge) Limit(s *model.Snapshot, d *model.Device) float64 {
	if g.limit == nil {
		return g.full
	}
	if v := g.limit(s, d); v.Known() {
		return v.Num
	}
	return 0
}

// Query is how a ttmond's history is asked for the gauge, and by what the
// answer is divided; ok is false for what is not kept.
func (g *Gauge) Query(window string) (expr string, per float64, ok bool) { return g.query(window) }

// QueryBound is how it is asked for the bounds of those figures; ok is false
// where they are never doubtful.
func (g *Gauge) QueryBound() (expr string, ok bool) { return g.queryBound() }

// Key is the name of the gauge's series for a device.
func (g *Gauge) Key(busID string) history.Key { return history.Key{Metric: g.Name, Device: busID} }

// Record puts all figures of a snapshot into a store: the gauges of the
// devices, where a device has several chips the memory of each, and what
// processes hold.
func (s *Set) Record(h *history.Store, snap *model.Snapshot) {
	h.Begin(snap.Time)
	for i := range snap.Devices {
		d := &snap.Devices[i]
		for j := range s.list {
			if v := s.list[j].get(snap, d); v.Known() {
				h.PutBound(s.list[j].Key(d.BusID), v.Num, v.Bound)
			}
		}
		if len(d.Chips) < 2 {
			continue
		}
		for c := range d.Chips {
			for _, p := range model.Pools() {
				if n, bound, known := d.Chips[c].Memory.Pools[p].Used.Best(); known {
					h.PutBound(ChipKey(d, c, p), float64(n), bound)
				}
			}
		}
	}
	recordProcesses(h, snap)
}

// Processes of which the memory is kept over time: hosts with more have few of
// which anybody looks at one.
const maxProcesses = 100

// recordProcesses puts what processes hold and use into the row.
func recordProcesses(h *history.Store, snap *model.Snapshot) {
	for i := range min(len(snap.Processes), maxProcesses) {
		p := &snap.Processes[i]
		var dram, l1 model.Sum
		for j := range p.Devices {
			dram.Add(p.Devices[j].Memory[model.DRAM])
			l1.Add(p.Devices[j].Memory[model.L1])
		}
		key := ProcessKey(p.ID(), "dram")
		if n, bound, known := dram.Bytes().Best(); known {
			h.PutBound(key, float64(n), bound)
		}
		key.Metric = "l1"
		if n, bound, known := l1.Bytes().Best(); known {
			h.PutBound(key, float64(n), bound)
		}
		key.Metric = "cpu"
		if v, ok := p.CPU.Get(); ok {
			h.Put(key, v)
		}
	}
}

// ProcessKey is the name of a series of a process: dram, l1 or cpu.
func ProcessKey(id model.ProcessID, metric string) history.Key {
	return history.Key{Metric: metric, Device: "process " + strconv.Itoa(id.PID) + " " + strconv.FormatUint(id.StartTicks, 10)}
}

// ChipKey is the name of the series of a pool of one of a device's chips.
func ChipKey(d *model.Device, chip int, p model.Pool) history.Key {
	k := history.Key{Metric: p.String(), Device: d.BusID}
	if len(d.Chips) > 1 {
		k.Chip = chip + 1
	}
	return k
}

// Span is the smallest and largest value in a line's buckets; ok is false
// when there is none.
func Span(lines ...[]history.Bucket) (lo, hi float64, ok bool) {
	lo, hi = math.Inf(1), math.Inf(-1)
	for _, line := range lines {
		for i := range line {
			if b := &line[i]; b.Known() {
				lo, hi, ok = min(lo, float64(b.Min)), max(hi, float64(b.Max)), true
			}
		}
	}
	return lo, hi, ok
}
