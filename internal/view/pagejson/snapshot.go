// Package pagejson is a snapshot in words for a client that draws it elsewhere: the page
// in a browser. Every figure with its mark, every reason as a sentence, sums
// with their bounds, exactly as ttmon says them in a terminal, so that the page
// lays out and does not reword.
//
// It is a view: it reads snapshots. internal/node/api sends it beside each.
package pagejson

import (
	"slices"
	"strings"
	"time"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/sheet"
)

// Snapshot is what is said about a snapshot. Devices and processes are in the
// snapshot's order.
type Snapshot struct {
	Schema    string    `json:"schema"` // ttmon.said/2
	Time      time.Time `json:"time"`
	Troubles  []Trouble `json:"troubles"` // a row for each device, the worst first
	Trouble   string    `json:"trouble"`  // the same in a line; empty: there is none
	Notes     []Notice  `json:"notes"`    // what else there is to say
	Notices   []Notice  `json:"notices"`  // both, as sentences
	Totals    Totals    `json:"totals"`
	Devices   []Device  `json:"devices"`
	Processes []Process `json:"processes"`
	// Operations are what takes most of each chip, by their shares.
	Operations []Operation `json:"operations"`
}

// Operation is an operation of a process on a chip.
type Operation struct {
	PID    int           `json:"pid"`
	Device *int          `json:"device"` // null: a chip of no device of this host
	Cells  []sheet.Value `json:"cells"`  // in the columns of /v1/words
}

// maxOperations is how many of a process on one chip are said: no table of the page has
// more.
const maxOperations = 12

func operations(s *model.Snapshot) []Operation {
	list := []Operation{}
	said := map[*model.ChipWork]int{}
	for _, o := range (metric.OpChoice{}).Rows(s) {
		if said[o.Chip]++; said[o.Chip] > maxOperations {
			continue
		}
		x := Operation{PID: o.Process.PID, Cells: sheet.Cells(metric.Operations(), s, o)}
		if o.Chip.Device != model.NoDevice {
			x.Device = &o.Chip.Device
		}
		list = append(list, x)
	}
	return list
}

// Notice is a sentence, the worst first.
type Notice struct {
	Level   string `json:"level" ts:"Level"` // critical, warning or info
	Code    string `json:"code"`
	Devices []int  `json:"devices"`
	Text    string `json:"text"`
}

// Trouble is all that is wrong with a device, or with several in the same way.
type Trouble struct {
	Level    string     `json:"level" ts:"Level"` // critical or warning
	Kind     string     `json:"kind"`
	Devices  []int      `json:"devices"` // empty: the host
	Name     string     `json:"name"`
	Board    string     `json:"board"`
	What     string     `json:"what"`
	Held     string     `json:"held"`  // "12 min"; empty: not known
	Since    *time.Time `json:"since"` // null: not known
	Facts    string     `json:"facts"`
	Affected string     `json:"affected"`
	Remedy   string     `json:"remedy"`
	Alerts   []string   `json:"alerts"` // names of the rules that fire about it
}

// Figure is a memory figure.
type Figure struct {
	Text  string   `json:"text"`                       // "~10.2/24.0 GiB", or the word for why there is none
	Bytes *uint64  `json:"bytes"`                      // null: not known
	Bound string   `json:"bound,omitempty" ts:"Bound"` // exact, at_least or unsure
	Ratio *float64 `json:"ratio"`                      // how full; null: no bar may be drawn
}

// Totals are sums over the host.
type Totals struct {
	Devices int     `json:"devices"`
	Chips   int     `json:"chips"`
	States  []Count `json:"states"` // the worst first, ok last
	Power   string  `json:"power"`
	Hottest string  `json:"hottest"`
	DRAM    Figure  `json:"dram"`
}

// Count is how many devices are in a state.
type Count struct {
	Kind  string `json:"kind"`
	Text  string `json:"text"`
	Level string `json:"level" ts:"Level"`
	N     int    `json:"n"`
}

