package ledgerfile

import (
	"errors"
	"fmt"
	"math"
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
	header []byte // the ledger's
	memory []byte // its sections
	start  [workSections + 1]int
	names  map[string]uint32
	chips  []*ReportedChip
}

// ReportedChip is a chip of it.
type ReportedChip struct {
	w      *ReportedWork
	record []byte
	ops    []byte
	gaps   []byte
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
		w = &ReportedWork{header: r.memory[:gapsHeader], names: map[string]uint32{}}
		sizes := [...]int{chips * workSize, chips * chipOps * opSize, maxNames * nameSize, chips * chipGaps * gapSize}
		size := 0
		for i, n := range sizes {
			w.start[i] = size
			size += (n + 4095) / 4096 * 4096
		}
		at := (st.Size() + 4095) / 4096 * 4096
		if err := unix.Fallocate(int(r.file.Fd()), 0, at, int64(size)); err != nil {
			return fmt.Errorf("making room for work in a ledger: %w", err)
		}
		if w.memory, err = unix.Mmap(int(r.file.Fd()), at, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
			return fmt.Errorf("mapping the work of a ledger: %w", err)
		}
		w.writeSections(uint64(at), chips)
		r.work = w
		return nil
	})
	return w, err
}

// writeSections writes where the sections are; the header's size comes last.
func (w *ReportedWork) writeSections(at uint64, chips int) {
	records := [...]uint32{workSize, opSize, nameSize, gapSize}
	capacity := [...]uint32{uint32(chips), uint32(chips * chipOps), maxNames, uint32(chips * chipGaps)}
	for i := range records {
		b := w.header[describedAt(i):]
		le.PutUint64(b, at+uint64(w.start[i]))
		le.PutUint32(b[8:], records[i])
		le.PutUint32(b[12:], capacity[i])
	}
	w.used(2).Store(1) // 0 is no name
	(*atomic.Uint32)(unsafe.Pointer(&w.header[offHeader])).Store(gapsHeader)
}

// describedAt is where the header describes a section of work.
func describedAt(section int) int {
	if section == gapSection {
		return offGaps
	}
	return offWorkSections + section*sectionSize
}

func (w *ReportedWork) used(section int) *atomic.Uint32 {
	return (*atomic.Uint32)(unsafe.Pointer(&w.header[describedAt(section)+16]))
}

// Chip adds a chip that reports its programs, by the number that the process
// knows it by.
func (w *ReportedWork) Chip(logical int) (*ReportedChip, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := len(w.chips)
	if w.memory == nil {
		return nil, os.ErrClosed
	}
	if n >= int(le.Uint32(w.header[offWorkSections+12:])) {
		return nil, ErrFull
	}
	c := &ReportedChip{
		w: w, byName: map[uint32]int{0: 0},
		record: w.memory[w.start[0]+n*workSize:][:workSize],
		ops:    w.memory[w.start[1]+n*chipOps*opSize:][:chipOps*opSize],
		gaps:   w.memory[w.start[gapSection]+n*chipGaps*gapSize:][:chipGaps*gapSize],
	}
	le.PutUint32(c.record[workLogical:], uint32(int32(logical)))
	c.record[workState] = byte(WorkOn)
	le.PutUint64(c.record[workTicks:], math.Float64bits(1))
	now := uint64(monotonic())
	for _, field := range []int{workSince, workMark, workMark + 16} {
		le.PutUint64(c.record[field:], now)
	}
	w.chips = append(w.chips, c)
	w.used(1).Store(uint32((n + 1) * chipOps))
	w.used(gapSection).Store(uint32((n + 1) * chipGaps))
	w.used(0).Store(uint32(n + 1))
	return c, nil
}

// name is the number of a name; 0 where there is no room. w.mu is held.
func (w *ReportedWork) name(text string) uint32 {
	text = text[:min(len(text), nameSize-nameText)]
	if n, ok := w.names[text]; ok || text == "" {
		return n
	}
	n := w.used(2).Load()
	if n >= maxNames {
		return 0
	}
	b := w.memory[w.start[2]+int(n)*nameSize:]
	copy(b[nameText:], text)
	le.PutUint32(b, uint32(len(text)))
	w.names[text] = n
	w.used(2).Store(n + 1)
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
	sequence := (*atomic.Uint32)(unsafe.Pointer(&c.record[workSequence]))
	sequence.Store(sequence.Load() | 1)
	for i := range list {
		c.program(&list[i])
	}
	now := uint64(monotonic())
	le.PutUint64(c.record[workLastRecord:], now)
	if mark := c.record[workMark:]; now-le.Uint64(mark) > uint64(markEvery) {
		copy(mark[16:32], mark[:16])
		le.PutUint64(mark, now)
		le.PutUint64(mark[8:], le.Uint64(c.record[workBusy:]))
	}
	sequence.Store((sequence.Load() | 1) + 1)
}

