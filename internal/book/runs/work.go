package runs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Work is what a process of the run had a chip do, as its last snapshot knew it or its
// ledger.
type Work struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	Chip       string `json:"chip"`           // UMD's unique id, in decimal
	Name       string `json:"name,omitempty"` // of the chip on its board
	// Busy is for how many seconds a program ran, while the run was watched.
	Busy     float64 `json:"busy_s"`
	Programs uint64  `json:"programs"`
	// Bound is that of Busy and Programs; empty: nothing was reported, and Cause says why.
	Bound string          `json:"busy_bound"`
	Cause model.WorkCause `json:"cause,omitempty"` // of a bound that is not exact
	// Pending is why the last snapshot may lack programs that the next one would
	// have had. There may be no next one.
	Pending     model.WorkCause `json:"pending,omitempty"`
	Longest     float64         `json:"longest_s"` // program
	LongestName string          `json:"longest_operation,omitempty"`
	Gap         float64         `json:"longest_gap_s"`
	// Late is how long the chip waited for the host, between programs that follow
	// within 100 ms; nil: not known.
	Late *float64 `json:"host_late_s,omitempty"`
	// Opened and Closed are from when to when the process had the chip open; zero:
	// not known.
	Opened time.Time `json:"opened,omitzero"`
	Closed time.Time `json:"closed,omitzero"`
	// Operations are those that took most, by the time they took since the process
	// began.
	Operations []Operation `json:"operations,omitempty"`
	// Gaps are the longest since the process began, the longest first. GapsCause is
	// why none is listed, or why a program may have run in one.
	Gaps      []Gap          `json:"gaps,omitempty"`
	GapsCause model.GapCause `json:"gaps_cause,omitempty"`
	// Base is what it had done when the run was first seen.
	Base WorkBase `json:"base,omitzero"`
}

// WorkBase is what a process had done before a run was watched.
type WorkBase struct {
	Busy     float64 `json:"busy_s"`
	Programs uint64  `json:"programs"`
}

// Operation is what the programs of one operation took.
type Operation struct {
	Name    string  `json:"operation"`
	Calls   uint64  `json:"calls"`
	Seconds float64 `json:"time_s"`
	Longest float64 `json:"longest_s,omitempty"` // of its programs; 0: not known
}

// Gap is a pause between two programs of a process on a chip.
type Gap struct {
	Seconds float64   `json:"length_s"`
	End     time.Time `json:"end,omitzero"`
	After   string    `json:"after,omitempty"` // the operation before it; empty: not known
}

// DeviceGap is a gap, and where it was.
type DeviceGap struct {
	Gap
	Device int
	Chip   string         // its name on a board with several
	Cause  model.GapCause // why a program may have run in it; empty: none did
}

// Busyness is how busy a run had a device.
type Busyness struct {
	Ratio    float64 // of the time in which the device was seen open
	Seconds  float64
	Programs uint64
	Bound    model.Bound
	Cause    model.WorkCause
}

// doubt makes the figure no better than a bound.
func (b *Busyness) doubt(bound model.Bound, cause model.WorkCause) {
	if bound > b.Bound {
		b.Bound, b.Cause = bound, cause
	}
}

// share computes the ratio of the time in which a chip or a device was open. It cannot
// have been busy for longer: up to 2 % more is tolerated.
func (b *Busyness) share(open float64) {
	if b.Ratio = b.Seconds / open; b.Ratio > 1 {
		if b.Ratio > 1.02 {
			b.Bound, b.Cause = model.Unsure, model.WorkTooMuch
		}
		b.Ratio = 1
	}
}

