package text

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/words"
)

// Ops chooses and orders the operations of `ttmon ops`.
type Ops struct {
	PID     int    // of one process; 0: all
	Filter  string // a part of the name, in any case; empty: all
	Sort    string // one of OpsOrders
	Reverse bool   // what takes least first
	Most    int    // how many rows; 0: all
}

// OpsOrders are what the operations can be sorted by; the first is the usual one.
func OpsOrders() []string { return []string{"share", "calls", "mean", "longest", "time", "name"} }

// Op is a row of the table.
type Op struct {
	*model.Operation
	Process *model.Process
	Chip    *model.ChipWork
	Late    bool // no operation: the time between programs
}

// OpText is a row in words.
type OpText struct{ Share, Name, Rate, Mean, Longest, Time, Calls, Device, Process string }

// Text says a row.
func (o *Op) Text() OpText {
	t := OpText{Share: "–", Rate: "–", Device: "–", Process: strconv.Itoa(o.Process.PID) + " " + words.Program(o.Process)}
	if v, ok := o.Share.Get(); ok {
		t.Share = words.OperationShare(v, o.bound())
	}
	if o.Chip.Device != model.NoDevice {
		t.Device = strconv.Itoa(o.Chip.Device) + words.Escape(o.Chip.Chip)
	}
	if o.Late {
		t.Name, t.Rate = "(between programs: the host is late)", ""
		return t
	}
	if v, ok := o.Rate.Get(); ok {
		t.Rate = words.Mark(o.bound()) + words.Whole(v)
	}
	total := words.Mark(o.Chip.Work.TotalBound)
	t.Name, t.Calls = words.Operation(o.Operation), total+strconv.FormatUint(o.Calls, 10)
	t.Mean, t.Longest, t.Time = words.ProgramTime(time.Duration(o.mean())), words.ProgramTime(time.Duration(o.Longest)), total+words.ProgramTime(time.Duration(o.Time))
	return t
}

// bound is that of the share.
func (o *Op) bound() model.Bound {
	if o.Late {
		return o.Chip.Work.LateBound()
	}
	return o.Chip.Work.ShareBound()
}

func (o *Op) mean() uint64 {
	if o.Calls == 0 {
		return 0
	}
	return o.Time / o.Calls
}

// Rows lists the operations of a snapshot.
func (x Ops) Rows(s *model.Snapshot) (list []Op) {
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
	slices.SortStableFunc(list, x.compare)
	if x.Most > 0 && len(list) > x.Most {
		list = list[:x.Most]
	}
	return list
}

// appendChip appends what a process has a chip work on.
func (x Ops) appendChip(list []Op, p *model.Process, c *model.ChipWork) []Op {
	part := strings.ToLower(x.Filter)
	for n := range c.Operations {
		if o := &c.Operations[n]; strings.Contains(strings.ToLower(o.Name), part) {
			list = append(list, Op{Operation: o, Process: p, Chip: c})
		}
	}
	if late, ok := c.Work.Late.Get(); ok && late > 0 && part == "" {
		list = append(list, Op{Operation: &model.Operation{Share: model.Value(late)}, Process: p, Chip: c, Late: true})
	}
	return list
}

// compare puts what takes most first, or last.
func (x Ops) compare(a, b Op) int {
	if x.Reverse {
		a, b = b, a
	}
	byShare := cmp.Or(cmp.Compare(b.Share.V, a.Share.V), cmp.Compare(b.Time, a.Time))
	switch x.Sort {
	case "calls":
		return cmp.Or(cmp.Compare(b.Rate.V, a.Rate.V), cmp.Compare(b.Calls, a.Calls), byShare)
	case "mean":
		return cmp.Or(cmp.Compare(b.mean(), a.mean()), byShare)
	case "longest":
		return cmp.Or(cmp.Compare(b.Longest, a.Longest), byShare)
	case "time":
		return cmp.Or(cmp.Compare(b.Time, a.Time), byShare)
	case "name":
		return cmp.Or(strings.Compare(a.Name, b.Name), byShare)
	}
	return byShare
}

// AppendOps appends the operations that chips work on, by the time they take.
func AppendOps(dst []byte, s *model.Snapshot, x Ops, o Options) []byte {
	p := newPrinter(dst, o)
	p.opsTitle(s)
	rows := x.Rows(s)
	if len(rows) == 0 {
		p.Newline()
		p.Line(" "+x.Nothing(), cells.Faint)
		p.unknown(s)
		return p.Buf
	}
	g := &lines.Table{Ruled: true, Indent: 1, Columns: []lines.Column{
		{Head: "Share", Least: 6, Right: true},
		{Head: "Operation", Least: 24},
		{Head: "Calls/s", Least: 7, Right: true, Rank: 2},
		{Head: "Mean", Least: 7, Right: true, Rank: 3},
		{Head: "Longest", Least: 7, Right: true, Rank: 4},
		{Head: "Dev", Least: 3},
		{Head: "Process", Least: 12, Rest: true, Rank: 1},
	}}
	for i := range rows {
		g.Rows = append(g.Rows, opRow(&rows[i]))
	}
	p.Table(g)
	p.stuck(s)
	p.unknown(s)
	return p.Buf
}

