package ledgerfile

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"
)

// Layout of what a ledger says of the programs that ran.
const (
	offWorkSections = headerSize + sectionSize + 8
	workSections    = 3
	offHost         = offWorkSections + workSections*sectionSize
	hostSize        = 176
	workHeader      = offHost + hostSize

	hostEnqueued    = 0
	hostReplayed    = 8
	hostWaits       = 16
	hostLastEnqueue = 24
	hostLastFinish  = 32
	hostLastName    = 40
	hostQueues      = 44
	hostSubDevices  = 46
	hostWait        = 48
	waitSize        = 16
	hostWaiters     = 8

	workSize        = 192
	workSequence    = 0
	workLogical     = 4
	workState       = 8
	workLoss        = 9
	workTicks       = 16
	workPrograms    = 24
	workBusy        = 32
	workGaps        = 40
	workGap         = 48
	workLongestGap  = 56
	workLongest     = 64
	workLastEnd     = 80
	workRefused     = 88
	workUnprofiled  = 96
	workStalls      = 104
	workStalled     = 112
	workSince       = 120
	workLastRecord  = 128
	workLastName    = 136
	workLongestName = 140
	workMark        = 144
	workMarkEnd     = 176

	opSize    = 32
	opCalls   = 0
	opTicks   = 8
	opLongest = 16
	opName    = 24
	chipOps   = 256

	// Where the section of gaps is described: behind those of failures.
	offGaps    = failuresHeader
	gapsHeader = offGaps + sectionSize

	gapSize  = 24
	gapTicks = 0
	gapEnd   = 8
	gapAfter = 16
	chipGaps = 8

	nameSize = 96
	nameText = 4
	maxNames = 1024
)

// WorkState says whether a chip reports its programs.
type WorkState uint8

// The states.
const (
	WorkOff   WorkState = iota // no longer
	WorkOn                     // records will come
	WorkFound                  // records came; the beginning was not seen
)

// WorkLoss says how complete a chip's records are.
type WorkLoss uint8

// The kinds of loss.
const (
	WorkLossless   WorkLoss = iota // the chip waits rather than lose one (0.80 and later)
	WorkLossy                      // programs faster than the chip's reader are lost (0.71 to 0.79)
	WorkUnreadable                 // nothing is counted: tt-metal lays its records out in another way
)

// Work is what the programs of a process did, according to tt-metal's real-time
// profiler.
type Work struct {
	Host  HostWork
	Chips []ChipWork
}

// HostWork is what the process enqueued.
type HostWork struct {
	Enqueued, Replayed, Waits uint64
	LastEnqueue, LastFinish   time.Time // zero: never
	LastName                  string    // of what was enqueued last, where it is known
	Queues                    int       // command queues of a device that were used; 2 stands for more, too
	SubDevices                int       // the most that a device was divided into; 0: it never was
	Waiting                   []Wait    // threads that wait for the chips now
}

// WaitKind is what a thread waits for.
type WaitKind uint32

// The kinds.
const (
	WaitFinish WaitKind = 1 // all that was enqueued
	WaitEvent  WaitKind = 2
)

// Wait is a thread that waits for the chips.
type Wait struct {
	Since  time.Time
	Kind   WaitKind
	Thread int // in the namespace of the process
}

// ChipWork is what ran on one chip since the ledger was made. Times are those
// of the chip's own clock.
type ChipWork struct {
	Logical int // the number that the process knows the chip by
	State   WorkState
	Loss    WorkLoss
	Moving  bool // it was changed while it was copied: sums may not fit each other

	Programs              uint64
	Busy                  time.Duration // in which a program ran
	Gaps                  uint64        // short pauses between programs
	Gap                   time.Duration // all of them
	LongestGap            time.Duration // of all pauses
	Longest               time.Duration // program
	LongestName, LastName string
	Refused               uint64 // records that cannot be true
	Unprofiled            uint64 // programs of which nothing is known
	Stalls                uint64
	Stalled               time.Duration // the dispatcher was held up by the profiler
	Since, LastRecord     time.Time
	// LastEnd is when the last program ended, by the chip's clock since the
	// device was opened; 0: not known.
	LastEnd time.Duration
	Mark    [2]Mark // the later one first
	Ops     []Op
	// LongestGaps are the longest pauses, the longest first. GapsKept is false
	// where the writer is a libttmon that keeps only the length of the longest.
	LongestGaps []Gap
	GapsKept    bool
}

