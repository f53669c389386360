package pages

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// What a process can have an account keep.
const (
	maxPrograms = 1024 // of a chip, by the pointers that name them, at a time
	maxOps      = 256  // of a chip, by name
)

// longPause is how long a chip may have had nothing to do before that counts as
// idle, and not as a host that was late; as in a ledger.
const longPause = 100 * time.Millisecond

// Chip is what ran on a chip, in ns, since it was first heard. A process may say
// with each batch that the clock goes at another rate: what was counted before
// stays as it is.
type Chip struct {
	Ticks      float64 // of its clock, a ns
	Programs   uint64
	Busy       float64 // in which a program ran: intervals that overlap count once
	Gap        float64 // pauses of at most longPause
	LongestGap float64 // of all pauses
	Longest    float64 // program
	LastEnd    uint64  // device time in ticks, since the device was opened; 0: none yet
	Refused    uint64  // records that cannot be true
	Unprofiled uint64
	Stalled    float64
	Since      int64 // Unix time in ns
	LastRecord int64 // 0: never
	On         bool  // records come, or will
	Closed     int64 // when they last ended, Unix time in ns
	Lossless   bool
	Unreadable bool // not laid out as they are known here: nothing is counted

	Ops  map[string]*Op // by name; that of all others is empty
	Gaps []Gap          // the longest pauses, in no order

	programs      map[uint64]*Op // by the pointer that names them
	last, longest *Op
	ended         *Op // of the program that ended last

	// offset is from the chip's clock to Unix time, in ns: by the record that came
	// soonest after its program. It is known if aligned is set.
	offset  float64
	aligned bool
	now     int64   // when the batch came that is being counted
	kept    float64 // a pause has to be longer than that to be kept

	log   *Log  // of its programs; nil: no client follows them
	shown int64 // the offset that programs in the log have, once laid is set
	laid  bool
}

// Gap is a pause between two programs.
type Gap struct {
	Length float64 // ns
	End    int64   // Unix time in ns
	After  string  // operation before it; empty: not known (yet)

	after *Op
}

// Op is what the programs of an operation took, in ns.
type Op struct {
	Name          string
	Calls         uint64
	Time, Longest float64

	nameless bool // its name may become known
	into     *Op  // what it was added to then
}

func newChip(now int64) *Chip {
	return &Chip{Since: now, Ops: map[string]*Op{}, programs: map[uint64]*Op{}}
}

// open begins the chip's time again: its clock may have been reset. Pages that
// came after it may have been counted already.
func (c *Chip) open(now int64) {
	if c.On = now > c.Closed; c.LastRecord > now {
		return
	}
	c.LastEnd, c.aligned, c.laid = 0, false, false
	c.forgetPointers() // they may stand for others now
}

// ns is how long so many ticks of the chip's clock take.
func (c *Chip) ns(ticks uint64) float64 {
	if !isClock(c.Ticks) {
		return 0
	}
	return float64(ticks) / c.Ticks
}

// ops are all operations, named and not yet named.
func (c *Chip) ops() (list []*Op) {
	for _, op := range c.Ops {
		list = append(list, op)
	}
	for _, op := range c.programs {
		if c.Ops[op.Name] != op {
			list = append(list, op)
		}
	}
	return list
}

// add counts a program whose name a pointer leads to; 0: none does.
func (c *Chip) add(p *page, pointer uint64, names map[uint64]string) {
	switch {
	case p.kind == stall:
		c.Stalled += c.ns(uint64(p.id))
		return
	case p.kind == unprofiled:
		c.Unprofiled++
		return
	case p.kind == other:
		return
	case p.end < p.start:
		c.Refused++
		return
	}
	took := c.ns(p.end - p.start)
	op := c.op(pointer, names)
	op.Calls, op.Time, op.Longest = op.Calls+1, op.Time+took, max(op.Longest, took)
	c.Programs++
	c.last = op
	if c.log != nil {
		x := c.lay(p)
		x.op = op
		c.log.push(c.Programs, x)
	}
	if took > c.Longest {
		c.Longest, c.longest = took, op
	}
	if c.LastEnd != 0 && p.start > c.LastEnd {
		gap := c.ns(p.start - c.LastEnd)
		c.LongestGap = max(c.LongestGap, gap)
		if gap > c.kept {
			c.keepGap(gap, p.start)
		}
		if gap <= float64(longPause) {
			c.Gap += gap
		}
	}
	if from := max(p.start, c.LastEnd); p.end > from {
		c.Busy += c.ns(p.end - from)
		c.LastEnd, c.ended = p.end, op
	}
}

