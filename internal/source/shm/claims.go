package shm

import (
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// Claims returns what the sweep says about memory.
func (s *Sweep) Claims() claim.Set {
	set := claim.Set{Source: model.FromShm}
	if s.Err != nil {
		set.Err = &model.Doubt{Kind: model.ShmUnreadable, Detail: s.Err.Error()}
	}
	held := 0
	for _, r := range s.Regions {
		held += len(r.Uses)
	}
	set.Chips, set.Held = make([]claim.Chip, 0, len(s.Regions)), make([]claim.Held, 0, held)
	set.Known = make([]model.Process, 0, len(s.Processes))
	for _, r := range s.Regions {
		set.Chips = append(set.Chips, r.claim())
		for _, u := range r.Uses {
			set.Held = append(set.Held, claim.Held{
				Process: model.ProcessID{PID: u.PID, StartTicks: u.StartTicks},
				Chip:    claim.Chip{ID: r.ID}, Bytes: u.Bytes, CB: u.CB, Doubts: u.Doubts, Together: u.Together,
			})
		}
		for i := range r.StaleSlots {
			g := &r.StaleSlots[i]
			set.Left = append(set.Left, claim.Left{
				Chip: r.ID, Region: r.Path, PID: g.PID, Name: g.Name, Bytes: g.Bytes, Updated: g.Updated, Mapped: len(r.Mapped) > 0,
			})
		}
	}
	for _, p := range s.Processes {
		if !p.Accounts {
			set.Silent = append(set.Silent, claim.Silent{Process: p.id(), Why: p.Silent})
		}
		for _, d := range p.ShutOut {
			set.Silent = append(set.Silent, claim.Silent{Process: p.id(), Chip: d.Chip, Why: d})
		}
		set.Known = append(set.Known, p.known())
	}
	return set
}

func (r *Region) claim() claim.Chip {
	c := claim.Chip{
		ID: r.ID, Region: r.Path, Logical: r.DeviceID, Since: r.Since, Doubts: r.Doubts, Why: r.Why, Together: r.Together,
	}
	for i := range r.Uses {
		if i == 0 || r.Uses[i].PID != r.Uses[i-1].PID {
			c.Holders = append(c.Holders, model.ProcessID{PID: r.Uses[i].PID, StartTicks: r.Uses[i].StartTicks})
		}
	}
	return c
}

func (p *Process) id() model.ProcessID {
	return model.ProcessID{PID: p.PID, StartTicks: p.StartTicks}
}

// known is what accounting says about a process.
func (p *Process) known() model.Process {
	out := model.Process{
		PID: p.PID, StartTicks: p.StartTicks, StartTime: p.StartTime, State: model.Running,
		Name: model.Value(p.Name), Release: p.Release, Type: p.Type,
	}
	if p.UID >= 0 {
		out.UID = model.Value(p.UID)
	}
	return out
}
