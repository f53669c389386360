package ledger

import (
	"github.com/ttmon/ttmon/internal/budget"
)

// owner is what the processes of one user have together. It is there as long
// as one of them is.
type owner struct {
	uid     int
	procs   int
	live    int    // buffers
	strange int    // uses of devices from strangeDevice on
	refused uint64 // buffers and devices that were not taken in
}

// Device numbers are small: hosts have up to 32 chips. All processes may name
// those below strangeDevice. From there on somebody is testing, wrong or
// hostile, and what they name is bounded, since every viewer gets a row for
// every device.
const (
	strangeDevice  = 64
	strangePerUser = 256
	strangeInAll   = 1024
)

// owned makes a process one of its user's.
func (l *Ledger) owned(p *Process) {
	o := l.owners[p.info.UID]
	if o == nil {
		o = &owner{uid: p.info.UID}
		l.owners[o.uid] = o
	}
	o.procs++
	p.owner = o
}

// disown takes a process that has ended, and all that it has, from its user.
func (l *Ledger) disown(p *Process) {
	o := p.owner
	o.live -= p.table.live
	l.live -= p.table.live
	for i, id := range p.ids {
		l.leaveDevice(p, i, id)
	}
	if o.procs--; o.procs == 0 {
		delete(l.owners, o.uid)
	}
}

// roomFor reports whether one more buffer of a process may be kept.
func (l *Ledger) roomFor(p *Process) bool {
	if p.owner.live < l.limit.PerUser && l.live < l.limit.Ordinary {
		return true
	}
	return l.live < l.limit.All && budget.Privileged(p.owner.uid)
}

// limits bound the live buffers.
type limits struct{ PerUser, Ordinary, All int }

func newLimits(all int) limits {
	d := budget.Divide(int64(all))
	return limits{PerUser: int(d.PerUID), Ordinary: int(d.All - d.Reserve), All: all}
}

// mayName reports whether a process may use a device that it has not used yet.
func (l *Ledger) mayName(p *Process, id int32) bool {
	switch {
	case id < 0 || id > MaxDevice || len(p.ids) == maxDevices:
		return false
	case id < strangeDevice || budget.Privileged(p.owner.uid) && l.strange < 2*strangeInAll:
		return true
	default:
		return p.owner.strange < strangePerUser && l.strange < strangeInAll
	}
}

// enterDevice counts a process as a user of a device.
func (l *Ledger) enterDevice(p *Process, id int32) *use {
	total := l.devices[id]
	if total == nil {
		total = new(use)
		l.devices[id] = total
	}
	total.users++
	if id >= strangeDevice {
		p.owner.strange++
		l.strange++
	}
	return total
}

// leaveDevice takes what a process holds on a device out of its sums. A device
// that nobody uses any more is forgotten.
func (l *Ledger) leaveDevice(p *Process, i int, id int32) {
	d := &p.devices[i]
	for pool := range NumPools {
		d.total.bytes[pool] -= d.bytes[pool]
		d.total.count[pool] -= d.count[pool]
	}
	if id >= strangeDevice {
		p.owner.strange--
		l.strange--
	}
	if d.total.users--; d.total.users == 0 {
		delete(l.devices, id)
	}
}

// Budget returns who has how many live buffers.
func (l *Ledger) Budget() budget.State {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := budget.State{
		Name: "buffers", Used: int64(l.live), All: int64(l.limit.All), PerUID: int64(l.limit.PerUser),
		Reserve: int64(l.limit.All - l.limit.Ordinary), Refused: l.refused, Users: make([]budget.User, 0, len(l.owners)),
	}
	for uid, o := range l.owners {
		s.Users = append(s.Users, budget.User{UID: uid, Used: int64(o.live), Refused: o.refused})
	}
	s.Users = budget.TopUsers(s.Users)
	return s
}

// SetMaxBuffers changes how many live buffers are kept. Those that are there
// stay.
func (l *Ledger) SetMaxBuffers(n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.limit = newLimits(n)
}
