package ledger

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Info is what is known about a process from outside. Its pid is that of the
// daemon's namespace, 0 if it has none there; its start is another unique
// number where it is unknown.
type Info struct {
	model.ProcessID
	UID     int    `json:"uid"`
	GID     int    `json:"gid"`
	SentPID int    `json:"sent_pid"`        // the pid in its own namespace, as sent; a hint
	Name    string `json:"name" see:"proc"` // comm; raw, escaped by the views
}

// tick is the resolution of ages. 32 bits of it are 497 days of one process.
const tick = 10 * time.Millisecond

// maxDevices bounds the devices of one process: twice what the largest host
// has. It also bounds what a FREE with the wrong device costs.
const maxDevices = 64

// Process is one reporter. It belongs to its ledger; callers keep the pointer
// only to pass it to Apply.
type Process struct {
	info     Info
	owner    *owner
	epoch    time.Time // when it was first seen
	last     time.Time // of the last event
	table    table
	ids      []int32 // of devices, same index: what the lookup scans
	devices  []deviceUse
	recent   int // index of the device last used
	counters Counters
	ended    bool
}

// deviceUse is what a process holds on one device.
type deviceUse struct {
	use
	total *use // of all processes, for the same device number
}

// use is bytes and buffers per pool, now and at most.
type use struct {
	bytes, peak [NumPools]uint64
	count       [NumPools]uint64
	users       int // processes; in sums of all only
}

func (u *use) add(pool uint8, size uint64) {
	u.bytes[pool] += size
	u.peak[pool] = max(u.peak[pool], u.bytes[pool])
	u.count[pool]++
}

func (u *use) sub(pool uint8, size uint64) {
	u.bytes[pool] -= size
	u.count[pool]--
}

// device returns the index of a device the process has used.
func (p *Process) device(id int32) (uint16, bool) {
	if p.recent < len(p.ids) && p.ids[p.recent] == id {
		return uint16(p.recent), true
	}
	i := slices.Index(p.ids, id)
	if i < 0 {
		return 0, false
	}
	p.recent = i
	return uint16(i), true
}

func (p *Process) ticks(now time.Time) uint32 {
	return uint32(min(max(now.Sub(p.epoch)/tick, 0), 1<<32-1))
}

func (p *Process) bornAt(ticks uint32) time.Time { return p.epoch.Add(time.Duration(ticks) * tick) }

// l1Floor and l1End bound the addresses where tt-metal can place an L1
// buffer: below lie firmware and the kernel ring, above there is no L1.
const (
	l1Floor = 64 << 10
	l1End   = 1536 << 10
	l1Align = 32
)

func canBeL1(id uint64) bool { return id >= l1Floor && id < l1End && id%l1Align == 0 }

// kindOf returns the number space of a buffer of a pool.
func kindOf(pool uint8, id uint64) kind {
	if (pool == uint8(model.L1) || pool == uint8(model.L1Small)) && canBeL1(id) {
		return l1Buffer
	}
	return buffer
}

// findBuffer finds what a FREE on a device refers to: the younger of the two
// buffers that may have the same address in DRAM and in L1.
func (p *Process) findBuffer(dev uint16, id uint64) (*entry, *uint32) {
	e, link := p.table.find(buffer, dev, id)
	if !canBeL1(id) {
		return e, link
	}
	l1, l1Link := p.table.find(l1Buffer, dev, id)
	if e == nil || l1 != nil && l1.born >= e.born {
		return l1, l1Link
	}
	return e, link
}

// findElsewhere finds the only buffer with an address on any device.
func (p *Process) findElsewhere(id uint64) (found *entry, at *uint32) {
	for dev := range p.ids {
		e, link := p.findBuffer(uint16(dev), id)
		switch {
		case e == nil:
		case found != nil:
			return nil, nil
		default:
			found, at = e, link
		}
	}
	return found, at
}

// Ignored is a process that is in no ledger: events in its name are ignored.
func (l *Ledger) Ignored() *Process { return &Process{ended: true} }
