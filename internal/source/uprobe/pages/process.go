package pages

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
)

// What a process can have an account keep.
const (
	maxNames    = 4096
	maxWaiting  = 256 // pointers whose name is asked for
	maxAttempts = 5
	maxNameless = 4096 // pointers whose name was never found
)

// Process is the account of a process. It is not safe for concurrent use.
type Process struct {
	Chips map[uint32]*Chip // by the process's own number
	Lost  uint64           // pages that did not arrive, as the kernel counts them
	// The most command queues and sub-devices that a device of it has had.
	Queues, SubDevices int
	Divided            int // the most sub-devices that a manager was made with
	// Logs is where the programs of a chip are kept, by the process's own number;
	// nil, and where it returns nil: nowhere.
	Logs func(chip uint32) *Log `json:"-"`

	names    map[uint64]string
	asked    map[uint64]int // how often
	nameless map[uint64]bool
	layout   layout
	recent   []recent // by the low bits of their ids; nil: none yet
}

// recent is what named the last program with an id. A batch says it of ids from
// its first one on; those of a trace that is replayed begin again in between.
type recent struct {
	pointer uint64
	id      uint32
}

const maxRecent = 1024

// NewProcess begins an account.
func NewProcess() *Process {
	p := &Process{}
	p.Restore()
	return p
}

// Restore makes an account that was read from a predecessor's whole.
func (p *Process) Restore() {
	if p.Chips == nil {
		p.Chips = map[uint32]*Chip{}
	}
	p.names, p.asked, p.nameless = map[uint64]string{}, map[uint64]int{}, map[uint64]bool{}
	for number, c := range p.Chips {
		if c == nil {
			delete(p.Chips, number)
			continue
		}
		if c.programs = map[uint64]*Op{}; c.Ops == nil {
			c.Ops = map[string]*Op{}
		}
	}
}

// Loss says how complete a batch is.
type Loss uint8

// The kinds.
const (
	Lossless Loss = iota // the chip waits rather than lose a page
	Lossy
)

// Batch are some pages of a chip.
type Batch struct {
	Time  int64 // Unix time in ns
	Chip  uint32
	Ticks float64
	Loss  Loss
	Lost  uint64 // pages of the process so far
	Pages []byte
	// Sources are pointers that name the programs with ids from that of the first
	// page on.
	Sources []uint64
}

func (p *Process) chip(number uint32, now int64) *Chip {
	c := p.Chips[number]
	if c == nil && number < maxChip {
		c = newChip(now)
		p.Chips[number] = c
	}
	return c
}

// Open notes that a chip will report.
func (p *Process) Open(number uint32, now int64) {
	if c := p.chip(number, now); c != nil {
		c.open(now)
		clear(p.recent)
		clear(p.names) // pointers may stand for other programs now
		clear(p.asked)
		clear(p.nameless)
	}
}

// Close notes that a chip no longer reports.
func (p *Process) Close(number uint32, now int64) {
	if c := p.Chips[number]; c != nil {
		c.On, c.Closed = false, max(c.Closed, now)
	}
}

// Queue notes that a command queue was made.
func (p *Process) Queue(number uint32) { p.Queues = max(p.Queues, min(2, int(number)+1)) }

// Divide notes that a manager of so many sub-devices was made.
func (p *Process) Divide(n uint32) { p.Divided = max(p.Divided, min(255, int(n))) }

// Load notes that one was loaded.
func (p *Process) Load() { p.SubDevices = max(p.SubDevices, p.Divided) }

// Add counts a batch.
func (p *Process) Add(b *Batch) {
	p.Lost = max(p.Lost, b.Lost)
	c := p.chip(b.Chip, b.Time)
	if c == nil {
		return
	}
	c.On, c.Lossless = b.Time > c.Closed, b.Loss == Lossless
	p.follow(c, b.Chip)
	if c.Unreadable = !isClock(b.Ticks); c.Unreadable {
		return
	}
	if c.Ticks != b.Ticks {
		c.Ticks, c.aligned = b.Ticks, false
	}
	if end, ok := lastEnd(b.Pages); ok {
		c.align(end, b.Time)
	}
	before := c.Programs
	first := uint32(0)
	if len(b.Pages) >= PageBytes {
		first = word(b.Pages, 2) & 0xffff
	}
	for rest := b.Pages; len(rest) >= PageBytes; rest = rest[PageBytes:] {
		x := decode(rest)
		pointer := uint64(0)
		if x.kind == program {
			pointer = p.pointer(x.id&0xffff, first, b.Sources)
		}
		c.add(&x, pointer, p.names)
		p.want(pointer)
	}
	if c.Programs > before {
		c.LastRecord = b.Time
	}
}

// follow finds the log of a chip.
func (p *Process) follow(c *Chip, number uint32) {
	if c.log == nil && p.Logs != nil {
		c.log = p.Logs(number)
	}
}

// UnfollowChip ends the log of a chip.
func (p *Process) UnfollowChip(number uint32) {
	if c := p.Chips[number]; c != nil {
		c.log = nil
	}
}

// Unfollow ends all logs.
func (p *Process) Unfollow() {
	p.Logs = nil
	for _, c := range p.Chips {
		c.log = nil
	}
}

