package pages

import (
	"math"
	"time"

	"github.com/ttmon/ttmon/internal/book/launches"
)

// Log keeps the last programs of a chip one by one, for those who follow them. A
// chip has none otherwise.
type Log struct {
	// Grow reports whether so many more programs may be kept.
	Grow func(n int) bool
	// Read is the number of the next program that some client has not read: those
	// before it need not be kept.
	Read uint64
	// Ended: no name can become known any more.
	Ended bool
	// First is the number of the first program that was to be kept; 0: none was
	// reported yet.
	First uint64

	ring []ran
	next uint64 // the number of the next program; 0: none yet
	held int    // programs in the ring
	// settled is the number of the first program whose operation may be replaced.
	settled uint64
}

// ran is a program that ran. One whose time cannot be true has a length below zero.
type ran struct {
	start, length int64
	op            *Op
}

// How many programs of a chip are kept, at 24 bytes each: at 100,000 a second the
// last 1.3 s, of which the reader of pages needs a quarter.
const (
	fewRan = 1 << 8
	maxRan = 1 << 17
)

// Next is the number of the next program; 0: none was reported yet.
func (l *Log) Next() uint64 { return l.next }

// Size is how many programs there is room for.
func (l *Log) Size() int { return len(l.ring) }

// push adds the program with a number. The oldest makes room, unless there may be
// more.
func (l *Log) push(number uint64, x ran) {
	if l.next == 0 {
		l.First = number
	}
	l.next = number + 1
	if l.held == len(l.ring) && (l.held == 0 || l.Read <= number-uint64(l.held)) {
		l.enlarge(number)
	}
	if len(l.ring) == 0 {
		return
	}
	l.ring[number%uint64(len(l.ring))] = x
	l.held = min(l.held+1, len(l.ring))
}

// enlarge doubles the ring, as far as it may be.
func (l *Log) enlarge(number uint64) {
	size := max(fewRan, 2*len(l.ring))
	if size > maxRan || l.Grow == nil || !l.Grow(size-len(l.ring)) {
		return
	}
	ring := make([]ran, size)
	for n := number - uint64(l.held); n < number; n++ {
		ring[n%uint64(size)] = l.ring[n%uint64(len(l.ring))]
	}
	l.ring = ring
}

// settle has the programs refer to the operations that theirs were added to: those
// without a name would be kept otherwise, and a process can have one for each program.
func (l *Log) settle() {
	for n := max(l.settled, l.next-uint64(l.held)); n < l.next; n++ {
		x := &l.ring[n%uint64(len(l.ring))]
		x.op = x.op.named()
	}
	l.settled = l.next
}

// nameTimeout is how long a program waits for its name: the kernel's part reads it
// when the chip reports again.
const nameTimeout = time.Second

// MaxHeld is how long after its report a program may wait for its name: its end may
// be laid later than that.
const MaxHeld = nameTimeout + 2*time.Duration(layMost)

// Since are programs from a number on, at most max, that follow each other; first is
// the number of the first, and next that of the one to ask for then. Those between
// from and first are not kept any more. The last ones wait until their names are
// known, or until it is too late for that.
func (l *Log) Since(from uint64, max int, now int64) (list []launches.Program, first, next uint64) {
	oldest := l.next - uint64(l.held)
	if from < oldest || from > l.next {
		from = oldest
	}
	for first = from; from < l.next && len(list) < max; from++ {
		x := &l.ring[from%uint64(len(l.ring))]
		if x.length < 0 {
			if len(list) > 0 {
				break
			}
			first = from + 1
			continue
		}
		op := x.op.named()
		if op.nameless && !l.Ended && x.start+x.length > now-int64(nameTimeout) {
			break
		}
		list = append(list, launches.Program{Start: x.start, Length: x.length, Name: op.Name})
	}
	return list, first, from
}

// named is the operation that took the place of one that had no name.
func (o *Op) named() *Op {
	for o.into != nil {
		o = o.into
	}
	return o
}

// How far the times of programs may be from where the clocks say, and from where
// they can be.
const (
	layStep = int64(100 * time.Microsecond) // less is no reason to move them
	layMost = int64(100 * time.Millisecond) // more is not waited for a pause
)

// lay puts a program on the host's clock. Where a later record shows that all of
// them were laid too late, the next pauses are shortened: no program is moved into
// the one before it, and none gets another length.
func (c *Chip) lay(p *page) (x ran) {
	target := int64(c.offset)
	if late := c.shown - target; c.laid && late > layStep && p.start > c.LastEnd {
		c.shown -= min(late, int64(c.ns(p.start-c.LastEnd)))
	}
	if late := c.shown - target; !c.laid || late > layMost || late < -layStep {
		c.shown, c.laid = target, true
	}
	start, end := math.Round(c.ns(p.start)), math.Round(c.ns(p.end))
	if !(end < math.MaxInt64/4) {
		return ran{length: -1}
	}
	x = ran{start: c.shown + int64(start), length: int64(end) - int64(start)}
	if x.start < 0 || x.start+x.length > c.now+2*layMost {
		x.length = -1
	}
	return x
}
