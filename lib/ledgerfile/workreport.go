package ledgerfile

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// longestShortGap is TTMON_GAP_NS: a pause above it is idle time.
const longestShortGap = 100 * time.Millisecond

// markEvery is how far apart the two moments of a chip's record are at least.
const markEvery = time.Second

// ReportedWork is the part of a Reporter's ledger that is about the programs of
// its chips: what libttmon writes from tt-metal's real-time profiler. Times are
// those of Now. Safe for concurrent use.
type ReportedWork struct {
	mu     sync.Mutex
	head   *header // of the ledger; what follows are its sections
	memory []byte  // of them; nil: it is closed
	works  []workRecord
	ops    []opRecord
	texts  []nameRecord
	gaps   []gapRecord
	names  map[string]uint32
	chips  int // in use
}

// ReportedChip is a chip of it.
type ReportedChip struct {
	w      *ReportedWork
	record *workRecord
	ops    []opRecord
	gaps   []gapRecord
	byName map[uint32]int
	last   time.Duration // end of the last program
	after  uint32        // its operation
}

// Now is the time of the clock that ledgers are written by.
func Now() time.Duration { return time.Duration(monotonic()) }

// Work adds room for the work of so many chips to the ledger. It is called
// once, before there is work.
func (r *Reporter) Work(chips int) (w *ReportedWork, err error) {
	if chips < 1 || chips > chipsPerLedger {
		return nil, fmt.Errorf("work of %d chips: it is 1 to %d", chips, chipsPerLedger)
	}
	err = r.change(func() error {
		st, err := r.file.Stat()
		if err != nil {
			return err
		}
		at := (uint64(st.Size()) + 4095) / 4096 * 4096
		end := at
		room := func(size uintptr, capacity, used int) section {
			s := section{Offset: end, Size: uint32(size), Capacity: uint32(capacity), Used: uint32(used)}
			end += (uint64(capacity)*uint64(size) + 4095) / 4096 * 4096
			return s
		}
		parts := [workSections]section{
			room(unsafe.Sizeof(workRecord{}), chips, 0), room(unsafe.Sizeof(opRecord{}), chips*chipOps, 0), room(unsafe.Sizeof(nameRecord{}), maxNames, 1), // 0 is no name
		}
		gaps := room(unsafe.Sizeof(gapRecord{}), chips*chipGaps, 0)
		if err := unix.Fallocate(int(r.file.Fd()), 0, int64(at), int64(end-at)); err != nil {
			return fmt.Errorf("making room for work in a ledger: %w", err)
		}
		w = &ReportedWork{head: r.head, names: map[string]uint32{}}
		if w.memory, err = unix.Mmap(int(r.file.Fd()), int64(at), int(end-at), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return fmt.Errorf("mapping the work of a ledger: %w", err)
		}
		w.works, w.ops = recordsIn[workRecord](w.memory)[:chips], recordsIn[opRecord](w.memory[parts[secOps].Offset-at:])[:chips*chipOps]
		w.texts, w.gaps = recordsIn[nameRecord](w.memory[parts[secNames].Offset-at:])[:maxNames], recordsIn[gapRecord](w.memory[gaps.Offset-at:])[:chips*chipGaps]
		w.head.Work, w.head.Gaps = parts, gaps
		atomic.StoreUint32(&w.head.Header, uint32(sizeOfHeader)) // last: from here on they are there
		r.work = w
		return nil
	})
	return w, err
}

// Chip adds a chip that reports its programs, by the number that the process
// knows it by.
func (w *ReportedWork) Chip(logical int) (*ReportedChip, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.chips
	if w.memory == nil {
		return nil, os.ErrClosed
	}
	if n >= len(w.works) {
		return nil, ErrFull
	}
	w.chips++
	c := &ReportedChip{w: w, byName: map[uint32]int{0: 0}, record: &w.works[n], ops: w.ops[n*chipOps:][:chipOps], gaps: w.gaps[n*chipGaps:][:chipGaps]}
	now := monotonic()
	*c.record = workRecord{Logical: int32(logical), State: WorkOn, TicksPerNS: 1, Since: now, Mark: [2]markRecord{{Time: now}, {Time: now}}}
	atomic.StoreUint32(&w.head.Work[secOps].Used, uint32((n+1)*chipOps))
	atomic.StoreUint32(&w.head.Gaps.Used, uint32((n+1)*chipGaps))
	atomic.StoreUint32(&w.head.Work[secWork].Used, uint32(n+1))
	return c, nil
}

