package runreport

import (
	"cmp"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/failure"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sorted"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// Builder gathers what processes wrote down while the program runs.
type Builder struct {
	started time.Time
	last    map[string]entry // by path of the ledger
	order   []string
	sampled map[chipPool]peak // sums over processes, as they were seen
	works   bool              // what ledgers say of programs is asked for
}

type entry struct {
	ledger  *ledgerfile.Ledger
	running bool
	seen    time.Time        // when work was asked for last
	work    *ledgerfile.Work // nil: nothing is known of programs
	gaps    map[int]gap      // by the process's number of the chip
}

type chipPool struct {
	id   uint64
	pool model.Pool
}

type peak struct {
	bytes uint64
	at    float64
}

// NewBuilder begins a report on a program that starts now.
func NewBuilder(started time.Time) *Builder {
	return &Builder{started: started, last: map[string]entry{}, sampled: map[chipPool]peak{}}
}

// Add notes the newest copy of a process's ledger.
func (b *Builder) Add(path string, l *ledgerfile.Ledger, running bool) {
	if _, ok := b.last[path]; !ok {
		b.order = append(b.order, path)
	}
	e := b.last[path]
	e.ledger, e.running = l, running
	b.last[path] = e
}

// Processes counts those that keep or kept a ledger.
func (b *Builder) Processes() int { return len(b.last) }

// Now is what all running processes hold, by chip and pool. It also counts
// towards the peaks of chips that several processes use.
func (b *Builder) Now(at time.Time) map[uint64]map[model.Pool]uint64 {
	sums := map[uint64]map[model.Pool]uint64{}
	for _, e := range b.last {
		if !e.running {
			continue
		}
		for i := range e.ledger.Lists {
			l := &e.ledger.Lists[i]
			pool, ok := blocks.PoolOf(l.Pool)
			if l.State != ledgerfile.Open || !ok {
				continue
			}
			for _, id := range chipsOf(e.ledger, l) {
				if sums[id] == nil {
					sums[id] = map[model.Pool]uint64{}
				}
				sums[id][pool] += l.Live.Bytes * uint64(l.Banks)
			}
		}
	}
	for id, pools := range sums {
		for pool, n := range pools {
			if key := (chipPool{id, pool}); n > b.sampled[key].bytes {
				b.sampled[key] = peak{n, b.seconds(at)}
			}
		}
	}
	return sums
}

func (b *Builder) seconds(t time.Time) float64 {
	if t.IsZero() {
		return 0
	}
	return max(0, t.Sub(b.started).Seconds())
}

// chipsOf are the chips that a list stands for; one that could not be told is
// the only one that the process has, or unknown.
func chipsOf(l *ledgerfile.Ledger, x *ledgerfile.List) []uint64 {
	if ids := blocks.ChipsOf(l, x); len(ids) > 0 {
		return ids
	}
	return []uint64{blocks.UnknownChip}
}

// Report sums up a run that ended then. The caller fills in what is known of the
// program itself.
func (b *Builder) Report(ended time.Time) *Report {
	seconds := b.seconds(ended)
	r := &Report{Schema: Schema, Started: b.started, Seconds: seconds, Method: Nothing, Chips: []Chip{}, Processes: []Process{}, Releases: []string{}}
	for _, path := range b.order {
		e := b.last[path]
		p := b.process(e)
		b.addWork(&p, e, seconds)
		sortChips(p.Chips)
		r.Processes = append(r.Processes, p)
		r.Failures = append(r.Failures, failures(e.ledger, &p)...)
		if p.Release != "" && !slices.Contains(r.Releases, p.Release) {
			r.Releases = append(r.Releases, p.Release)
		}
	}
	if len(r.Processes) > 0 {
		r.Method = Ledger
	}
	r.Chips = b.together(r.Processes)
	slices.SortStableFunc(r.Failures, func(a, b *failure.Record) int { return a.Last.Compare(b.Last) })
	return r
}

// failures are the requests of a process that failed.
func failures(l *ledgerfile.Ledger, p *Process) (list []*failure.Record) {
	for i := range l.Failures {
		who := failure.Process{PID: l.PID, Start: l.StartTicks, UID: -1, Name: l.Comm, Release: p.Release}
		if r, ok := failure.FromLedger(l, &l.Failures[i], who); ok {
			list = append(list, r)
		}
	}
	return list
}

func (b *Builder) process(e entry) Process {
	l := e.ledger
	p := Process{
		PID: l.PID, Name: l.Comm, Release: release(l.Library), Running: e.running,
		Killed: !e.running && l.Flags&ledgerfile.Ended == 0, Stacks: l.Flags&(ledgerfile.StacksOn|ledgerfile.NativeOn) != 0,
		Lost: l.Lost, Unsure: l.Unknown > 0 || l.Flags&ledgerfile.Late != 0, PerCoreL1: l.Flags&ledgerfile.PerCore != 0, Chips: []Chip{},
	}
	for _, x := range blocks.LedgerPools(l, func(uint64) int { return model.NoDevice }) {
		if x.Chip == 0 {
			continue
		}
		pool := b.pool(e, &x)
		if pool.Total.Blocks == 0 && pool.Failed == 0 {
			continue
		}
		c := chipIn(&p.Chips, x.Chip)
		for i := range l.Chips {
			if l.Chips[i].ID == x.Chip {
				c.Logical = l.Chips[i].Logical
			}
		}
		c.Pools = append(c.Pools, pool)
	}
	return p
}

func chipIn(chips *[]Chip, id uint64) *Chip {
	for i := range *chips {
		if (*chips)[i].ID == id {
			return &(*chips)[i]
		}
	}
	*chips = append(*chips, Chip{ID: id, Unknown: id == blocks.UnknownChip})
	return &(*chips)[len(*chips)-1]
}

func sortChips(chips []Chip) {
	sorted.By(chips, func(a, b *Chip) int { return cmp.Or(cmp.Compare(a.Logical, b.Logical), cmp.Compare(a.ID, b.ID)) })
	for i := range chips {
		sorted.By(chips[i].Pools, func(a, b *Pool) int { return cmp.Compare(a.Pool, b.Pool) })
	}
}

// pool sums the lists of a pool on one chip, in one process.
func (b *Builder) pool(e entry, x *blocks.LedgerPool) Pool {
	lists, top := x.Lists, x.Peak
	out := Pool{Pool: x.Pool, PoolName: x.Pool.String(), Peak: top.Bytes, Bound: top.Bound}
	if top.List >= 0 {
		out.PeakAt = b.seconds(top.At)
	}
	for _, i := range lists {
		l := &e.ledger.Lists[i]
		banks := uint64(l.Banks)
		out.Total.add(Amount{l.Total.Bytes * banks, l.Total.Blocks})
		out.Left.add(Amount{l.Left.Bytes * banks, l.Left.Blocks})
		if e.running {
			out.Held.add(Amount{l.Live.Bytes * banks, l.Live.Blocks})
		} else {
			own := kept(e.ledger, i)
			out.Left.add(Amount{(l.Live.Bytes - min(own.Bytes, l.Live.Bytes)) * banks, l.Live.Blocks - min(own.Blocks, l.Live.Blocks)})
		}
		out.Failed += l.Failed
		out.Capacity = max(out.Capacity, l.Capacity*banks)
	}
	b.places(&out, e, lists, top.List)
	return out
}

// kept is what tt-metal itself holds of a list, in one bank: it is freed with the
// device, and no leak of a process that ended without closing it.
func kept(l *ledgerfile.Ledger, list int) (sum ledgerfile.Sum) {
	for i := range l.Sites {
		if s := &l.Sites[i]; s.List == list && s.Kept {
			sum.Bytes, sum.Blocks = sum.Bytes+s.Live.Bytes, sum.Blocks+s.Live.Blocks
		}
	}
	return sum
}

// places notes what each place of the program held at the peak, and left.
func (b *Builder) places(out *Pool, e entry, lists []int, top int) {
	for n := range e.ledger.Sites {
		s := &e.ledger.Sites[n]
		if s.List == 0 || !slices.Contains(lists, s.List) {
			continue
		}
		banks := uint64(e.ledger.Lists[s.List].Banks)
		place := Place{Tag: s.Tag, Stack: e.ledger.Stack(s.Node)}
		amount := func(x ledgerfile.Sum) Amount { return Amount{x.Bytes * banks, x.Blocks} }
		if s.List == top && s.Peak.Blocks > 0 {
			p := place
			p.Amount = amount(s.Peak)
			out.AtPeak = append(out.AtPeak, p)
		}
		left := amount(s.Left)
		if !e.running && !s.Kept {
			left.add(amount(s.Live))
		}
		if left.Blocks > 0 {
			p := place
			p.Amount, p.Largest, p.Oldest = left, s.LeftLargest*banks, b.seconds(s.LeftOldest)
			p.Quarters = slices.Clone(s.LeftQuarters[:])
			if !e.running && s.Live.Blocks > 0 {
				b.oldest(&p, e.ledger, n, banks, s.Left.Blocks > 0)
				p.Quarters = addQuarters(p.Quarters, liveQuarters(e.ledger, n))
			}
			out.LeftBy = append(out.LeftBy, p)
		}
		if s.Total.Blocks > 0 {
			p := place
			p.Held, p.Total = amount(s.Live), amount(s.Total)
			if !e.running {
				p.Held = left
			}
			out.Places = append(out.Places, p)
		}
	}
	markGrown(out)
	sorted.Stable(out.AtPeak, larger)
	sorted.Stable(out.LeftBy, larger)
}

func larger(a, b *Place) int { return cmp.Compare(b.Bytes, a.Bytes) }

// oldest notes the age and size of blocks that were live when the process ended.
func (b *Builder) oldest(p *Place, l *ledgerfile.Ledger, site int, banks uint64, known bool) {
	for i := range l.Blocks {
		x := &l.Blocks[i]
		if x.Site != site {
			continue
		}
		p.Largest = max(p.Largest, x.Bytes*banks)
		if at := b.seconds(x.Born); !known || at < p.Oldest {
			p.Oldest, known = at, true
		}
	}
}

// Site is a call site of a ledger, as its blocks have it by number.
type Site struct {
	Number int                `json:"site"`
	Tag    string             `json:"tag,omitempty"`
	Stack  []ledgerfile.Frame `json:"stack,omitempty"`  // innermost first
	Blocks uint64             `json:"blocks"`           // live
	Bytes  uint64             `json:"bytes"`            // of them, over all banks
	Tensor string             `json:"tensor,omitempty"` // that its buffers are for: "[1,1,32,32] bfloat16 tile interleaved"
}

// Sites are the call sites that hold something, and say more than that.
func Sites(l *ledgerfile.Ledger) []Site {
	out := []Site{}
	for i := range l.Sites {
		s := &l.Sites[i]
		if s.Live.Blocks == 0 || s.Tag == "" && s.Node == 0 && s.Tensor == "" {
			continue
		}
		banks := uint64(l.Lists[s.List].Banks)
		out = append(out, Site{i, s.Tag, l.Stack(s.Node), s.Live.Blocks, s.Live.Bytes * banks, s.Tensor})
	}
	return out
}

// together adds the processes up. What one process has to itself stays as it
// is; of a chip that several use the peak is what was seen of the sum.
func (b *Builder) together(processes []Process) []Chip {
	chips := []Chip{}
	for i := range processes {
		for _, from := range processes[i].Chips {
			c := chipIn(&chips, from.ID)
			c.Logical = from.Logical
			for _, p := range from.Pools {
				b.addPool(c, p)
			}
			switch {
			case c.Work == nil && from.Work != nil:
				w := *from.Work
				w.Operations = slices.Clone(w.Operations)
				c.Work = &w
			case from.Work != nil:
				c.Work.addProcess(from.Work)
			}
		}
	}
	sortChips(chips)
	return chips
}

func (b *Builder) addPool(c *Chip, p Pool) {
	i := slices.IndexFunc(c.Pools, func(q Pool) bool { return q.Pool == p.Pool })
	if i < 0 {
		p.AtPeak, p.LeftBy, p.Places = slices.Clone(p.AtPeak), slices.Clone(p.LeftBy), slices.Clone(p.Places)
		c.Pools = append(c.Pools, p)
		return
	}
	q := &c.Pools[i]
	q.atLeast(true)
	if p.Peak > q.Peak {
		q.Peak, q.PeakAt, q.AtPeak = p.Peak, p.PeakAt, slices.Clone(p.AtPeak)
	}
	if s := b.sampled[chipPool{c.ID, p.Pool}]; s.bytes > q.Peak {
		q.Peak, q.PeakAt, q.AtPeak = s.bytes, s.at, nil
	}
	q.Capacity = max(q.Capacity, p.Capacity)
	q.Total.add(p.Total)
	q.Held.add(p.Held)
	q.Left.add(p.Left)
	q.Grown.add(p.Grown)
	q.Failed += p.Failed
	q.LeftBy = append(q.LeftBy, p.LeftBy...)
	sorted.Stable(q.LeftBy, larger)
	q.Places = append(q.Places, p.Places...)
}
