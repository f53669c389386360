package compare

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
)

// Schema names the JSON.
const Schema = "ttmon.compare/1"

// Side is one of the two that are compared.
type Side struct {
	Name    string      `json:"name"`
	Runs    []string    `json:"runs"` // r318; several: their median is compared
	Start   time.Time   `json:"start"`
	Command string      `json:"command,omitempty"`
	End     runs.Ending `json:"end"` // of the last of them

	// Lines are those of its program; nil: they are not known.
	Lines *runs.Lines `json:"-"`
	// Recorded: it is out of a recording, which has the lines.
	Recorded bool `json:"-"`

	list []runs.Run
}

// NewSide makes a side of a run, or of several.
func NewSide(name string, list ...runs.Run) (*Side, error) {
	if len(list) == 0 {
		return nil, errors.New("no run to compare with")
	}
	last := &list[len(list)-1]
	s := &Side{Name: name, Start: last.Start, Command: last.Command, End: last.End, list: list}
	for i := range list {
		s.Runs = append(s.Runs, list[i].RunName())
	}
	return s, nil
}

// Last is the run of the side, the latest of several.
func (s *Side) Last() *runs.Run { return &s.list[len(s.list)-1] }

// Comparison is how two sides differ.
type Comparison struct {
	Schema  string   `json:"schema"`
	A       *Side    `json:"a"`
	B       *Side    `json:"b"`
	Text    string   `json:"text"`    // the verdict in words
	Verdict []Remark `json:"verdict"` // what matters, the worst first; empty: no difference that matters
	Figures []Figure `json:"figures"`
	// Lines are the lines of code that differ, the one whose peak grew most first;
	// nil: they are not known of both.
	Lines []Line `json:"lines,omitempty"`
	// Operations are those whose time differs, the one that took most longer first;
	// nil: they are not known of both.
	Operations []Operation `json:"operations,omitempty"`
	// Conditions are those that were checked.
	Conditions []Checked `json:"conditions,omitempty"`
}

// RemarkKind is the kind of a remark. The set is closed; runwords has a sentence
// for each.
type RemarkKind string

// The kinds, in the order in which they are printed.
const (
	Ended     RemarkKind = "end"       // it ended in another way
	Failures  RemarkKind = "failures"  // more or fewer of its requests for memory failed
	Left      RemarkKind = "left"      // it left memory behind
	PeakDRAM  RemarkKind = "dram.peak" // more or less at the peak
	PeakL1    RemarkKind = "l1.peak"
	Duration  RemarkKind = "duration"
	Throttled RemarkKind = "throttled" // longer or shorter
	Energy    RemarkKind = "energy"
	Shared    RemarkKind = "shared" // the devices were shared in one of them
	Devices   RemarkKind = "devices"
	Busy      RemarkKind = "busy"      // its chips had more or less to do
	Slower    RemarkKind = "operation" // an operation took longer
)

// Remark is one thing that differs.
type Remark struct {
	Kind   RemarkKind `json:"kind"`
	A      float64    `json:"a"`
	B      float64    `json:"b"`
	Device *int       `json:"device"`         // that it is most about; null: all
	Unsure bool       `json:"unsure"`         // one of the figures is doubtful
	Text   string     `json:"text,omitempty"` // in words
	// Line is the one that the change of a peak is most due to; null: it is not
	// known. LineChange is by how much more it held at the peak.
	Line       *runs.Line `json:"line,omitempty"`
	LineChange float64    `json:"line_change,omitempty"`
	// Operation is the one that took longer; null: it is not about one.
	Operation *Operation `json:"operation,omitempty"`
}

// Compare compares two sides: B against A.
func Compare(a, b *Side) *Comparison {
	left, right := a.table(), b.table()
	c := &Comparison{Schema: Schema, A: a, B: b, Verdict: []Remark{}, Figures: []Figure{}}
	seen := map[key]bool{}
	for _, t := range []*table{right, left} {
		for _, k := range t.order {
			if seen[k] {
				continue
			}
			seen[k] = true
			f := Figure{Name: k.name, Unit: t.units[k]}
			if k.device != whole {
				index := k.device
				f.Device, f.Board = &index, t.boards[index]
			}
			if v, ok := left.values[k]; ok {
				f.A = &v
			}
			if v, ok := right.values[k]; ok {
				f.B = &v
			}
			c.Figures = append(c.Figures, f)
		}
	}
	c.compareLines()
	c.compareOperations()
	c.judge()
	return c
}

func (s *Side) table() *table {
	list := make([]*table, len(s.list))
	for i := range s.list {
		list[i] = figuresOf(&s.list[i])
	}
	return median(list)
}

// usual is how many runs of the same command a run is compared with.
const usual = 5

// Usual finds the runs that a run is compared with where none was named: the last
// of the same user and command that began before it and have ended.
func Usual(b *runs.Run, find func(runs.Query) ([]runs.Run, error)) (*Side, error) {
	ended := false
	found, err := find(runs.Query{Command: b.Command, UID: &b.UID, Until: b.Start, Running: &ended, Limit: usual + 1})
	if err != nil {
		return nil, err
	}
	var list []runs.Run
	for i := range found {
		if found[i].ID != b.ID && b.Command != "" {
			list = append(list, found[i])
		}
	}
	list = list[max(len(list)-usual, 0):]
	if len(list) == 0 {
		return nil, fmt.Errorf("%s: %w", b.RunName(), ErrFirst)
	}
	return NewSide("before", list...)
}