// program counts one, as work_program of libttmon does.
func (c *ReportedChip) program(p *ReportedProgram) {
	if p.End < p.Start {
		add(c.record[workRefused:], 1)
		return
	}
	name, took := c.w.name(p.Name), p.End-p.Start
	op := c.op(name)
	add(op[opCalls:], 1)
	add(op[opTicks:], int64(took))
	raiseTo(op[opLongest:], took)
	add(c.record[workPrograms:], 1)
	le.PutUint32(c.record[workLastName:], name)
	if raiseTo(c.record[workLongest:], took) {
		le.PutUint32(c.record[workLongestName:], name)
	}
	if gap := p.Start - c.last; c.last > 0 && gap > 0 {
		raiseTo(c.record[workLongestGap:], gap)
		c.keepGap(gap, p.Start)
		if gap <= longestShortGap {
			add(c.record[workGaps:], 1)
			add(c.record[workGap:], int64(gap))
		}
	}
	if from := max(p.Start, c.last); p.End > from {
		add(c.record[workBusy:], int64(p.End-from))
		c.last, c.after = p.End, name
	}
}

// keepGap keeps a pause if it is among the longest.
func (c *ReportedChip) keepGap(length, end time.Duration) {
	shortest := c.gaps
	for b := c.gaps; len(b) >= gapSize; b = b[gapSize:] {
		if le.Uint64(b[gapTicks:]) < le.Uint64(shortest[gapTicks:]) {
			shortest = b
		}
	}
	if raiseTo(shortest[gapTicks:], length) {
		le.PutUint64(shortest[gapEnd:], uint64(end))
		le.PutUint32(shortest[gapAfter:], c.after)
	}
}

// raiseTo raises a number to a time, and reports whether it was smaller.
func raiseTo(b []byte, to time.Duration) bool {
	if le.Uint64(b) >= uint64(to) {
		return false
	}
	le.PutUint64(b, uint64(to))
	return true
}

// op is the record of an operation; the first one has all that found no room.
func (c *ReportedChip) op(name uint32) []byte {
	n, ok := c.byName[name]
	if !ok && len(c.byName) < chipOps {
		n = len(c.byName)
		c.byName[name] = n
		le.PutUint32(c.ops[n*opSize+opName:], name)
	}
	return c.ops[n*opSize:][:opSize]
}

// Enqueued records that programs were enqueued, and the name of the last one.
func (w *ReportedWork) Enqueued(programs uint64, last string) {
	w.host(func(h []byte) {
		add(h[hostEnqueued:], int64(programs))
		le.PutUint32(h[hostLastName:], w.name(last))
		le.PutUint32(h[hostQueues:], 1)
		le.PutUint64(h[hostLastEnqueue:], uint64(monotonic()))
	})
}

// Wait records that a thread waits for the chips.
func (w *ReportedWork) Wait(kind WaitKind) {
	w.host(func(h []byte) {
		add(h[hostWaits:], 1)
		le.PutUint32(h[hostWait+8:], uint32(kind))
		le.PutUint32(h[hostWait+12:], uint32(os.Getpid()))
		(*atomic.Int64)(unsafe.Pointer(&h[hostWait])).Store(monotonic())
	})
}

// Finished records that a thread has waited until all that was enqueued was
// done.
func (w *ReportedWork) Finished() {
	w.host(func(h []byte) {
		le.PutUint64(h[hostLastFinish:], uint64(monotonic()))
		(*atomic.Int64)(unsafe.Pointer(&h[hostWait])).Store(0)
	})
}

func (w *ReportedWork) host(f func(h []byte)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.memory != nil {
		f(w.header[offHost:][:hostSize])
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
	for _, c := range w.chips {
		c.record[workState] = byte(WorkOff)
	}
	err := unix.Munmap(w.memory)
	w.memory = nil
	return err
}
