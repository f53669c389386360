package runs

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Work is what a process of the run had a chip do, as its last snapshot knew it.
type Work struct {
	PID        int    `json:"pid"`
	StartTicks uint64 `json:"start_ticks"`
	Chip       string `json:"chip"`           // UMD's unique id, in decimal
	Name       string `json:"name,omitempty"` // of the chip on its board
	// Busy is for how many seconds a program ran, while the run was watched.
	Busy     float64         `json:"busy_s"`
	Programs uint64          `json:"programs"`
	Bound    string          `json:"busy_bound"`
	Cause    model.WorkCause `json:"cause,omitempty"` // of a bound that is not exact
	// Pending is why the last snapshot may lack programs that the next one would
	// have had. There may be no next one.
	Pending model.WorkCause `json:"pending,omitempty"`
	Longest float64         `json:"longest_s"` // program
	Gap     float64         `json:"longest_gap_s"`
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

// Busy is how busy the run had the device: the busiest of its chips. It is not
// known where none of its processes reported programs; Cause may say why.
func (d *Device) Busy() (b Busyness, known bool) {
	b, known = d.busiest()
	if d.Partial != "" {
		b.doubt(model.AtLeast, d.Partial)
	}
	if !known || d.Open <= 0 || b.Bound == model.AtLeast && b.Seconds == 0 {
		return Busyness{Cause: b.Cause}, false
	}
	if b.Ratio = b.Seconds / d.Open; b.Ratio > 1 {
		if b.Ratio > 1.02 {
			b.Bound, b.Cause = model.Unsure, model.WorkTooMuch
		}
		b.Ratio = 1
	}
	return b, true
}

// busiest is what is known of the busiest chip. Where another one may have done
// more than is known of it, so may the busiest.
func (d *Device) busiest() (b Busyness, known bool) {
	chips := map[string]Busyness{}
	for i := range d.Work {
		w := &d.Work[i]
		x := chips[w.Chip]
		x.Seconds, x.Programs = x.Seconds+w.Busy, x.Programs+w.Programs
		x.doubt(model.ParseBound(w.Bound), w.Cause)
		if w.Pending != "" {
			x.doubt(model.AtLeast, w.Pending)
		}
		chips[w.Chip] = x
	}
	ids := slices.Sorted(maps.Keys(chips))
	for _, id := range ids {
		if x := chips[id]; !known || x.Seconds > b.Seconds {
			b, known = x, true
		}
	}
	for _, id := range ids {
		b.doubt(chips[id].Bound, chips[id].Cause)
	}
	return b, known
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
			for _, o := range r.Devices[i].Work[k].Operations {
				at := slices.IndexFunc(list, func(x Operation) bool { return x.Name == o.Name })
				if at < 0 {
					list = append(list, o)
					continue
				}
				list[at].Calls, list[at].Seconds = list[at].Calls+o.Calls, list[at].Seconds+o.Seconds
			}
		}
	}
	slices.SortStableFunc(list, func(a, b Operation) int {
		return cmp.Or(cmp.Compare(b.Seconds, a.Seconds), cmp.Compare(a.Name, b.Name))
	})
	return list
}

// Gaps are the longest of the run, over all its chips, the longest first. Of a chip
// that several processes used one may have worked in the gap of another.
func (r *Run) Gaps() (list []DeviceGap) {
	for i := range r.Devices {
		d := &r.Devices[i]
		shared := map[string]bool{}
		for k := range d.Work {
			w := &d.Work[k]
			shared[w.Chip] = shared[w.Chip] || slices.ContainsFunc(d.Work, func(x Work) bool {
				return x.Chip == w.Chip && (x.PID != w.PID || x.StartTicks != w.StartTicks)
			})
		}
		for k := range d.Work {
			w := &d.Work[k]
			cause := w.GapsCause
			if shared[w.Chip] {
				cause = cmp.Or(cause, model.GapsProcesses)
			} else if d.Partial == model.WorkOtherProcess {
				cause = cmp.Or(cause, model.GapsOtherProcess)
			}
			for _, g := range w.Gaps {
				list = append(list, DeviceGap{g, d.Index, w.Name, cause})
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