// Device is one device.
type Device struct {
	Name    string            `json:"name"`
	State   string            `json:"state"`            // as people read it: "throttled"
	Mark    string            `json:"mark"`             // its sign, where there is a single cell
	Kind    string            `json:"kind"`             // of the condition that it is: "slow_link"
	Level   string            `json:"level" ts:"Level"` // ok, info, warning or critical: the colour of state
	Reason  string            `json:"reason"`
	Values  map[string]Value  `json:"values"` // by name of the field, of those that have a heading
	Busy    string            `json:"busy"`   // the one of them that says how busy it is
	Pools   map[string]Figure `json:"pools"`
	Stale   string            `json:"stale"` // memory of the dead; empty: none
	Reasons []string          `json:"reasons"`
	Chips   []Chip            `json:"chips"`
}

// Chip is one chip of a device.
type Chip struct {
	Name    string            `json:"name"`
	Pools   map[string]Figure `json:"pools"`
	Stale   string            `json:"stale"`
	Reasons []string          `json:"reasons"`
}

// Process is one process.
type Process struct {
	Values map[string]Cell `json:"values"` // by name of the column, over all its devices
	Reach  string          `json:"reach"`  // whom to ask about it; empty: no more than the user is known
	Uses   []Use           `json:"uses"`   // in the order of the process's devices
}

// Cell is a value of a process as the table of fields writes it.
type Cell struct {
	Text  string   `json:"text"`                       // "≥62 %", "~1.0 GiB", or the word for why there is none
	N     *float64 `json:"n"`                          // to sort by, in the JSON contract's unit; null: a text, or not known
	Bound string   `json:"bound,omitempty" ts:"Bound"` // at_least or unsure; exact is left out
	Why   string   `json:"why,omitempty"`              // it is not known, or not exactly
}

// Use is what a process has of a device.
type Use struct {
	Values  map[string]Cell `json:"values"` // of the columns that are about devices
	Source  string          `json:"source"`
	Reasons []string        `json:"reasons"`
}

// Column is a column of the table of processes.
type Column struct {
	Name  string `json:"name"`
	Head  string `json:"head"`
	Help  string `json:"help"`
	Right bool   `json:"right"` // numbers
	Rank  int    `json:"rank"`  // when room is short the greatest goes first; 0: it is there only where a process has something to show in it
}

// Columns are those of the table of processes, in their order.
func Columns() []Column {
	var list []Column
	for _, f := range metric.Processes() {
		if f.Rank > 0 || f.Sparse {
			list = append(list, Column{f.Name, f.Head, f.Help, f.Right(), f.Rank})
		}
	}
	return list
}

// Of says a snapshot.
func Of(s *model.Snapshot) *Snapshot {
	a := assess.Of(s)
	out := &Snapshot{
		Schema: "ttmon.said/2", Time: s.Time.UTC(), Troubles: []Trouble{}, Notes: notices(words.Notes(s)), Notices: notices(words.Notices(s)),
		Totals: totals(s, a), Devices: []Device{}, Processes: []Process{}, Operations: operations(s),
	}
	troubles := words.Troubles(s)
	for i := range troubles {
		out.Troubles = append(out.Troubles, trouble(&troubles[i]))
	}
	out.Trouble = words.TroubleSummary(troubles)
	for i := range s.Devices {
		out.Devices = append(out.Devices, device(s, a, &s.Devices[i]))
	}
	for i := range s.Processes {
		out.Processes = append(out.Processes, process(s, &s.Processes[i]))
	}
	return out
}

func notices(list []words.Notice) []Notice {
	out := []Notice{}
	for _, n := range list {
		out = append(out, Notice{n.Level.String(), n.Code, append([]int{}, n.Devices...), n.String()})
	}
	return out
}

func trouble(t *words.Trouble) Trouble {
	out := Trouble{
		Level: t.Level.String(), Kind: string(t.Kind), Devices: append([]int{}, t.Devices...), Name: t.Name, Board: t.Board, What: t.What,
		Held: t.Held, Facts: t.Facts, Affected: t.Affected, Remedy: t.Remedy, Alerts: append([]string{}, t.Alerts...),
	}
	if !t.Since.IsZero() {
		since := t.Since.UTC()
		out.Since = &since
	}
	return out
}