// opsTitle is a line with how busy each device is.
func (p *printer) opsTitle(s *model.Snapshot) {
	parts := []string{words.Escape(s.Host.Name)}
	for i := range s.Devices {
		d := &s.Devices[i]
		parts = append(parts, strconv.Itoa(d.Index)+" busy "+words.Busy(&d.Work))
	}
	if s.Simulated {
		parts = append(parts, words.Simulated)
	}
	line := " " + strings.Join(parts, "   ")
	if p.Width > 0 {
		line = words.Truncate(line, p.Width)
	}
	p.Line(line, 0)
}

// Nothing says that there is nothing to show.
func (x Ops) Nothing() string {
	switch {
	case x.Filter != "":
		return "no operation has " + strconv.Quote(words.Escape(x.Filter)) + " in its name"
	case x.PID != 0:
		return "process " + strconv.Itoa(x.PID) + " reports no programs"
	}
	return "no process reports programs"
}

// unknown ends the screen with why it is not known how busy devices are.
func (p *printer) unknown(s *model.Snapshot) {
	for i := range s.Devices {
		if d := &s.Devices[i]; !d.Work.Measured() && d.Work.Cause != "" {
			p.Sentence("device "+strconv.Itoa(d.Index)+": busy unknown: "+words.WorkCause(d.Work.Cause), cells.Faint)
		}
	}
}

func opRow(o *Op) lines.Row {
	t := o.Text()
	var st cells.Style
	if o.Late {
		st = cells.Faint
	}
	return lines.Row{Cells: []lines.Cell{lines.C(t.Share), lines.C(t.Name, st), lines.C(t.Rate), lines.C(t.Mean), lines.C(t.Longest), lines.C(t.Device), lines.C(t.Process)}}
}

// stuck ends the table with the processes that may be stuck.
func (p *printer) stuck(s *model.Snapshot) {
	for _, n := range StuckNotes(s) {
		p.Sentence(n.Text, cells.OfNote(n.Level))
	}
}

// Note is a sentence below a table, and how bad it is.
type Note struct {
	Text  string
	Level model.Level
}

// StuckNotes are the processes that may be stuck, each with its evidence.
func StuckNotes(s *model.Snapshot) (list []Note) {
	for _, x := range assess.Of(s).Conditions() {
		if x.Kind != model.ConditionStuck {
			continue
		}
		text := words.Kind(x.Kind) + "  " + words.Affected(s, &x) + ": " + words.Facts(s, &x)
		if last := lastOperation(s, x.Process); last != "" {
			text += "; last: " + last
		}
		list = append(list, Note{text, x.Level})
	}
	return list
}

// lastOperation is the last that a process had completed.
func lastOperation(s *model.Snapshot, id model.ProcessID) (name string) {
	var at time.Time
	for i := range s.Processes {
		if s.Processes[i].ID() != id {
			continue
		}
		for k := range s.Processes[i].Work.Chips {
			if c := &s.Processes[i].Work.Chips[k]; c.LastRecord.After(at) {
				at, name = c.LastRecord, words.Escape(c.LastName)
			}
		}
	}
	return name
}

// opJSON is an operation for scripts.
type opJSON struct {
	Operation string   `json:"operation"`
	Others    int      `json:"others,omitempty"`
	Share     *float64 `json:"share_ratio"`
	Bound     string   `json:"share_bound,omitempty"` // of share_ratio and calls_per_s; empty where there is none
	Rate      *float64 `json:"calls_per_s"`
	Calls     uint64   `json:"calls"`
	Time      uint64   `json:"time_ns"`
	Totals    string   `json:"totals_bound"` // of calls and time_ns
	Mean      uint64   `json:"mean_ns"`
	Longest   uint64   `json:"longest_ns"`
	Device    *int     `json:"device"`
	Chip      string   `json:"chip,omitempty"`
	PID       int      `json:"pid"`
	Process   string   `json:"process"`
}

// AppendOpsJSON appends the operations as one line of JSON.
func AppendOpsJSON(dst []byte, s *model.Snapshot, x Ops) []byte {
	value := func(r model.Reading[float64]) *float64 {
		if v, ok := r.Get(); ok {
			return &v
		}
		return nil
	}
	list := []opJSON{}
	for _, o := range x.Rows(s) {
		if o.Late {
			continue // it is late_ratio of the snapshot
		}
		j := opJSON{
			Operation: o.Name, Others: o.Others, Share: value(o.Share), Rate: value(o.Rate), Calls: o.Calls, Time: o.Time, Totals: o.Chip.Work.TotalBound.String(), Mean: o.mean(), Longest: o.Longest,
			Chip: o.Chip.Chip, PID: o.Process.PID, Process: words.Program(o.Process),
		}
		if o.Share.Known() {
			j.Bound = o.bound().String()
		}
		if o.Chip.Device != model.NoDevice {
			j.Device = &o.Chip.Device
		}
		list = append(list, j)
	}
	b, err := json.Marshal(map[string]any{"schema": "ttmon.operations/1", "time": s.Time.UTC().Format(time.RFC3339Nano), "simulated": s.Simulated, "operations": list})
	if err != nil {
		panic("BUG: operations are not JSON: " + err.Error())
	}
	return append(append(dst, b...), '\n')
}
