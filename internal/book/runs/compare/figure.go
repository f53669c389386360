// Package compare says how two runs differ, or a run and those that were usual:
// the median of several of the same command.
//
// Its place in the flow: it reads internal/book/runs; ttmon diff and the page show what
// it finds.
package compare

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Unit is what a figure is counted in.
type Unit string

// The units.
const (
	Bytes   Unit = "bytes"
	Seconds Unit = "s"
	Joules  Unit = "j"
	Watts   Unit = "w"
	Celsius Unit = "c"
	MHz     Unit = "mhz"
	Ratio   Unit = "ratio"
	Count   Unit = "count"
)

// Value is what one side has of a figure.
type Value struct {
	V     float64 `json:"value"`
	Bound string  `json:"bound"` // exact, at_least or unsure
}

// Figure is one that was compared.
type Figure struct {
	Name   string `json:"name"` // dram.peak; what --fail-if names
	Device *int   `json:"device"`
	Board  string `json:"board,omitempty"`
	Unit   Unit   `json:"unit"`
	A      *Value `json:"a"` // null: not known
	B      *Value `json:"b"`
	Title  string `json:"title,omitempty"` // the name in words
	// In words; empty: the figures are the same, or one is not known.
	TextA      string `json:"text_a"`
	TextB      string `json:"text_b"`
	ChangeText string `json:"change"`
}

// Change is by how much B is more than A; ok is false where one of them is not
// known.
func (f *Figure) Change() (v float64, ok bool) {
	if f.A == nil || f.B == nil {
		return 0, false
	}
	return f.B.V - f.A.V, true
}

// key is which figure it is.
type key struct {
	name   string
	device int // whole: of the run as a whole
}

const whole = -2

// table is the figures of a run.
type table struct {
	order  []key
	values map[key]Value
	units  map[key]Unit
	boards map[int]string
}

func (t *table) add(name string, device int, unit Unit, v float64, bound model.Bound) {
	k := key{name, device}
	if _, again := t.values[k]; !again {
		t.order = append(t.order, k)
	}
	t.values[k], t.units[k] = Value{v, bound.String()}, unit
}

// figuresOf lists what is known of a run, in the order in which it is shown.
func figuresOf(r *runs.Run) *table {
	t := &table{values: map[key]Value{}, units: map[key]Unit{}, boards: map[int]string{}}
	took := model.Exact
	if r.End.Kind == runs.Running {
		took = model.AtLeast
	}
	t.add("duration", whole, Seconds, r.Took().Seconds(), took)
	t.pools(whole, r.Pools)
	if j, known := r.Energy(); known {
		t.add("energy", whole, Joules, j, model.Unsure)
	}
	if b, known := r.Busy(); known {
		t.add("busy", whole, Ratio, b.Ratio, b.Bound)
	}
	if r.Seen.IsZero() {
		return t // no snapshot had it, so that nothing else is known
	}
	observed := model.Exact
	if r.Unseen > 0 {
		observed = model.AtLeast
	}
	t.add("throttled", whole, Seconds, r.Trouble(model.ConditionThrottled), observed)
	if r.End.Kind != runs.Running { // what it will leave is not known yet
		left, bound := r.LeftBytes()
		t.add("left", whole, Bytes, float64(left), bound)
	}
	if f := r.Failures; f != nil {
		t.add("failures", whole, Count, float64(f.Count), model.AtLeast)
	}
	t.add("shared", whole, Seconds, r.Shared(), observed)
	for i := range r.Devices {
		t.device(&r.Devices[i], observed)
	}
	return t
}

func (t *table) pools(device int, pools map[string]runs.Pool) {
	for _, pool := range model.Pools() {
		p, known := pools[pool.String()]
		if !known {
			continue
		}
		t.add(pool.String()+".peak", device, Bytes, float64(p.Peak), model.ParseBound(p.PeakBound))
		if p.Seconds > 0 {
			t.add(pool.String()+".mean", device, Bytes, p.Mean, model.Unsure)
		}
	}
}

func (t *table) device(d *runs.Device, observed model.Bound) {
	t.boards[d.Index] = d.Board
	t.pools(d.Index, d.Pools)
	// Samples have missed the highest value, and a mean is of those that there were.
	highest := func(name string, unit Unit, s *runs.Stat) {
		if s != nil {
			t.add(name+".max", d.Index, unit, s.Max, model.AtLeast)
		}
	}
	mean := func(name string, unit Unit, s *runs.Stat) {
		if s != nil && s.Seconds > 0 {
			t.add(name+".mean", d.Index, unit, s.Mean, model.Unsure)
		}
	}
	mean("power", Watts, d.Power)
	highest("power", Watts, d.Power)
	highest("temperature", Celsius, d.Temperature)
	mean("aiclk", MHz, d.Clock)
	if b, known := d.Busy(); known {
		t.add("busy", d.Index, Ratio, b.Ratio, b.Bound)
	}
	mean("activity", Ratio, d.Activity)
	if d.Power != nil && d.Power.Seconds > 0 {
		t.add("energy", d.Index, Joules, d.Energy, model.Unsure)
	}
	t.add("throttled", d.Index, Seconds, d.Trouble[model.ConditionThrottled], observed)
	t.add("resets", d.Index, Count, float64(d.Resets), observed)
	if p := d.PCIe; p != nil && d.Open > 0 {
		t.add("pcie.to", d.Index, Bytes, float64(p.ToDevice), model.ParseBound(p.Bound))
		t.add("pcie.from", d.Index, Bytes, float64(p.FromDevice), model.ParseBound(p.Bound))
	}
}

// median is the usual figures of several runs: of each the median of those runs
// that have it, which must be more than half of them.
func median(list []*table) *table {
	if len(list) == 1 {
		return list[0]
	}
	out := &table{values: map[key]Value{}, units: map[key]Unit{}, boards: map[int]string{}}
	all := map[key][]Value{}
	for _, t := range list {
		for _, k := range t.order {
			if all[k] == nil {
				out.order = append(out.order, k)
				out.units[k] = t.units[k]
			}
			all[k] = append(all[k], t.values[k])
		}
		for index, board := range t.boards {
			out.boards[index] = board
		}
	}
	out.order = slices.DeleteFunc(out.order, func(k key) bool { return 2*len(all[k]) <= len(list) })
	for _, k := range out.order {
		out.values[k] = middle(all[k])
	}
	return out
}

// middle is the median of values, with the worst of their bounds.
func middle(list []Value) Value {
	slices.SortFunc(list, func(a, b Value) int { return cmp.Compare(a.V, b.V) })
	n := len(list)
	v := Value{V: list[n/2].V}
	if n%2 == 0 {
		v.V = (list[n/2-1].V + list[n/2].V) / 2
	}
	bound := model.Exact
	for _, x := range list {
		bound = max(bound, model.ParseBound(x.Bound))
	}
	v.Bound = bound.String()
	return v
}

// names lists the names of figures, for messages.
func names(list []Figure) (out []string) {
	for i := range list {
		if list[i].Device == nil {
			out = append(out, list[i].Name)
		}
	}
	return out
}

// label is a figure in a message: dram.peak of device 3.
func (f *Figure) label() string {
	if f.Device == nil {
		return f.Name
	}
	return fmt.Sprintf("%s of device %d", f.Name, *f.Device)
}
