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

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/history"
)

// Gauge is one quantity of a device that changes over time: a field of the
// table of metrics under a short name.
type Gauge struct {
	Name  string // in the configuration: "dram"
	Title string // above its chart: "DRAM"
	Help  string
	Form  metric.Form
	field *metric.Device
}

// Set is the table of gauges.
type Set struct{ list []Gauge }

// New builds the table.
func New() *Set {
	var s Set
	for _, c := range metric.Charts() {
		f := metric.Named(c.Name)
		s.list = append(s.list, Gauge{Name: c.Chart, Title: f.Title, Help: f.Help, Form: f.Form(), field: f})
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
	v := g.field.Get(s, d)
	return v.Num, v.Known()
}

// Limit is the most the gauge can show for a device; 0: not known.
func (g *Gauge) Limit(s *model.Snapshot, d *model.Device) float64 {
	if g.Form == metric.Ratio || g.Form == metric.Estimate {
		return 1
	}
	if g.field.Limit == "" {
		return 0
	}
	if v := metric.Named(g.field.Limit).Get(s, d); v.Known() {
		return v.Num
	}
	return 0
}

// Question is what a history is asked for the gauge; ok is false for what is not kept.
func (g *Gauge) Question(o metric.Over) (metric.Question, bool) { return g.field.Question(o) }

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
			if v := s.list[j].field.Get(snap, d); v.Known() {
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
		key := ProcessKey(p.ID(), "dram")
		if n, bound, known := p.Held(model.DRAM).Best(); known {
			h.PutBound(key, float64(n), bound)
		}
		key.Metric = "l1"
		if n, bound, known := p.Held(model.L1).Best(); known {
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