// figure is a figure by itself.
func figure(text string, b model.Bytes) Figure {
	f := Figure{Text: text}
	if n, bound, known := b.Best(); known {
		f.Bytes, f.Bound = &n, bound.String()
	}
	return f
}

func pools(m *model.Memory) map[string]Figure {
	out := map[string]Figure{}
	for _, p := range model.Pools() {
		u := &m.Pools[p]
		shown := u.Used
		if taken, _, ok := words.Taken(p, u); ok {
			shown = taken
		}
		f := figure(words.PoolLong(p, u, m.Tracking), shown)
		if ratio, _, ok := words.Ratio(p, u); ok {
			f.Ratio = &ratio
		}
		out[p.String()] = f
	}
	return out
}

// stale says what dead processes left; empty if they left nothing.
func stale(m *model.Memory) string {
	if n, _, known := m.Stale.Best(); !known || n == 0 {
		return ""
	}
	return words.FigureInText(m.Stale)
}

func reasons(list []string) []string { return append([]string{}, list...) }

func device(s *model.Snapshot, a *assess.Assessment, d *model.Device) Device {
	is := a.Device(d.Index)
	out := Device{
		Name: words.Foreign(d.Board), State: words.State(a, d), Reason: words.StateReason(d),
		Kind: string(is.Kind), Mark: words.StateMark(is.Kind), Level: is.Level.String(), Values: values(metric.Show(s, a), d),
		Pools: pools(&d.Memory), Stale: stale(&d.Memory), Chips: []Chip{},
		Reasons: reasons(words.Reasons(d.Memory.Tracking, slices.Concat(d.Doubts, d.Memory.Doubts), s.Source)),
		Busy:    metric.BusyField(d).Name,
	}
	if !d.Board.Known() {
		out.Name = string(d.Arch)
	}
	for i := range d.Chips {
		c := &d.Chips[i]
		out.Chips = append(out.Chips, Chip{
			Name: c.Name, Pools: pools(&c.Memory), Stale: stale(&c.Memory),
			Reasons: reasons(words.Reasons(c.Memory.Tracking, c.Memory.Doubts, s.Source)),
		})
	}
	return out
}

func process(s *model.Snapshot, p *model.Process) Process {
	out := Process{Reach: words.Reach(p), Values: map[string]Cell{}, Uses: []Use{}}
	for _, f := range metric.Processes() {
		if f.Rank > 0 || f.Sparse {
			out.Values[f.Name] = cell(&f, f.Get(s, p))
		}
	}
	for i := range p.Devices {
		u := &p.Devices[i]
		use := Use{Values: map[string]Cell{}, Source: words.Source(u.Source), Reasons: reasons(words.UseReasons(p, u, s.Source))}
		alone := onDevice(p, i)
		for _, f := range metric.Processes() {
			if f.OfDevice {
				use.Values[f.Name] = cell(&f, f.Get(s, alone))
			}
		}
		out.Uses = append(out.Uses, use)
	}
	return out
}

// onDevice is a process as if one of its devices were all that it uses.
func onDevice(p *model.Process, i int) *model.Process {
	alone := *p
	alone.Devices, alone.Work.Chips = p.Devices[i:i+1:i+1], nil
	for _, c := range p.Work.Chips {
		if c.Device == p.Devices[i].Device {
			alone.Work.Chips = append(alone.Work.Chips, c)
		}
	}
	return &alone
}

func cell(f *metric.Process, v metric.Value) Cell {
	c := Cell{Text: strings.TrimSpace(f.Cell(v)), Why: words.Escape(v.Why)}
	if f.Kind == metric.Text && v.Known() {
		c.Text = words.Escape(v.Text) // there is room for all of it
		return c
	}
	if v.Known() {
		c.N = &v.Num
	}
	if v.Bound != model.Exact {
		c.Bound = v.Bound.String()
	}
	return c
}
