package pages

import "time"

// What a process can have an account keep.
const (
	maxPrograms = 1024 // of a chip, by the pointers that name them, at a time
	maxOps      = 256  // of a chip, by name
)

// longPause is how long a chip may have had nothing to do before that counts as
// idle, and not as a host that was late; as in a ledger.
const longPause = 100 * time.Millisecond

// Chip is what ran on a chip, in ticks of its clock, since it was first heard.
type Chip struct {
	Ticks      float64 // a ns
	Programs   uint64
	Busy       uint64 // in which a program ran: intervals that overlap count once
	Gap        uint64 // pauses of at most longPause
	LongestGap uint64 // of all pauses
	Longest    uint64 // program
	LastEnd    uint64 // device time, since the device was opened; 0: none yet
	Refused    uint64 // records that cannot be true
	Unprofiled uint64
	Stalled    uint64
	Since      int64 // Unix time in ns
	LastRecord int64 // 0: never
	On         bool  // records come, or will
	Closed     int64 // when they last ended, Unix time in ns
	Lossless   bool
	Unreadable bool // not laid out as they are known here: nothing is counted

	Ops map[string]*Op // by name; that of all others is empty

	programs      map[uint64]*Op // by the pointer that names them
	last, longest *Op
}

// Op is what the programs of an operation took.
type Op struct {
	Name                  string
	Calls, Ticks, Longest uint64
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
	c.LastEnd = 0
	c.forgetPointers() // they may stand for others now
}

// clock notes how fast the chip's clock goes, and rescales what was counted.
func (c *Chip) clock(ticks float64) {
	if c.Ticks > 0 && c.Ticks != ticks {
		by := ticks / c.Ticks
		scaled := []*uint64{&c.Busy, &c.Gap, &c.LongestGap, &c.Longest, &c.Stalled}
		for _, op := range c.ops() {
			scaled = append(scaled, &op.Ticks, &op.Longest)
		}
		for _, x := range scaled {
			*x = uint64(float64(*x)*by + 0.5)
		}
	}
	c.Ticks = ticks
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
		c.Stalled += uint64(p.id)
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
	ticks := p.end - p.start
	op := c.op(pointer, names)
	op.Calls, op.Ticks, op.Longest = op.Calls+1, op.Ticks+ticks, max(op.Longest, ticks)
	c.Programs++
	c.last = op
	if ticks > c.Longest {
		c.Longest, c.longest = ticks, op
	}
	if c.LastEnd != 0 && p.start > c.LastEnd {
		gap := p.start - c.LastEnd
		c.LongestGap = max(c.LongestGap, gap)
		if float64(gap) <= float64(longPause)*c.Ticks {
			c.Gap += gap
		}
	}
	if from := max(p.start, c.LastEnd); p.end > from {
		c.Busy += p.end - from
		c.LastEnd = p.end
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
	op := &Op{}
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
	to.Calls, to.Ticks, to.Longest = to.Calls+op.Calls, to.Ticks+op.Ticks, max(to.Longest, op.Longest)
	if c.last == op {
		c.last = to
	}
	if c.longest == op {
		c.longest = to
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
}

// size is what an account takes, in blocks of an allocator's.
func (c *Chip) size() int { return 8 + len(c.Ops) + len(c.programs) }
