package ledgerfile

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
	"unsafe"
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
	header   header
	names    []string
	texts    []nameRecord
	chip     []workRecord
	sequence []uint32
	ops      []opRecord
	gaps     []gapRecord
}

// Read copies what a ledger says of programs; nil where it says nothing. Of chips
// that report nothing there is what the process enqueued. It never waits for the
// writer.
func (r *WorkReader) Read(fd int) (*Work, error) {
	h := &r.header
	if err := h.load(fd); errors.Is(err, ErrNotReady) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if string(h.Magic[:]) != magic || h.Version != Version || uintptr(h.Header) < workHeader {
		return nil, nil
	}
	if err := h.checkWork(); err != nil {
		return nil, err
	}
	c := h.Clock
	w := &Work{Chips: make([]ChipWork, h.Work[secWork].Used)}
	for i := range w.Chips {
		if err := r.readChip(fd, uint64(i), &w.Chips[i]); err != nil {
			return nil, err
		}
	}
	x := &h.Host
	w.Host = HostWork{
		Enqueued: x.Enqueued, Replayed: x.Replayed, Waits: x.Waits, LastEnqueue: c.at(x.LastEnqueue), LastFinish: c.at(x.LastFinish),
		LastName: r.name(fd, x.LastName), Queues: int(min(2, x.Queues)), SubDevices: int(x.SubDevices),
	}
	for _, wait := range x.Wait {
		if since := c.at(wait.Since); !since.IsZero() {
			w.Host.Waiting = append(w.Host.Waiting, Wait{since, wait.Kind, int(wait.Thread)})
		}
	}
	if x := &w.Host; len(w.Chips) == 0 && x.Enqueued+x.Replayed+x.Waits == 0 {
		return nil, nil // an older libttmon counts only where chips report
	}
	return w, nil
}

// checkWork refuses sections of work that cannot be.
func (h *header) checkWork() error {
	type part struct {
		section
		size         uintptr
		ofChip, most uint32
	}
	parts := []part{
		{h.Work[secWork], unsafe.Sizeof(workRecord{}), 1, chipsPerLedger},
		{h.Work[secOps], unsafe.Sizeof(opRecord{}), chipOps, chipsPerLedger * chipOps},
		{h.Work[secNames], unsafe.Sizeof(nameRecord{}), 0, maxNames},
	}
	if h.keepsGaps() {
		parts = append(parts, part{h.Gaps, unsafe.Sizeof(gapRecord{}), chipGaps, chipsPerLedger * chipGaps})
	}
	for _, x := range parts {
		if err := x.check(x.size, x.most, uint64(workHeader)); err != nil {
			return err
		}
		if chips := h.Work[secWork].Used; x.Used < chips*x.ofChip {
			return fmt.Errorf("%w: %d records of the work of %d chips", ErrDamaged, x.Used, chips)
		}
	}
	return nil
}

// keepsGaps reports whether the writer knows of gaps.
func (h *header) keepsGaps() bool { return uintptr(h.Header) >= sizeOfHeader }

// readChip copies the record of a chip and its operations, again where it was
// changed meanwhile.
func (r *WorkReader) readChip(fd int, i uint64, to *ChipWork) error {
	at := func(s section, n uint64) uint64 { return s.Offset + i*n*uint64(s.Size) }
	h := &r.header
	for try := 0; ; try++ {
		r.gaps = r.gaps[:0]
		err := cmp.Or(load(fd, at(h.Work[secWork], 1), 1, &r.chip), load(fd, at(h.Work[secOps], chipOps), chipOps, &r.ops))
		if h.keepsGaps() {
			err = cmp.Or(err, load(fd, at(h.Gaps, chipGaps), chipGaps, &r.gaps))
		}
		if err = cmp.Or(err, load(fd, at(h.Work[secWork], 1)+uint64(unsafe.Offsetof(workRecord{}.Sequence)), 1, &r.sequence)); err != nil {
			return fmt.Errorf("%w: the work of chip %d is cut off", ErrDamaged, i)
		}
		before := r.chip[0].Sequence
		to.Moving = before&1 != 0 || r.sequence[0] != before
		if !to.Moving || try >= attempts {
			break
		}
		pause(try)
	}
	r.decodeChip(fd, to)
	ticks := r.chip[0].TicksPerNS
	for _, x := range r.ops {
		if x.Calls > 0 {
			to.Ops = append(to.Ops, Op{Name: r.name(fd, x.Name), Calls: x.Calls, Time: duration(x.Ticks, ticks), Longest: duration(x.Longest, ticks)})
		}
	}
	r.decodeGaps(fd, to, ticks)
	return nil
}

// decodeGaps lists the longest pauses of a chip. None is longer than the longest,
// or ended after the last record came.
func (r *WorkReader) decodeGaps(fd int, to *ChipWork, ticks float64) {
	to.GapsKept = r.header.keepsGaps()
	for _, x := range r.gaps {
		g := Gap{Length: duration(x.Ticks, ticks), End: r.header.Clock.at(x.End), After: r.name(fd, x.After)}
		if g.Length > 0 && g.Length <= to.LongestGap && !g.End.After(to.LastRecord) {
			to.LongestGaps = append(to.LongestGaps, g)
		}
	}
	slices.SortStableFunc(to.LongestGaps, func(a, b Gap) int {
		return cmp.Or(cmp.Compare(b.Length, a.Length), a.End.Compare(b.End))
	})
}

func (r *WorkReader) decodeChip(fd int, to *ChipWork) {
	x, c := &r.chip[0], r.header.Clock
	span := func(ticks uint64) time.Duration { return duration(ticks, x.TicksPerNS) }
	*to = ChipWork{
		Logical: int(x.Logical), State: x.State, Loss: x.Loss, Moving: to.Moving,
		Programs: x.Programs, Busy: span(x.Busy), Gaps: x.Gaps, Gap: span(x.Gap), LongestGap: span(x.LongestGap), Longest: span(x.Longest),
		LongestName: r.name(fd, x.LongestName), LastName: r.name(fd, x.LastName), Refused: x.Refused, Unprofiled: x.Unprofiled,
		Stalls: x.Stalls, Stalled: span(x.Stalled), LastEnd: span(x.LastEnd), Since: c.at(x.Since), LastRecord: c.at(x.LastRecord),
	}
	for i, m := range x.Mark {
		to.Mark[i] = Mark{c.at(m.Time), span(m.Busy), span(x.MarkEnd[i])}
	}
	if to.Programs > 0 && !(x.TicksPerNS > 0.01 && x.TicksPerNS < 100) {
		to.Loss = WorkUnreadable
	}
	if to.State > WorkFound {
		to.State = WorkOff
	}
	to.Loss = min(to.Loss, WorkUnreadable)
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
func (r *WorkReader) name(fd int, number uint32) string {
	if number == 0 || number >= r.header.Work[secNames].Used {
		return ""
	}
	if int(number) >= len(r.names) || r.names[number] == "" {
		r.readNames(fd)
	}
	return r.names[number]
}

func (r *WorkReader) readNames(fd int) {
	if more := int(r.header.Work[secNames].Used) - len(r.names); more > 0 {
		r.names = append(r.names, make([]string, more)...)
	}
	if all(fd, r.header.Work[secNames], &r.texts) != nil {
		return
	}
	for i, x := range r.texts {
		if r.names[i] == "" && int(x.Length) <= len(x.Text) {
			r.names[i] = string(x.Text[:x.Length])
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