// ChipWork is what all processes of the run had one chip do. Programs of two processes
// may have run at the same time; no record says so.
type ChipWork struct {
	Chip, Name string
	// Known says that programs were reported; else Cause is why they were not.
	Known bool
	Busyness
	Open        float64 // seconds, from when the chip was first opened until it was closed for good; 0: not known
	Late        float64 // seconds that it waited for the host
	Longest     float64 // program
	LongestName string
	Gap         float64
	Gaps        []Gap // the longest first
	GapsCause   model.GapCause
	Operations  []Operation // the longest first

	processes      map[model.ProcessID]bool
	opened, closed time.Time
	silent         model.WorkCause // why a process reported nothing; empty: all did
}

// WorkOfChips is what the run had each chip of the device do, in the order of the
// chips' ids.
func (d *Device) WorkOfChips() (list []ChipWork) {
	chips := map[string]*ChipWork{}
	for i := range d.Work {
		w := &d.Work[i]
		if chips[w.Chip] == nil {
			chips[w.Chip] = &ChipWork{Chip: w.Chip, Name: w.Name, processes: map[model.ProcessID]bool{}}
		}
		chips[w.Chip].add(w)
	}
	for _, id := range slices.Sorted(maps.Keys(chips)) {
		chips[id].finish(d)
		list = append(list, *chips[id])
	}
	return list
}

// add adds what a process had the chip do.
func (c *ChipWork) add(w *Work) {
	if !w.Opened.IsZero() && (c.opened.IsZero() || w.Opened.Before(c.opened)) {
		c.opened = w.Opened
	}
	if w.Closed.After(c.closed) {
		c.closed = w.Closed
	}
	c.processes[model.ProcessID{PID: w.PID, StartTicks: w.StartTicks}] = true
	if w.Bound == "" {
		c.silent = cmp.Or(c.silent, w.Cause)
		return
	}
	c.Known = true
	c.Seconds, c.Programs = c.Seconds+w.Busy, c.Programs+w.Programs
	c.doubt(model.ParseBound(w.Bound), w.Cause)
	if w.Pending != "" {
		c.doubt(model.AtLeast, w.Pending)
	}
	if w.Late != nil {
		c.Late += *w.Late
	}
	if w.Longest > c.Longest {
		c.Longest, c.LongestName = w.Longest, w.LongestName
	}
	c.Gap = max(c.Gap, w.Gap)
	c.Gaps, c.GapsCause = append(c.Gaps, w.Gaps...), cmp.Or(c.GapsCause, w.GapsCause)
	c.Operations = addOperations(c.Operations, w.Operations)
}

// finish computes what follows from all processes together.
func (c *ChipWork) finish(d *Device) {
	sortOperations(c.Operations)
	slices.SortStableFunc(c.Gaps, func(a, b Gap) int { return cmp.Compare(b.Seconds, a.Seconds) })
	c.Open = d.Open
	if !c.opened.IsZero() {
		c.Open = c.closed.Sub(c.opened).Seconds()
	}
	if !c.Known {
		c.Cause = c.silent
		return
	}
	switch {
	case c.silent != "":
		c.doubt(model.AtLeast, c.silent)
		c.GapsCause = cmp.Or(c.GapsCause, model.GapsOtherProcess)
	case len(c.processes) > 1:
		c.GapsCause = cmp.Or(c.GapsCause, model.GapsProcesses)
	case d.Partial == model.WorkOtherProcess:
		c.GapsCause = cmp.Or(c.GapsCause, model.GapsOtherProcess)
	}
	if c.Gap == 0 {
		c.GapsCause = ""
	}
	if c.Open > 0 {
		c.share(c.Open)
	}
}

// Busy is how busy the run had the device: the busiest of its chips. It is not
// known where none of its processes reported programs; Cause may say why. Where another
// chip may have done more than is known of it, so may the busiest.
func (d *Device) Busy() (b Busyness, known bool) {
	list := d.WorkOfChips()
	for i := range list {
		if c := &list[i]; c.Known && (!known || c.Seconds > b.Seconds) {
			b, known = c.Busyness, true
		}
	}
	for i := range list {
		bound := list[i].Bound
		if !list[i].Known {
			bound = model.AtLeast
		}
		b.doubt(bound, list[i].Cause)
	}
	if d.Partial != "" {
		b.doubt(model.AtLeast, d.Partial)
	}
	if !known || d.Open <= 0 || b.Bound == model.AtLeast && b.Seconds == 0 {
		return Busyness{Cause: b.Cause}, false
	}
	b.share(d.Open)
	return b, true
}