// Gap is a pause between two programs.
type Gap struct {
	Length time.Duration
	End    time.Time // within the time that the next program's record took to arrive
	After  string    // operation of the program before it; empty: not known
}

// Mark is how much a chip had done at a moment.
type Mark struct {
	Time          time.Time
	Busy, LastEnd time.Duration
}

// Op is an operation, and what its programs took of a chip.
type Op struct {
	Name    string // empty: not known
	Calls   uint64
	Time    time.Duration
	Longest time.Duration
}

// WorkReader reads what ledgers say of programs. It remembers the names of one
// ledger, which never change.
type WorkReader struct {
	names []string
	buf   []byte
}

// Read copies what a ledger says of programs; nil where it says nothing. Of chips
// that report nothing there is what the process enqueued. It never waits for the
// writer.
func (r *WorkReader) Read(fd int) (*Work, error) {
	var raw [gapsHeader]byte
	n, err := pread(fd, raw[:], 0)
	if err != nil {
		return nil, fmt.Errorf("reading the ledger: %w", err)
	}
	if n < workHeader || string(raw[:8]) != magic || le.Uint32(raw[offVersion:]) != Version || le.Uint32(raw[offHeader:]) < workHeader {
		return nil, nil
	}
	sections, err := workLayout(raw[:n])
	if err != nil {
		return nil, err
	}
	c := clock{int64(le.Uint64(raw[offReal:])), int64(le.Uint64(raw[offMonotonic:]))}
	w := &Work{Chips: make([]ChipWork, sections[0].used)}
	for i := range w.Chips {
		if err := r.readChip(fd, sections, i, &w.Chips[i], c); err != nil {
			return nil, err
		}
	}
	h := raw[offHost:]
	w.Host = HostWork{
		Enqueued: le.Uint64(h[hostEnqueued:]), Replayed: le.Uint64(h[hostReplayed:]), Waits: le.Uint64(h[hostWaits:]),
		LastEnqueue: c.at(int64(le.Uint64(h[hostLastEnqueue:]))), LastFinish: c.at(int64(le.Uint64(h[hostLastFinish:]))),
		LastName: r.name(fd, sections[2], le.Uint32(h[hostLastName:])), Queues: int(min(2, le.Uint16(h[hostQueues:]))), SubDevices: int(le.Uint16(h[hostSubDevices:])),
	}
	for i := range hostWaiters {
		b := h[hostWait+i*waitSize:]
		if since := c.at(int64(le.Uint64(b))); !since.IsZero() {
			w.Host.Waiting = append(w.Host.Waiting, Wait{since, WaitKind(le.Uint32(b[8:])), int(le.Uint32(b[12:]))})
		}
	}
	if h := &w.Host; len(w.Chips) == 0 && h.Enqueued+h.Replayed+h.Waits == 0 {
		return nil, nil // an older libttmon counts only where chips report
	}
	return w, nil
}

// gapSection is the place of gaps among the sections of work; its offset is 0
// where the ledger has none.
const gapSection = workSections

type workPlaces [workSections + 1]section