// ErrFirst is the error of a run without others of the same command before it.
var ErrFirst = errors.New("this is the first run of its command: nothing to compare it with")

// Find is a figure of the run as a whole, or of a device.
func (c *Comparison) Find(name string, device *int) *Figure {
	for i := range c.Figures {
		f := &c.Figures[i]
		if f.Name == name && (f.Device == nil) == (device == nil) && (device == nil || *f.Device == *device) {
			return f
		}
	}
	return nil
}

// From which difference on something is worth saying: of both, the share of A and
// the amount.
type threshold struct{ share, amount float64 }

var thresholds = map[RemarkKind]threshold{
	PeakDRAM: {0.01, 1 << 20}, PeakL1: {0.01, 64 << 10}, Duration: {0.03, 2}, Throttled: {0, 2}, Energy: {0.03, 36}, Shared: {0, 2}, Busy: {0, 0.02},
}

// judge finds what matters.
func (c *Comparison) judge() {
	a, b := &c.A.End, &c.B.End
	if b.Failed() != a.Failed() && a.Kind != runs.Running && b.Kind != runs.Running {
		c.Verdict = append(c.Verdict, Remark{Kind: Ended})
	}
	for _, k := range []RemarkKind{Failures, Left} {
		f := c.Find(string(k), nil)
		switch {
		case f == nil || f.B == nil:
		case f.A == nil && k == Left && f.B.V > 0: // whatever A leaves, which still runs
			c.Verdict = append(c.Verdict, Remark{Kind: k, B: f.B.V, Unsure: model.ParseBound(f.B.Bound) == model.Unsure})
		case f.A != nil && f.A.V != f.B.V:
			c.Verdict = append(c.Verdict, Remark{Kind: k, A: f.A.V, B: f.B.V, Unsure: f.unsure()})
		}
	}
	for _, k := range []RemarkKind{PeakDRAM, PeakL1, Duration, Throttled, Energy, Shared, Busy} {
		f := c.Find(string(k), nil)
		if f == nil || (k == Duration || k == Energy) && !c.ended() {
			continue
		}
		change, ok := f.Change()
		t := thresholds[k]
		if !ok || math.Abs(change) < t.amount || math.Abs(change) < t.share*f.A.V {
			continue
		}
		r := Remark{Kind: k, A: f.A.V, B: f.B.V, Unsure: f.unsure(), Device: c.most(string(k), change)}
		r.Line, r.LineChange = c.blame(k, change)
		c.Verdict = append(c.Verdict, r)
	}
	if o := c.slowest(); o != nil && c.ended() {
		c.Verdict = append(c.Verdict, Remark{Kind: Slower, A: o.SecondsA, B: o.SecondsB, Operation: o})
	}
	if x, y := c.A.devices(), c.B.devices(); x != y {
		c.Verdict = append(c.Verdict, Remark{Kind: Devices, A: float64(x), B: float64(y)})
	}
}

// ended reports whether both have: what one took that has not is no difference.
func (c *Comparison) ended() bool {
	return c.A.End.Kind != runs.Running && c.B.End.Kind != runs.Running
}

func (s *Side) devices() int { return len(s.list[len(s.list)-1].Indexes()) }

func (f *Figure) unsure() bool {
	return model.ParseBound(f.A.Bound) == model.Unsure || model.ParseBound(f.B.Bound) == model.Unsure
}

// most is the device on which a figure changed most, where that is more than half
// of the change; nil: no single one.
func (c *Comparison) most(name string, change float64) (device *int) {
	var largest float64
	n := 0
	for i := range c.Figures {
		f := &c.Figures[i]
		if f.Name != name || f.Device == nil {
			continue
		}
		n++
		if d, ok := f.Change(); ok && d*change > 0 && math.Abs(d) > math.Abs(largest) {
			largest, device = d, f.Device
		}
	}
	if n < 2 || math.Abs(largest) < math.Abs(change)/2 {
		return nil
	}
	return device
}

// ErrNoFigure is the error of a condition about a figure that is not known.
var ErrNoFigure = errors.New("is not known of both")

// Check checks a condition, of any device where it is about devices and names none. A
// figure that is not known is an error: what cannot be checked has not passed.
func (c *Comparison) Check(cond Condition) (Checked, error) {
	var found, ofDevices []*Figure
	for i := range c.Figures {
		switch f := &c.Figures[i]; {
		case f.Name != cond.Name:
		case cond.Device == nil && f.Device == nil || cond.Device != nil && f.Device != nil && *cond.Device == *f.Device:
			found = append(found, f)
		case cond.Device == nil:
			ofDevices = append(ofDevices, f)
		}
	}
	if len(found) == 0 {
		found = ofDevices
	}
	out := Checked{Condition: cond}
	if len(found) == 0 {
		return out, fmt.Errorf("no figure %s; known: %s; of one device as NAME@DEVICE", cond.Name, strings.Join(names(c.Figures), ", "))
	}
	for _, f := range found {
		if f.Unit != cond.Unit && cond.Unit != "" {
			return out, fmt.Errorf("%s has the unit %s", f.label(), f.Unit)
		}
		if f.B == nil || cond.Relative && f.A == nil {
			return out, fmt.Errorf("%s %w", f.label(), ErrNoFigure)
		}
		if r := cond.of(f); out.Figure == nil || r.worse(out.Result) {
			out.Result, out.Figure = r, f
		}
	}
	return out, nil
}

// worse orders results.
func (r Result) worse(than Result) bool {
	order := []Result{Passed, Uncertain, Failed}
	return slices.Index(order, r) > slices.Index(order, than)
}
