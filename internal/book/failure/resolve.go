package failure

import (
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// FillFrom adds from a snapshot of that time which devices the chips are, who ran the
// process, and which other processes had memory of the chips.
func (r *Record) FillFrom(s *model.Snapshot) {
	r.ResolveChips(s)
	for i := range s.Processes {
		p := &s.Processes[i]
		if p.PID == r.Process.PID && (r.Process.Start == 0 || p.StartTicks == r.Process.Start) {
			r.Process.Identify(p)
		} else {
			r.addOther(p)
		}
	}
	slices.SortFunc(r.Others, func(a, b Other) int { return a.PID - b.PID })
}

// ResolveChips finds the devices of the chips, and reports whether all are known.
func (r *Record) ResolveChips(s *model.Snapshot) bool {
	for i := range s.Devices {
		d := &s.Devices[i]
		for _, chip := range d.Chips {
			id, ok := chip.ID.Get()
			for j := range r.Chips {
				if c := &r.Chips[j]; ok && c.ID == id {
					index := d.Index
					c.Device, c.BusID, c.Board, c.Name = &index, d.BusID, d.Board.V, chip.Name
				}
			}
		}
	}
	return r.ChipsResolved()
}

// ChipsResolved reports whether the devices of all chips are known.
func (r *Record) ChipsResolved() bool {
	return !slices.ContainsFunc(r.Chips, func(c Chip) bool { return c.Device == nil })
}

// Identify copies what the snapshot has of the process.
func (q *Process) Identify(p *model.Process) {
	q.Start = p.StartTicks
	if uid, ok := p.UID.Get(); ok && q.UID < 0 {
		q.UID = uid
	}
	if q.Name == "" {
		q.Name = p.Name.V
	}
	if q.Command == "" {
		q.Command = p.Cmdline.V
	}
	if q.Release == "" {
		q.Release = p.Release.V
	}
}

// maxOthers bounds the list of other processes.
const maxOthers = 16

// addOther notes another process with memory of the same pool and chips. Its name
// is for its own user.
func (r *Record) addOther(p *model.Process) {
	var sum model.Sum
	found := false
	for i := range p.Devices {
		for _, c := range p.Devices[i].Chips {
			if slices.ContainsFunc(r.Chips, func(x Chip) bool { return x.ID == c.ChipID }) {
				sum.Add(c.Memory[r.PoolKind()])
				found = true
			}
		}
	}
	n, bound, known := sum.Bytes().Best()
	if !found || !known || n == 0 || len(r.Others) >= maxOthers {
		return
	}
	o := Other{PID: p.PID, Bytes: n, Bound: bound.String()}
	if uid, ok := p.UID.Get(); ok && uid == r.Process.UID {
		o.Name = p.Name.V
	}
	r.Others = append(r.Others, o)
}
