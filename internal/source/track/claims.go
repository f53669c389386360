package track

import (
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// Claims is a sweep in the terms of the join: what each process holds on each
// of its chips. It wins over whatever is seen from outside.
func (s *Sweep) Claims() claim.Set {
	set := claim.Set{Source: model.FromTrack}
	for i := range s.Processes {
		if p := &s.Processes[i]; p.Start != 0 {
			held := p.State.Held()
			for k := range held { // libttmon does not record them
				held[k].Bytes[model.CB] = model.NoBytes(model.Unsupported)
			}
			set.Held = append(set.Held, held...)
			if len(held) == 0 && p.State.HoldsNothing() {
				set.Nothing = append(set.Nothing, model.ProcessID{PID: p.PID, StartTicks: p.Start})
			}
			set.Listens = append(set.Listens, claim.Listens{Process: model.ProcessID{PID: p.PID, StartTicks: p.Start}})
			p.claimWork(&set)
		}
	}
	return set
}
