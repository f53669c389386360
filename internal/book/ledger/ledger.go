package ledger

import (
	"runtime"
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// DefaultMaxBuffers bounds the live buffers of all processes together: about
// 370 MB of ledger.
const DefaultMaxBuffers = 8 << 20

// MaxMaxBuffers bounds what may be configured: slots are numbered with 32 bits.
const MaxMaxBuffers = 1 << 30

// Ledger is the allocation state of all processes. Its methods may be called
// from any goroutine.
type Ledger struct {
	maxLeaks int

	mu       sync.Mutex
	arena    *arena
	limit    limits
	capacity [NumPools]uint64 // of the largest chip; 0: not known
	procs    map[model.ProcessID]*Process
	owners   map[int]*owner // by uid
	devices  map[int32]*use
	live     int    // buffers of all processes
	oddUses  int    // uses of devices from firstOddDevice on
	refused  uint64 // what did not fit
	events   uint64
	leaks    []Leftovers // oldest first
	leakSeq  uint64
	examined sync.WaitGroup
}

// Options of a Ledger. The zero value is good.
type Options struct {
	MaxBuffers int // live buffers at most; 0 is DefaultMaxBuffers
	MaxLeaks   int // leftovers of dead processes kept; 0 is 256
}

// New returns an empty ledger.
func New(o Options) *Ledger {
	if o.MaxBuffers == 0 {
		o.MaxBuffers = DefaultMaxBuffers
	}
	if o.MaxLeaks == 0 {
		o.MaxLeaks = 256
	}
	l := &Ledger{
		limit:    newLimits(o.MaxBuffers),
		arena:    newArena(o.MaxBuffers),
		maxLeaks: o.MaxLeaks,
		procs:    map[model.ProcessID]*Process{},
		owners:   map[int]*owner{},
		devices:  map[int32]*use{},
	}
	runtime.AddCleanup(l, (*arena).close, l.arena)
	return l
}

// Open returns the process with info's key, and adds it if it is new.
func (l *Ledger) Open(info Info, now time.Time) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.procs[info.ProcessID]
	if p == nil {
		p = &Process{info: info, epoch: now, last: now, table: newTable(l.arena)}
		l.procs[info.ProcessID] = p
		l.addToOwner(p)
	}
	return p
}

// SetSentPID records the pid that a process sent.
func (l *Ledger) SetSentPID(p *Process, pid int) {
	l.mu.Lock()
	p.info.SentPID = pid
	l.mu.Unlock()
}