func workLayout(raw []byte) (out workPlaces, err error) {
	size := [...]uint32{workSize, opSize, nameSize, gapSize}
	most := [...]uint32{chipsPerLedger, chipsPerLedger * chipOps, maxNames, chipsPerLedger * chipGaps}
	for i := range out {
		at := offWorkSections + i*sectionSize
		if i == gapSection {
			if at = offGaps; len(raw) < gapsHeader || le.Uint32(raw[offHeader:]) < gapsHeader {
				continue
			}
		}
		b := raw[at:]
		offset, record, used := le.Uint64(b), le.Uint32(b[8:]), le.Uint32(b[16:])
		if record != size[i] || used > most[i] || offset < workHeader || offset > 1<<32 {
			return out, fmt.Errorf("%w: section %d of its work", ErrDamaged, i)
		}
		out[i] = section{int64(offset), used}
	}
	if out[gapSection].offset != 0 && out[gapSection].used < out[0].used*chipGaps {
		return out, fmt.Errorf("%w: gaps of %d chips", ErrDamaged, out[0].used)
	}
	if out[1].used < out[0].used*chipOps {
		return out, fmt.Errorf("%w: operations of %d chips", ErrDamaged, out[0].used)
	}
	return out, nil
}

// readChip copies the record of a chip and its operations, again where it was
// changed meanwhile.
func (r *WorkReader) readChip(fd int, at workPlaces, i int, to *ChipWork, c clock) error {
	const whole = workSize + chipOps*opSize + chipGaps*gapSize
	if cap(r.buf) < whole {
		r.buf = make([]byte, whole)
	}
	b, ops, gaps := r.buf[:workSize:workSize], r.buf[workSize:whole-chipGaps*gapSize], r.buf[whole-chipGaps*gapSize:whole]
	kept := at[gapSection].offset != 0
	for try := 0; ; try++ {
		if n, err := pread(fd, b, at[0].offset+int64(i)*workSize); err != nil || n < len(b) {
			return fmt.Errorf("%w: the work of chip %d is cut off", ErrDamaged, i)
		}
		if n, err := pread(fd, ops, at[1].offset+int64(i)*chipOps*opSize); err != nil || n < len(ops) {
			return fmt.Errorf("%w: the operations of chip %d are cut off", ErrDamaged, i)
		}
		if kept {
			if n, err := pread(fd, gaps, at[gapSection].offset+int64(i)*chipGaps*gapSize); err != nil || n < len(gaps) {
				return fmt.Errorf("%w: the gaps of chip %d are cut off", ErrDamaged, i)
			}
		}
		var now [4]byte
		if n, err := pread(fd, now[:], at[0].offset+int64(i)*workSize+workSequence); err != nil || n < len(now) {
			return fmt.Errorf("%w: the work of chip %d is cut off", ErrDamaged, i)
		}
		before := le.Uint32(b[workSequence:])
		to.Moving = before&1 != 0 || le.Uint32(now[:]) != before
		if !to.Moving || try >= attempts {
			break
		}
		pause(try)
	}
	r.decodeChip(fd, at[2], to, b, c)
	ticks := math.Float64frombits(le.Uint64(b[workTicks:]))
	for ; len(ops) >= opSize; ops = ops[opSize:] {
		if calls := le.Uint64(ops[opCalls:]); calls > 0 {
			to.Ops = append(to.Ops, Op{
				Name: r.name(fd, at[2], le.Uint32(ops[opName:])), Calls: calls,
				Time: duration(le.Uint64(ops[opTicks:]), ticks), Longest: duration(le.Uint64(ops[opLongest:]), ticks),
			})
		}
	}
	if kept {
		r.decodeGaps(fd, at[2], to, gaps, ticks, c)
	}
	return nil
}

// decodeGaps lists the longest pauses of a chip. None is longer than the longest,
// or ended after the last record came.
func (r *WorkReader) decodeGaps(fd int, names section, to *ChipWork, b []byte, ticks float64, c clock) {
	to.GapsKept = true
	for ; len(b) >= gapSize; b = b[gapSize:] {
		g := Gap{Length: duration(le.Uint64(b[gapTicks:]), ticks), End: c.at(int64(le.Uint64(b[gapEnd:]))), After: r.name(fd, names, le.Uint32(b[gapAfter:]))}
		if g.Length > 0 && g.Length <= to.LongestGap && !g.End.After(to.LastRecord) {
			to.LongestGaps = append(to.LongestGaps, g)
		}
	}
	slices.SortStableFunc(to.LongestGaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.Length, a.Length), a.End.Compare(b.End))
	})
}

