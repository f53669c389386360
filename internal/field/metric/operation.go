package metric

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Op is an operation that a process has a chip run, or the time between its programs.
type Op struct {
	*model.Operation
	Process *model.Process
	Chip    *model.ChipWork
	Late    bool // no operation: the time between programs
}

// Operation is a field of an operation.
type Operation = Field[*Op]

// Operations is the table of what is shown about an operation: the columns of ttmon
// ops and of the page, and what they are sorted by.
func Operations() []Operation {
	// ofPrograms is a figure that the time between programs does not have.
	ofPrograms := func(get func(*Op) Value) func(*model.Snapshot, *Op) Value {
		return func(_ *model.Snapshot, o *Op) Value {
			if o.Late {
				return Value{None: true}
			}
			return get(o)
		}
	}
	span := func(ns uint64, b model.Bound) Value {
		return Value{Status: model.Known, Bound: b, Num: float64(ns), Text: words.Mark(b) + words.ProgramTime(time.Duration(ns))}
	}
	return []Operation{
		{
			Name: "share", Kind: Gauge, As: Ratio, Head: "Share", Width: 7, Rank: 1,
			Help: "of the chip's time in the last interval: its programs ran, on however many cores",
			Get: func(_ *model.Snapshot, o *Op) Value {
				v := num(o.Share)
				if v.Known() {
					v.Bound = o.Bound()
					v.Text = words.OperationShare(v.Num, v.Bound)
				}
				return v
			},
		},
		{
			Name: "name", Head: "Operation", Width: 24, Rank: 1,
			Help: "what ran; between programs the chip had nothing to do, and soon had: the host was late",
			Get: func(_ *model.Snapshot, o *Op) Value {
				if o.Late {
					return Value{Status: model.Known, Text: "(between programs: the host is late)", Short: "(between programs)"}
				}
				return str(words.Operation(o.Operation))
			},
		},
		{
			Name: "calls", Kind: Gauge, Head: "Calls/s", Width: 8, Rank: 3, Help: "programs completed per second",
			Get: ofPrograms(func(o *Op) Value {
				v := num(o.Rate)
				v.Bound = o.Bound()
				return v
			}),
		},
		{
			Name: "mean", Kind: Gauge, Head: "Mean", Width: 7, Rank: 4, Help: "device time of one program, since ttmon first saw the process",
			Get: ofPrograms(func(o *Op) Value { return span(o.Mean(), model.Exact) }),
		},
		{
			Name: "longest", Kind: Gauge, Head: "Longest", Width: 7, Rank: 5, Help: "the longest of them",
			Get: ofPrograms(func(o *Op) Value { return span(o.Longest, model.Exact) }),
		},
		{
			Name: "time", Kind: Gauge, Head: "Time", Width: 8, Rank: 6, Help: "device time of all of them",
			Get: ofPrograms(func(o *Op) Value { return span(o.Time, o.Chip.Work.TotalBound) }),
		},
		{
			Name: "count", Kind: Gauge, Head: "Calls", Width: 9, Rank: 7, Help: "how many completed, since ttmon first saw the process",
			Get: ofPrograms(func(o *Op) Value {
				v := num(model.Value(o.Calls))
				v.Bound = o.Chip.Work.TotalBound
				return v
			}),
		},
		{
			Name: "device", Head: "Dev", Width: 4, Rank: 1, Help: "device, and the chip on it",
			Get: func(_ *model.Snapshot, o *Op) Value {
				if o.Chip.Device == model.NoDevice {
					return Value{None: true}
				}
				return str(strconv.Itoa(o.Chip.Device) + o.Chip.Chip)
			},
		},
		{
			Name: "process", Head: "Process", Width: 16, Rank: 2, Help: "process that runs it",
			Get: func(_ *model.Snapshot, o *Op) Value {
				return str(strconv.Itoa(o.Process.PID) + " " + words.Program(o.Process))
			},
		},
	}
}

// Bound is that of the share.
func (o *Op) Bound() model.Bound {
	if o.Late {
		return o.Chip.Work.LateBound()
	}
	return o.Chip.Work.ShareBound()
}

// Mean is the device time of one program.
func (o *Op) Mean() uint64 {
	if o.Calls == 0 {
		return 0
	}
	return o.Time / o.Calls
}

// OpChoice chooses and orders operations.
type OpChoice struct {
	PID     int    // of one process; 0: all
	Filter  string // a part of the name, in any case; empty: all
	Sort    string // name of a field; empty: share
	Reverse bool   // what takes least first
	Most    int    // how many rows; 0: all
}

// Rows lists the operations of a snapshot.
func (x OpChoice) Rows(s *model.Snapshot) (list []*Op) {
	for i := range s.Processes {
		p := &s.Processes[i]
		if x.PID != 0 && p.PID != x.PID {
			continue
		}
		for k := range p.Work.Chips {
			if c := &p.Work.Chips[k]; c.Device == model.NoDevice || s.Device(c.Device) != nil { // else another device was asked for
				list = x.appendChip(list, p, c)
			}
		}
	}
	x.order(s, list)
	if x.Most > 0 && len(list) > x.Most {
		list = list[:x.Most]
	}
	return list
}

// appendChip appends what a process has a chip work on.
func (x OpChoice) appendChip(list []*Op, p *model.Process, c *model.ChipWork) []*Op {
	part := strings.ToLower(x.Filter)
	for n := range c.Operations {
		if o := &c.Operations[n]; strings.Contains(strings.ToLower(o.Name), part) {
			list = append(list, &Op{Operation: o, Process: p, Chip: c})
		}
	}
	if late, ok := c.Work.Late.Get(); ok && late > 0 && part == "" {
		list = append(list, &Op{Operation: &model.Operation{Share: model.Value(late)}, Process: p, Chip: c, Late: true})
	}
	return list
}

// order puts what has most of a figure first, and names in the alphabet's order; what is
// equal in it, by share.
func (x OpChoice) order(s *model.Snapshot, list []*Op) {
	fields := Operations()
	at := max(slices.IndexFunc(fields, func(f Operation) bool { return f.Name == x.Sort }), 0)
	f := &fields[at]
	slices.SortStableFunc(list, func(a, b *Op) int {
		if x.Reverse {
			a, b = b, a
		}
		by := Compare(f.Get(s, a), f.Get(s, b))
		if f.Right() && f.Get(s, a).Known() && f.Get(s, b).Known() {
			by = -by
		}
		return cmp.Or(by, cmp.Compare(b.Share.V, a.Share.V), cmp.Compare(b.Time, a.Time))
	})
}

// OpOrders are what operations can be sorted by; the first is the usual one.
func OpOrders() (names []string) {
	for _, f := range Operations() {
		names = append(names, f.Name)
	}
	return names
}