// name is the number of a name; 0 where there is no room. w.mu is held.
func (w *ReportedWork) name(text string) uint32 {
	text = text[:min(len(text), len(nameRecord{}.Text))]
	if n, ok := w.names[text]; ok || text == "" {
		return n
	}
	n := w.head.Work[secNames].Used
	if n >= maxNames {
		return 0
	}
	copy(w.texts[n].Text[:], text)
	w.texts[n].Length = uint32(len(text))
	w.names[text] = n
	atomic.StoreUint32(&w.head.Work[secNames].Used, n+1)
	return n
}

// ReportedProgram is a program that ran.
type ReportedProgram struct {
	Name       string
	Start, End time.Duration // of Now's clock
}

// Report records programs that completed, in the order of their ends.
func (c *ReportedChip) Report(list []ReportedProgram) {
	c.w.mu.Lock()
	defer c.w.mu.Unlock()
	if c.w.memory == nil || len(list) == 0 {
		return
	}
	x := c.record
	atomic.StoreUint32(&x.Sequence, x.Sequence|1)
	for i := range list {
		c.program(&list[i])
	}
	x.LastRecord = monotonic()
	if x.LastRecord-x.Mark[0].Time > int64(markEvery) {
		x.Mark = [2]markRecord{{x.LastRecord, x.Busy}, x.Mark[0]}
	}
	atomic.StoreUint32(&x.Sequence, (x.Sequence|1)+1)
}

// program counts one, as work_program of libttmon does.
func (c *ReportedChip) program(p *ReportedProgram) {
	x := c.record
	if p.End < p.Start {
		x.Refused++
		return
	}
	name, took := c.w.name(p.Name), uint64(p.End-p.Start)
	op := c.op(name)
	op.Calls, op.Ticks, op.Longest = op.Calls+1, op.Ticks+took, max(op.Longest, took)
	x.Programs++
	x.LastName = name
	if took > x.Longest {
		x.Longest, x.LongestName = took, name
	}
	if gap := p.Start - c.last; c.last > 0 && gap > 0 {
		x.LongestGap = max(x.LongestGap, uint64(gap))
		c.keepGap(gapRecord{Ticks: uint64(gap), End: int64(p.Start), After: c.after})
		if gap <= longestShortGap {
			x.Gaps, x.Gap = x.Gaps+1, x.Gap+uint64(gap)
		}
	}
	if from := max(p.Start, c.last); p.End > from {
		x.Busy += uint64(p.End - from)
		c.last, c.after = p.End, name
	}
}

// keepGap keeps a pause if it is among the longest.
func (c *ReportedChip) keepGap(g gapRecord) {
	shortest := &c.gaps[0]
	for i := range c.gaps {
		if c.gaps[i].Ticks < shortest.Ticks {
			shortest = &c.gaps[i]
		}
	}
	if g.Ticks > shortest.Ticks {
		*shortest = g
	}
}

// op is the record of an operation; the first one has all that found no room.
func (c *ReportedChip) op(name uint32) *opRecord {
	n, ok := c.byName[name]
	if !ok && len(c.byName) < chipOps {
		n = len(c.byName)
		c.byName[name] = n
		c.ops[n].Name = name
	}
	return &c.ops[n]
}

// Enqueued records that programs were enqueued, and the name of the last one.
func (w *ReportedWork) Enqueued(programs uint64, last string) {
	w.host(func(h *hostRecord) {
		h.Enqueued += programs
		h.LastName, h.Queues, h.LastEnqueue = w.name(last), 1, monotonic()
	})
}

// Wait records that a thread waits for the chips.
func (w *ReportedWork) Wait(kind WaitKind) {
	w.host(func(h *hostRecord) {
		h.Waits++
		h.Wait[0].Kind, h.Wait[0].Thread = kind, uint32(os.Getpid())
		atomic.StoreInt64(&h.Wait[0].Since, monotonic())
	})
}

// Finished records that a thread has waited until all that was enqueued was
// done.
func (w *ReportedWork) Finished() {
	w.host(func(h *hostRecord) {
		h.LastFinish = monotonic()
		atomic.StoreInt64(&h.Wait[0].Since, 0)
	})
}

func (w *ReportedWork) host(f func(*hostRecord)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.memory != nil {
		f(&w.head.Host)
	}
}

// close ends the work of a ledger that is being closed, before its header goes.
func (w *ReportedWork) close() error {
	if w == nil {
		return nil
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.memory == nil {
		return errors.New("the work of a ledger is closed twice")
	}
	for i := range w.works[:w.chips] {
		w.works[i].State = WorkOff
	}
	err := unix.Munmap(w.memory)
	w.memory = nil
	return err
}