func (r *WorkReader) decodeChip(fd int, names section, to *ChipWork, b []byte, c clock) {
	ticks := math.Float64frombits(le.Uint64(b[workTicks:]))
	span := func(at int) time.Duration { return duration(le.Uint64(b[at:]), ticks) }
	*to = ChipWork{
		Logical: int(int32(le.Uint32(b[workLogical:]))), State: WorkState(b[workState]), Loss: WorkLoss(b[workLoss]), Moving: to.Moving,
		Programs: le.Uint64(b[workPrograms:]), Busy: span(workBusy), Gaps: le.Uint64(b[workGaps:]), Gap: span(workGap),
		LongestGap: span(workLongestGap), Longest: span(workLongest),
		LongestName: r.name(fd, names, le.Uint32(b[workLongestName:])), LastName: r.name(fd, names, le.Uint32(b[workLastName:])),
		Refused: le.Uint64(b[workRefused:]), Unprofiled: le.Uint64(b[workUnprofiled:]),
		Stalls: le.Uint64(b[workStalls:]), Stalled: span(workStalled), LastEnd: span(workLastEnd),
		Since: c.at(int64(le.Uint64(b[workSince:]))), LastRecord: c.at(int64(le.Uint64(b[workLastRecord:]))),
	}
	for i := range to.Mark {
		m := b[workMark+i*16:]
		to.Mark[i] = Mark{c.at(int64(le.Uint64(m))), duration(le.Uint64(m[8:]), ticks), span(workMarkEnd + 8*i)}
	}
	if to.Programs > 0 && !(ticks > 0.01 && ticks < 100) {
		to.Loss = WorkUnreadable
	}
	if to.State > WorkFound {
		to.State = WorkOff
	}
	if to.Loss > WorkUnreadable {
		to.Loss = WorkUnreadable
	}
}

// duration is a number of ticks as time; what no time can be is the longest.
func duration(ticks uint64, perNS float64) time.Duration {
	if ticks == 0 || !(perNS > 0) {
		return 0
	}
	ns := float64(ticks) / perNS
	if perNS == 1 && ticks < math.MaxInt64 {
		return time.Duration(ticks)
	}
	if !(ns < math.MaxInt64/2) {
		return math.MaxInt64 / 2
	}
	return time.Duration(math.Round(ns))
}

// name is a name by its number. Names are read when one is asked for that is
// not known yet.
func (r *WorkReader) name(fd int, at section, number uint32) string {
	if number == 0 || number >= at.used {
		return ""
	}
	if int(number) >= len(r.names) || r.names[number] == "" {
		r.readNames(fd, at)
	}
	if int(number) >= len(r.names) {
		return ""
	}
	return r.names[number]
}

func (r *WorkReader) readNames(fd int, at section) {
	b := make([]byte, int(at.used)*nameSize)
	n, err := pread(fd, b, at.offset)
	if err != nil {
		return
	}
	b = b[:n/nameSize*nameSize]
	if len(r.names) != int(at.used) {
		r.names = make([]string, at.used)
	}
	for i := 0; i*nameSize < len(b); i++ {
		x := b[i*nameSize:]
		if length := le.Uint32(x); r.names[i] == "" && length > 0 && length <= nameSize-nameText {
			r.names[i] = string(x[nameText : nameText+length])
		}
	}
}

// ChipNumbered is the chip that a process knows by a number: the one that is
// open, or was last.
func (l *Ledger) ChipNumbered(logical int) (id uint64, ok bool) {
	for _, c := range l.Chips {
		if c.Logical == logical && (c.Open || !ok) {
			id, ok = c.ID, true
		}
	}
	return id, ok
}
