package ledger

import (
	"cmp"
	"maps"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/model/apitype"
)

// Use is what is held on one device, by one process or by all.
type Use struct {
	Device  int32            `json:"device"` // the reporters' numbering
	Bytes   [NumPools]uint64 `json:"bytes"`  // by pool, Host last
	Peak    [NumPools]uint64 `json:"peak"`
	Buffers [NumPools]uint64 `json:"buffers"`
}

// Count sums the buffers of all pools.
func (u *Use) Count() (n uint64) {
	for _, c := range u.Buffers {
		n += c
	}
	return n
}

// Device returns what all processes hold on the device they call id. An
// unknown device holds nothing.
func (l *Ledger) Device(id int32) Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	if u := l.devices[id]; u != nil {
		return u.view(id)
	}
	return Use{Device: id}
}

// Devices returns every device that a live process has named, by number.
func (l *Ledger) Devices() []Use {
	l.mu.Lock()
	defer l.mu.Unlock()
	all := make([]Use, 0, len(l.devices))
	for _, id := range slices.Sorted(maps.Keys(l.devices)) {
		all = append(all, l.devices[id].view(id))
	}
	return all
}

func (u *use) view(id int32) Use {
	return Use{Device: id, Bytes: u.bytes, Peak: u.peak, Buffers: u.count}
}

// Holding is what one process holds.
type Holding struct {
	Info
	Since    time.Time `json:"since"` // first seen
	Last     time.Time `json:"last"`  // last event
	Buffers  int       `json:"buffers"`
	Devices  []Use     `json:"devices"` // by number
	Counters Counters  `json:"counters"`
}

// Processes returns every live reporter, by pid and start.
func (l *Ledger) Processes() []Holding {
	l.mu.Lock()
	procs := slices.Collect(maps.Values(l.procs))
	l.mu.Unlock()
	all := make([]Holding, 0, len(procs))
	for few := range slices.Chunk(procs, holdingsAtATime) {
		l.mu.Lock()
		for _, p := range few {
			if !p.ended {
				all = append(all, p.holding())
			}
		}
		l.mu.Unlock()
	}
	sorted.By(all, func(a, b *Holding) int {
		return cmp.Or(cmp.Compare(a.PID, b.PID), cmp.Compare(a.StartTicks, b.StartTicks))
	})
	return all
}

// holdingsAtATime bounds how long Processes keeps events waiting: 64 devices of
// a process are 10 KiB to copy.
const holdingsAtATime = 16

// WithPID returns the reporters that have, or had, a pid.
func (l *Ledger) WithPID(pid int) (all []Holding) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for k, p := range l.procs {
		if k.PID == pid {
			all = append(all, p.holding())
		}
	}
	return all
}

func (p *Process) holding() Holding {
	h := Holding{
		Info: p.info, Since: p.epoch, Last: p.last, Buffers: p.table.live, Counters: p.counters,
		Devices: make([]Use, len(p.devices)),
	}
	for i := range p.devices {
		h.Devices[i] = p.devices[i].view(p.ids[i])
	}
	sorted.By(h.Devices, func(a, b *Use) int { return cmp.Compare(a.Device, b.Device) })
	return h
}

// Stats returns figures about the ledger itself.
func (l *Ledger) Stats() apitype.Ledger {
	l.mu.Lock()
	defer l.mu.Unlock()
	return apitype.Ledger{Processes: len(l.procs), Buffers: l.live, Events: l.events, Leaks: l.leakSeq}
}

// What a Buffer is.
const (
	KindBuffer = "buffer"
	KindCB     = "cb"
	KindKernel = "kernel"
)

// Buffer is one live buffer.
type Buffer struct {
	Kind   string     `json:"kind"`
	Device int32      `json:"device"` // the reporter's numbering
	ID     uint64     `json:"id"`     // address, or kernel id
	Size   uint64     `json:"size"`
	Pool   model.Pool `json:"pool"` // Host for host memory
	Born   time.Time  `json:"born"` // to 10 ms
}

func (p *Process) view(e *entry) Buffer {
	b := Buffer{Kind: KindBuffer, Device: p.ids[e.dev], ID: e.id, Size: e.size, Pool: model.Pool(e.pool), Born: p.bornAt(e.born)}
	switch e.kind {
	case circular:
		b.Kind = KindCB
	case kernelCode:
		b.Kind = KindKernel
	}
	return b
}

// Walk calls f for the live buffers of a process until it returns false; ok is
// false if there is no such process. The ledger is in use meanwhile: buffers
// that live throughout are seen once, others once or not at all. f runs without
// the ledger's lock.
func (l *Ledger) Walk(k model.ProcessID, f func(Buffer) bool) (ok bool) {
	batch := batches.Get().(*[slabLen]Buffer)
	defer batches.Put(batch)
	for i := 0; ; i++ {
		n, more, ok := l.walkSlab(k, i, batch)
		if !ok {
			return i > 0 // it exited meanwhile: what was seen was true
		}
		for _, b := range batch[:n] {
			if !f(b) {
				return true
			}
		}
		if !more {
			return true
		}
		runtime.Gosched() // let a goroutine that waits for the lock go first
	}
}

// batches are what Walk copies slabs to: 90 KiB each.
var batches = sync.Pool{New: func() any { return new([slabLen]Buffer) }}

func (l *Ledger) walkSlab(k model.ProcessID, i int, batch *[slabLen]Buffer) (n int, more, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.procs[k]
	if p == nil {
		return 0, false, false
	}
	if i >= len(p.table.slabs) {
		return 0, false, true
	}
	for j := range p.table.slabs[i].entries {
		if e := &p.table.slabs[i].entries[j]; e.kind != noKind {
			batch[n] = p.view(e)
			n++
		}
	}
	return n, i+1 < len(p.table.slabs), true
}

// Largest returns the n largest live buffers of a process, largest first.
// Only those that keep accepts count, if it is not nil.
func (l *Ledger) Largest(k model.ProcessID, n int, keep func(Buffer) bool) ([]Buffer, bool) {
	return l.Top(k, n, false, keep)
}

// Top returns n live buffers of a process: the largest, or the oldest, first.
// Only those that keep accepts count, if it is not nil.
func (l *Ledger) Top(k model.ProcessID, n int, oldest bool, keep func(Buffer) bool) ([]Buffer, bool) {
	order := bySize
	if oldest {
		order = byAge
	}
	var list []Buffer
	ok := l.Walk(k, func(b Buffer) bool {
		if keep == nil || keep(b) {
			list = append(list, b)
		}
		if len(list) > 2*n+slabLen { // of a million buffers only those that may be wanted are held
			list = sortFirst(list, n, order)
		}
		return true
	})
	return sortFirst(list, n, order), ok
}

// The orders put what is wanted first.

func bySize(a, b Buffer) int {
	return cmp.Or(cmp.Compare(b.Size, a.Size), a.Born.Compare(b.Born), cmp.Compare(a.ID, b.ID))
}

func byAge(a, b Buffer) int {
	return cmp.Or(a.Born.Compare(b.Born), cmp.Compare(b.Size, a.Size), cmp.Compare(a.ID, b.ID))
}

// sortFirst puts the first n of a list in order and drops the rest.
func sortFirst(list []Buffer, n int, order func(a, b Buffer) int) []Buffer {
	slices.SortFunc(list, order)
	return list[:min(len(list), n)]
}
