package track

import (
	"time"

	"github.com/ttmon/ttmon/internal/base/budget"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// readWork reads what a ledger says of programs. It changes without the ledger's
// epoch, so it is read at each sweep: some 10 µs a chip. A user whose ledgers
// have taken too long has to wait for the next sweep.
func (r *Reader) readWork(f *file) *ledgerfile.Work {
	u := r.users[f.uid]
	if r.opts.Memory != (budget.Limit{}) && !budget.Privileged(f.uid) && u.read.Spent(time.Now()) > readBurst {
		return nil
	}
	began := time.Now()
	w, err := f.work.Read(f.fd)
	now := time.Now()
	u.read.Add(now.Sub(began), now)
	if err != nil {
		return nil // what it says of memory was read; the next sweep tries again
	}
	return w
}

// claimWork adds what the programs of a process did.
func (p *Process) claimWork(set *claim.Set) {
	id, at := model.ProcessID{PID: p.PID, StartTicks: p.Start}, time.Now()
	if p.Work == nil {
		set.Listens = append(set.Listens, claim.Listens{Process: id, Why: model.WorkNoReport})
		return
	}
	set.Listens = append(set.Listens, claim.Listens{Process: id})
	set.Hosts = append(set.Hosts, claim.Host{Process: id, HostWork: hostWork(&p.Work.Host)})
	for i := range p.Work.Chips {
		if chip, ok := p.Ledger.ChipNumbered(p.Work.Chips[i].Logical); ok {
			w := claim.WorkOf(p.Work, i)
			w.Process, w.Chip, w.At = id, chip, at
			set.Work = append(set.Work, w)
		}
	}
}

func hostWork(h *ledgerfile.HostWork) model.HostWork {
	w := model.HostWork{
		Enqueued: h.Enqueued, Replayed: h.Replayed, LastEnqueue: h.LastEnqueue, LastFinish: h.LastFinish, LastName: h.LastName,
		Queues: h.Queues, SubDevices: h.SubDevices,
	}
	for _, x := range h.Waiting {
		if !w.WaitingSince.IsZero() && !x.Since.Before(w.WaitingSince) {
			continue
		}
		w.WaitingSince, w.WaitingFor = x.Since, model.WaitsForFinish
		if x.Kind == ledgerfile.WaitEvent {
			w.WaitingFor = model.WaitsForEvent
		}
	}
	return w
}