// lastEnd is when the last program of some pages ended.
func lastEnd(b []byte) (end uint64, ok bool) {
	for b = b[:len(b)/PageBytes*PageBytes]; len(b) > 0; b = b[:len(b)-PageBytes] {
		if p := decode(b[len(b)-PageBytes:]); p.kind == program {
			return p.end, true
		}
	}
	return 0, false
}

// pointer finds what names the program with an id.
func (p *Process) pointer(id, first uint32, sources []uint64) uint64 {
	if len(sources) == 0 {
		return 0
	}
	if p.recent == nil {
		p.recent = make([]recent, maxRecent)
	}
	last := &p.recent[id%maxRecent]
	if at := id - first; id >= first && int(at) < len(sources) && sources[at] != 0 {
		*last = recent{sources[at], id}
	}
	if last.id != id {
		return 0
	}
	return last.pointer
}

// AddRecord counts a record of 0.71 to 0.75.
func (p *Process) AddRecord(b []byte, now int64, lost uint64) {
	p.Lost = max(p.Lost, lost)
	if len(b) < PageBytes {
		return
	}
	r, is := decodeRecord(b, p.layout)
	p.layout = is
	c := p.chip(r.chip, now)
	if c == nil || !isClock(r.ticks) {
		return
	}
	c.On = now > c.Closed
	p.follow(c, r.chip)
	if c.Ticks != r.ticks {
		c.Ticks, c.aligned = r.ticks, false
	}
	c.align(r.end, now)
	c.add(&r.page, r.sources, p.names)
	c.LastRecord = now
	p.want(r.sources)
}

func (p *Process) want(pointer uint64) {
	if pointer == 0 || p.names[pointer] != "" || p.nameless[pointer] || len(p.asked) >= maxWaiting {
		return
	}
	if _, ok := p.asked[pointer]; !ok {
		p.asked[pointer] = 0
	}
}

// Wanted are pointers whose names are not known yet, at most n. Each is asked for
// a few times; then it makes room for others.
func (p *Process) Wanted(n int) (list []uint64) {
	for pointer, attempts := range p.asked {
		if len(list) >= n {
			break
		}
		if attempts >= maxAttempts {
			p.giveUp(pointer)
			continue
		}
		p.asked[pointer]++
		list = append(list, pointer)
	}
	slices.Sort(list)
	return list
}

func (p *Process) giveUp(pointer uint64) {
	delete(p.asked, pointer)
	if len(p.nameless) >= maxNameless {
		clear(p.nameless)
	}
	p.nameless[pointer] = true
}

// Name is the answer: the source that a pointer leads to.
func (p *Process) Name(pointer uint64, path string) {
	name := nameInPath(path)
	if _, ok := p.asked[pointer]; !ok && !p.nameless[pointer] || name == "" {
		return
	}
	delete(p.asked, pointer)
	delete(p.nameless, pointer)
	if len(p.names) >= maxNames {
		clear(p.names)
	}
	p.names[pointer] = name
	for _, c := range p.Chips {
		c.learn(pointer, name)
	}
}

// Reports reports whether a chip may report.
func (p *Process) Reports() bool {
	for _, c := range p.Chips {
		if c.On {
			return true
		}
	}
	return false
}

// Size is what the account takes, in blocks of an allocator's.
func (p *Process) Size() (n int) {
	for _, c := range p.Chips {
		n += c.size()
	}
	return n + len(p.names) + len(p.asked) + len(p.nameless) + len(p.recent)/4
}

// Claim is what is known of a chip.
func (c *Chip) Claim(id model.ProcessID, chip uint64, of *Process, now time.Time) claim.Work {
	at := func(ns int64) time.Time {
		if ns == 0 {
			return time.Time{}
		}
		return time.Unix(0, ns)
	}
	w := claim.Work{
		Process: id, Chip: chip, At: now, Reports: c.On, Lossless: c.Lossless, Unreadable: c.Unreadable,
		Busy: duration(c.Busy), Gap: duration(c.Gap), Programs: c.Programs, Unprofiled: c.Unprofiled, Lost: of.Lost,
		Queues: of.Queues, SubDevices: of.SubDevices,
		Longest: duration(c.Longest), LongestGap: duration(c.LongestGap), Stalled: duration(c.Stalled),
		Since: at(c.Since), LastRecord: at(c.LastRecord), LastEnd: duration(c.ns(c.LastEnd)), GapsKept: c.gapsKept(),
	}
	if c.longest != nil {
		w.LongestName = c.longest.Name
	}
	if c.last != nil {
		w.LastName = c.last.Name
	}
	for _, op := range c.ops() {
		w.Ops = append(w.Ops, claim.Op{Name: op.Name, Calls: op.Calls, Time: duration(op.Time), Longest: duration(op.Longest)})
	}
	for _, g := range c.Gaps[:min(len(c.Gaps), model.MaxGaps)] {
		w.Gaps = append(w.Gaps, claim.Gap{Length: duration(g.Length), End: at(g.End), After: g.After})
	}
	slices.SortStableFunc(w.Gaps, func(a, b claim.Gap) int {
		return cmp.Or(cmp.Compare(b.Length, a.Length), a.End.Compare(b.End))
	})
	return w
}

// duration is so many ns; what no time can be is the longest.
func duration(ns float64) time.Duration {
	if !(ns < math.MaxInt64/2) {
		return math.MaxInt64 / 2
	}
	return time.Duration(math.Round(ns))
}
