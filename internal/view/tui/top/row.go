package top

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// id is the identity of a process.
type id struct {
	pid   int
	start uint64
}

// row is one line of the process table.
type row struct {
	p       *model.Process
	now     time.Time
	devices []int
	mem     [model.NumPools]amount
	parent  bool // stands for a parent that uses no device itself
	below   int  // of a parent: how many processes it stands for
	depth   int
	branch  string // what the tree draws before the command
}

// amount is a sum over devices that may not all be known.
type amount struct {
	bytes  uint64
	known  bool         // some of it
	short  bool         // some of it is not known
	status model.Status // why, if all is missing
}

// partial tells whether the sum leaves something out.
func (a amount) partial() bool { return a.known && a.short }

func (r *row) id() id { return id{r.p.PID, r.p.StartTicks} }

func makeRow(p *model.Process, now time.Time) row {
	r := row{p: p, now: now}
	for i := range p.Devices {
		u := &p.Devices[i]
		if u.Device != model.NoDevice {
			r.devices = append(r.devices, u.Device)
		}
		for q := range u.Memory {
			status := u.Memory[q].Status
			if status == model.Absent && u.Tracking == model.TrackDenied {
				status = model.Denied
			}
			r.mem[q].add(u.Memory[q].V, status)
		}
	}
	return r
}

func (a *amount) add(bytes uint64, s model.Status) {
	if s == model.Known {
		a.bytes, a.known = a.bytes+bytes, true
		return
	}
	a.short = true
	if a.status == model.Absent {
		a.status = s
	}
}

// String is the sum; "≥" marks one that leaves something out.
func (a amount) String() string {
	switch {
	case !a.known:
		return words.Missing(a.status)
	case a.partial():
		return "≥" + words.Bytes(a.bytes)
	}
	return words.BytesColumn(a.bytes)
}

// command is what the process was started with, or what else is known of it.
func (r *row) command() string {
	if r.parent {
		return "(parent; uses no device itself)"
	}
	return words.Command(r.p)
}

// age is how long the process has run; ok is false where that is not known.
func (r *row) age() (time.Duration, bool) {
	if r.p.StartTime.IsZero() {
		return 0, false
	}
	return max(r.now.Sub(r.p.StartTime), 0), true
}
