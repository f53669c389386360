package ledger

import (
	"sync"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// DefaultMaxBuffers bounds the live buffers of all processes together: about
// 1.3 GB of ledger.
const DefaultMaxBuffers = 32 << 20

// Ledger is the allocation state of all processes. Its methods may be called
// from any goroutine.
type Ledger struct {
	maxBuffers int
	maxLeaks   int

	mu       sync.Mutex
	procs    map[Key]*Process
	devices  map[int32]*use
	live     int // buffers of all processes
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
	return &Ledger{
		maxBuffers: o.MaxBuffers,
		maxLeaks:   o.MaxLeaks,
		procs:      map[Key]*Process{},
		devices:    map[int32]*use{},
	}
}

// Open returns the process with info's key, and makes it if it is new.
func (l *Ledger) Open(info Info, now time.Time) *Process {
	l.mu.Lock()
	defer l.mu.Unlock()
	p := l.procs[info.Key]
	if p == nil {
		p = &Process{info: info, epoch: now, last: now, table: newTable()}
		l.procs[info.Key] = p
	}
	return p
}

// SetSentPID notes what a process calls itself.
func (l *Ledger) SetSentPID(p *Process, pid int) {
	l.mu.Lock()
	p.info.SentPID = pid
	l.mu.Unlock()
}

// Apply books a batch of events of one process. It keeps nothing of events.
// Events of a process that has ended are ignored.
func (l *Ledger) Apply(p *Process, events []Event, now time.Time) {
	if len(events) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.ended {
		return
	}
	ticks := p.ticks(now)
	for i := range events {
		l.apply(p, &events[i], ticks)
	}
	p.last = now
	p.counters.Events += uint64(len(events))
	l.events += uint64(len(events))
}

func (l *Ledger) apply(p *Process, e *Event, now uint32) {
	switch e.Op {
	case Alloc:
		l.alloc(p, e, now)
	case Free:
		l.free(p, e)
	case CBAlloc:
		l.put(p, e, circular, uint8(model.CB), now, &p.counters.CBRepeats)
	case CBFree:
		l.drop(p, e, circular, &p.counters.UnknownCBFrees)
	case KernelLoad:
		l.put(p, e, kernelCode, uint8(model.Kernel), now, &p.counters.KernelRepeats)
	case KernelUnload:
		l.drop(p, e, kernelCode, &p.counters.UnknownUnloads)
	}
}

func (l *Ledger) alloc(p *Process, e *Event, now uint32) {
	if e.Pool > uint8(model.Trace) && e.Pool != uint8(Host) {
		p.counters.BadPools++
		return
	}
	l.put(p, e, kindOf(e.Pool, e.ID), e.Pool, now, &p.counters.MissedFrees)
}

// put books a buffer, replacing one with the same key.
func (l *Ledger) put(p *Process, e *Event, k kind, pool uint8, now uint32, repeats *uint64) {
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
		p.counters.BadDevices++
		return
	}
	d := &p.devices[dev]
	old, link := p.table.find(k, dev, e.ID)
	if old != nil {
		*repeats++
		d.sub(old.pool, old.size)
		d.total.sub(old.pool, old.size)
		if old.size != e.Size || k != kernelCode {
			old.born = now
		}
		old.size, old.pool = e.Size, pool
	} else if l.live >= l.maxBuffers || p.table.live >= l.maxBuffers/2 { // one process leaves room for others
		p.counters.OverLimit++
		return
	} else {
		p.table.insert(entry{id: e.ID, size: e.Size, born: now, dev: dev, kind: k, pool: pool}, link)
		l.live++
	}
	p.counters.Allocs++
	d.add(pool, e.Size)
	d.total.add(pool, e.Size)
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

// drop frees a circular buffer or a kernel.
func (l *Ledger) drop(p *Process, e *Event, k kind, unknown *uint64) {
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
	p.table.remove(link)
}

// useDevice returns the index of a device, making it known to the process.
func (l *Ledger) useDevice(p *Process, id int32) (uint16, bool) {
	if dev, ok := p.device(id); ok {
		return dev, true
	}
	if id < 0 || id > MaxDevice || len(p.ids) == maxDevices {
		return 0, false
	}
	total := l.devices[id]
	if total == nil {
		total = new(use)
		l.devices[id] = total
	}
	p.ids = append(p.ids, id)
	p.devices = append(p.devices, deviceUse{total: total})
	p.recent = len(p.ids) - 1
	return uint16(p.recent), true
}

// Reject counts frames of a process that meant nothing, and the bytes skipped
// to find the next one that does.
func (l *Ledger) Reject(p *Process, frames, skipped uint64) {
	if frames|skipped == 0 {
		return
	}
	l.mu.Lock()
	p.counters.RejectedFrames += frames
	p.counters.SkippedBytes += skipped
	l.mu.Unlock()
}