// Busy is how busy the run had its devices: the mean over those that it was seen
// to have open. One of which nothing is known was busy for 0 s at least.
func (r *Run) Busy() (b Busyness, known bool) {
	n := 0.0
	for i := range r.Devices {
		d := &r.Devices[i]
		x, ok := d.Busy()
		switch {
		case ok:
			known = true
			b.Ratio, b.Seconds, b.Programs = b.Ratio+x.Ratio, b.Seconds+x.Seconds, b.Programs+x.Programs
			b.doubt(x.Bound, x.Cause)
		case d.Index < 0 || d.Open <= 0:
			continue
		default:
			b.doubt(model.AtLeast, cmp.Or(x.Cause, model.WorkOtherProcess))
		}
		n++
	}
	if !known {
		return Busyness{}, false
	}
	b.Ratio /= n
	if r.Unseen > 0 { // what ran meanwhile is counted, the time is not
		b.Bound = model.Unsure
	}
	return b, true
}

// MaxOperations is how many operations are kept of a process and chip: those that
// took most time.
const MaxOperations = 8

// AllOperations reports whether no operation of the run was left out.
func (r *Run) AllOperations() bool {
	for i := range r.Devices {
		for k := range r.Devices[i].Work {
			if len(r.Devices[i].Work[k].Operations) >= MaxOperations {
				return false
			}
		}
	}
	return true
}

// Operations are those of the run that took most time, over all its chips.
func (r *Run) Operations() (list []Operation) {
	for i := range r.Devices {
		for k := range r.Devices[i].Work {
			list = addOperations(list, r.Devices[i].Work[k].Operations)
		}
	}
	sortOperations(list)
	return list
}

// addOperations adds up operations of the same name.
func addOperations(sum, list []Operation) []Operation {
	for _, o := range list {
		at := slices.IndexFunc(sum, func(x Operation) bool { return x.Name == o.Name })
		if at < 0 {
			sum = append(sum, o)
			continue
		}
		x := &sum[at]
		x.Calls, x.Seconds, x.Longest = x.Calls+o.Calls, x.Seconds+o.Seconds, max(x.Longest, o.Longest)
	}
	return sum
}

func sortOperations(list []Operation) {
	slices.SortStableFunc(list, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
	})
}

// Gaps are the longest of the run, over all its chips, the longest first. Of a chip
// that several processes used one may have worked in the gap of another.
func (r *Run) Gaps() (list []DeviceGap) {
	for i := range r.Devices {
		for _, c := range r.Devices[i].WorkOfChips() {
			for _, g := range c.Gaps {
				list = append(list, DeviceGap{g, r.Devices[i].Index, c.Name, c.GapsCause})
			}
		}
	}
	slices.SortStableFunc(list, func(a, b DeviceGap) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), a.End.Compare(b.End))
	})
	return list
}

// GapsMissing is why gaps that there were are not listed; empty: all that are
// known to be among the longest are.
func (r *Run) GapsMissing() model.GapCause {
	for i := range r.Devices {
		for k := range r.Devices[i].Work {
			if w := &r.Devices[i].Work[k]; w.Gap > 0 && len(w.Gaps) == 0 {
				return cmp.Or(w.GapsCause, model.GapsNotKept)
			}
		}
	}
	return ""
}

// Idle is for how long a run that has not ended has held memory without having
// its chips do anything; 0: it is not known to be idle.
func (r *Run) Idle(now time.Time) time.Duration {
	if r.End.Kind != Running || r.IdleSince.IsZero() {
		return 0
	}
	return max(0, now.Sub(r.IdleSince))
}