// Apply applies a batch of events of one process. It does not retain events.
// Events of a process that has exited are ignored. refused means that something
// did not fit into the ledger: the figures of this process are too low.
func (l *Ledger) Apply(p *Process, events []Event, now time.Time) (refused bool) {
	if len(events) == 0 {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.ended {
		return false
	}
	before := l.refused
	ticks := p.ticks(now)
	for i := range events {
		l.apply(p, &events[i], ticks)
	}
	p.last = now
	p.counters.Events += uint64(len(events))
	l.events += uint64(len(events))
	return l.refused != before
}

// refuse counts what did not fit.
func (l *Ledger) refuse(p *Process, counter *uint64) {
	*counter++
	p.owner.refused++
	l.refused++
}

func (l *Ledger) apply(p *Process, e *Event, now uint32) {
	switch e.Op {
	case Alloc:
		l.alloc(p, e, now)
	case Free:
		l.free(p, e)
	case CBAlloc:
		l.addBuffer(p, e, circular, uint8(model.CB), now, &p.counters.CBRepeats)
	case CBFree:
		l.freeCBOrKernel(p, e, circular, &p.counters.UnknownCBFrees)
	case KernelLoad:
		l.addBuffer(p, e, kernelCode, uint8(model.Kernel), now, &p.counters.KernelRepeats)
	case KernelUnload:
		l.freeCBOrKernel(p, e, kernelCode, &p.counters.UnknownUnloads)
	}
}

func (l *Ledger) alloc(p *Process, e *Event, now uint32) {
	if e.Pool > uint8(model.Trace) && e.Pool != uint8(Host) {
		p.counters.BadPools++
		return
	}
	l.addBuffer(p, e, kindOf(e.Pool, e.ID), e.Pool, now, &p.counters.MissedFrees)
}

// SetCapacity sets how many bytes of each pool the largest chip of this host
// has; 0 where unknown. A process cannot hold more on one device, so more is
// rejected.
func (l *Ledger) SetCapacity(capacity [NumPools]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.capacity = capacity
}

// fits reports whether a device can hold a buffer, beside what the process holds
// there, in the place of old if that is not nil.
func (d *deviceUse) fits(old *entry, size uint64, pool uint8, limit uint64) bool {
	held := d.bytes[pool]
	if old != nil && old.pool == pool {
		held -= old.size
	}
	return held+size <= limit
}

// addBuffer adds a buffer, replacing one with the same key.
func (l *Ledger) addBuffer(p *Process, e *Event, k kind, pool uint8, now uint32, repeats *uint64) {
	switch {
	case e.Size == 0:
		p.counters.ZeroSizes++
		return
	case e.Size > MaxSize:
		p.counters.Oversizes++
		return
	}
	dev, ok := l.useDevice(p, e.Device)
	if !ok {
		l.refuse(p, &p.counters.BadDevices)
		return
	}
	d := &p.devices[dev]
	old, link := p.table.find(k, dev, e.ID)
	if limit := l.capacity[pool]; limit != 0 && !d.fits(old, e.Size, pool, limit) {
		l.refuse(p, &p.counters.OverCapacity)
		return
	}
	if old != nil {
		*repeats++
		d.sub(old.pool, old.size)
		d.total.sub(old.pool, old.size)
		if old.size != e.Size || k != kernelCode {
			old.born = now
		}
		old.size, old.pool = e.Size, pool
	} else {
		added := l.insert(p, k, dev, e.ID, link)
		if added == nil {
			l.refuse(p, &p.counters.OverLimit)
			return
		}
		added.size, added.born, added.pool = e.Size, now, pool
	}
	p.counters.Allocs++
	d.add(pool, e.Size)
	d.total.add(pool, e.Size)
}

// insert adds a buffer; nil where there is no room.
func (l *Ledger) insert(p *Process, k kind, dev uint16, id uint64, link *uint32) *entry {
	if !l.hasRoom(p) {
		return nil
	}
	slots := p.table.slots
	added := p.table.insert(k, dev, id, link)
	p.owner.slots += p.table.slots - slots
	if added != nil {
		l.live++
		p.owner.live++
	}
	return added
}

func (l *Ledger) free(p *Process, e *Event) {
	var found *entry
	var link *uint32
	if dev, ok := p.device(e.Device); ok {
		found, link = p.findBuffer(dev, e.ID)
	}
	if found == nil && e.Device == 0 {
		if found, link = p.findElsewhere(e.ID); found != nil {
			p.counters.DeviceGuesses++
		}
	}
	if found == nil {
		p.counters.UnknownFrees++
		return
	}
	l.remove(p, found, link)
}

// freeCBOrKernel frees a circular buffer or a kernel.
func (l *Ledger) freeCBOrKernel(p *Process, e *Event, k kind, unknown *uint64) {
	var found *entry
	var link *uint32
	if dev, ok := p.device(e.Device); ok {
		found, link = p.table.find(k, dev, e.ID)
	}
	if found == nil {
		*unknown++
		return
	}
	if e.Size != 0 && e.Size != found.size {
		p.counters.SizeDisputes++
	}
	l.remove(p, found, link)
}

func (l *Ledger) remove(p *Process, e *entry, link *uint32) {
	d := &p.devices[e.dev]
	d.sub(e.pool, e.size)
	d.total.sub(e.pool, e.size)
	p.counters.Frees++
	l.live--
	p.owner.live--
	slots := p.table.slots
	p.table.remove(link)
	p.owner.slots += p.table.slots - slots
}

// useDevice returns the index of a device, adding it to the process.
func (l *Ledger) useDevice(p *Process, id int32) (uint16, bool) {
	if dev, ok := p.device(id); ok {
		return dev, true
	}
	if !l.mayUseDevice(p, id) {
		return 0, false
	}
	total := l.addDeviceUser(p, id)
	p.ids = append(p.ids, id)
	p.devices = append(p.devices, deviceUse{total: total})
	p.recent = len(p.ids) - 1
	return uint16(p.recent), true
}

// Reject counts malformed frames of a process, and the bytes skipped to find
// the next valid one.
func (l *Ledger) Reject(p *Process, frames, skipped uint64) {
	if frames|skipped == 0 {
		return
	}
	l.mu.Lock()
	p.counters.RejectedFrames += frames
	p.counters.SkippedBytes += skipped
	l.mu.Unlock()
}
