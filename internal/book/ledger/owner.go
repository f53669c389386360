package ledger

import (
	"github.com/ttmon/ttmon/internal/base/budget"
)

// owner is what the processes of one user have together. It exists while one of
// them does.
type owner struct {
	uid     int
	procs   int
	live    int    // buffers
	slots   int    // of the tables, free ones too
	oddUses int    // uses of devices from firstOddDevice on
	refused uint64 // buffers and devices that were refused
}

// Device numbers are small: hosts have up to 32 chips. All processes may name
// those below firstOddDevice. Higher numbers come from a test, a broken or a
// hostile program, and are bounded, since every viewer gets a row for every
// device.
const (
	firstOddDevice = 64
	oddPerUser     = 256
	oddInAll       = 1024
)

// addToOwner adds a process to its user.
func (l *Ledger) addToOwner(p *Process) {
	o := l.owners[p.info.UID]
	if o == nil {
		o = &owner{uid: p.info.UID}
		l.owners[o.uid] = o
	}
	o.procs++
	p.owner = o
}

// removeFromOwner removes an exited process, and all that it has, from its
// user.
func (l *Ledger) removeFromOwner(p *Process) {
	o := p.owner
	o.live -= p.table.live
	l.live -= p.table.live
	o.slots -= p.table.slots
	for i, id := range p.ids {
		l.removeDeviceUser(p, i, id)
	}
	if o.procs--; o.procs == 0 {
		delete(l.owners, o.uid)
	}
}

// hasRoom reports whether one more buffer of a process may be kept. Tables may be
// half empty, and a slab of each process more than that: a user who frees all but
// one buffer of each slab would have memory without limit.
func (l *Ledger) hasRoom(p *Process) bool {
	if p.owner.slots >= 2*l.limit.PerUser+slabLen*p.owner.procs && !budget.Privileged(p.owner.uid) {
		return false
	}
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

// mayUseDevice reports whether a process may use a device that it has not used
// yet.
func (l *Ledger) mayUseDevice(p *Process, id int32) bool {
	switch {
	case id < 0 || id > MaxDevice || len(p.ids) == maxDevices:
		return false
	case id < firstOddDevice || budget.Privileged(p.owner.uid) && l.oddUses < 2*oddInAll:
		return true
	default:
		return p.owner.oddUses < oddPerUser && l.oddUses < oddInAll
	}
}

// addDeviceUser counts a process as a user of a device.
func (l *Ledger) addDeviceUser(p *Process, id int32) *use {
	total := l.devices[id]
	if total == nil {
		total = new(use)
		l.devices[id] = total
	}
	total.users++
	if id >= firstOddDevice {
		p.owner.oddUses++
		l.oddUses++
	}
	return total
}

// removeDeviceUser subtracts what a process holds on a device from its sums. A
// device without users is dropped.
func (l *Ledger) removeDeviceUser(p *Process, i int, id int32) {
	d := &p.devices[i]
	for pool := range NumPools {
		d.total.bytes[pool] -= d.bytes[pool]
		d.total.count[pool] -= d.count[pool]
	}
	if id >= firstOddDevice {
		p.owner.oddUses--
		l.oddUses--
	}
	if d.total.users--; d.total.users == 0 {
		delete(l.devices, id)
	}
}

// Budget returns the live buffers by user.
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