// drift is how much two clocks may part, at most.
const drift = 61e-6

// align notes when a record came, and when its program ended by the chip's clock.
// How long a record took is not known: the least that was seen is nearest to the
// truth.
func (c *Chip) align(end uint64, now int64) {
	offset := float64(now) - c.ns(end)
	if most := c.offset + float64(now-c.now)*drift; c.aligned && most < offset {
		offset = most
	}
	c.offset, c.aligned, c.now = offset, true, now
}

// keepGap keeps a pause before a program if it is among the longest.
func (c *Chip) keepGap(length float64, start uint64) {
	at := len(c.Gaps)
	if at == model.MaxGaps {
		at = 0
		for i := range c.Gaps {
			if c.Gaps[i].Length < c.Gaps[at].Length {
				at = i
			}
		}
		if c.kept = c.Gaps[at].Length; length <= c.kept {
			return
		}
	} else {
		c.Gaps = append(c.Gaps, Gap{})
	}
	g := Gap{Length: length, End: c.begun(start), after: c.ended}
	if g.after != nil {
		g.After = g.after.Name
	}
	c.Gaps[at] = g
}

// gapsKept reports whether the longest pause is among those that are kept. It is
// not where a ttmond began the account that kept none.
func (c *Chip) gapsKept() bool {
	return c.LongestGap == 0 || slices.ContainsFunc(c.Gaps, func(g Gap) bool { return g.Length == c.LongestGap })
}

// begun is when a program of the batch began.
func (c *Chip) begun(start uint64) int64 {
	switch at := c.ns(start) + c.offset; {
	case !c.aligned || !(at < float64(c.now)):
		return c.now
	case at < float64(c.Since):
		return min(c.Since, c.now)
	default:
		return int64(at)
	}
}

// op is the operation that a pointer stands for.
func (c *Chip) op(pointer uint64, names map[uint64]string) *Op {
	if pointer == 0 {
		return c.named("")
	}
	if op := c.programs[pointer]; op != nil {
		return op
	}
	if len(c.programs) >= maxPrograms {
		c.forgetPointers()
	}
	op := &Op{nameless: true}
	if name := names[pointer]; name != "" {
		op = c.named(name)
	}
	c.programs[pointer] = op
	return op
}

// named is the operation of a name, or of all others where there is no room.
func (c *Chip) named(name string) *Op {
	op := c.Ops[name]
	if op == nil && len(c.Ops) >= maxOps && name != "" {
		return c.named("")
	}
	if op == nil {
		op = &Op{Name: name}
		c.Ops[name] = op
	}
	return op
}

// learn gives the programs of a pointer their name.
func (c *Chip) learn(pointer uint64, name string) {
	if op := c.programs[pointer]; op != nil && c.Ops[op.Name] != op {
		c.programs[pointer] = c.merge(op, name)
	}
}

// merge adds an operation that had no name to one that has.
func (c *Chip) merge(op *Op, name string) *Op {
	to := c.named(name)
	op.into = to
	to.Calls, to.Time, to.Longest = to.Calls+op.Calls, to.Time+op.Time, max(to.Longest, op.Longest)
	if c.last == op {
		c.last = to
	}
	if c.longest == op {
		c.longest = to
	}
	if c.ended == op {
		c.ended = to
	}
	for i := range c.Gaps {
		if g := &c.Gaps[i]; g.after == op {
			g.after, g.After = to, to.Name
		}
	}
	return to
}

// forgetPointers forgets what pointers stand for.
func (c *Chip) forgetPointers() {
	for _, op := range c.programs {
		if c.Ops[op.Name] != op {
			c.merge(op, "")
		}
	}
	clear(c.programs)
	if c.log != nil {
		c.log.settle()
	}
}

// size is what an account takes, in blocks of an allocator's.
func (c *Chip) size() int { return 8 + len(c.Ops) + len(c.programs) }
