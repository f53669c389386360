package runreport

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/runs"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// account is what a process took of the host's chips, as its ledger says, or what all
// processes of a run took together.
type account struct {
	host    *model.Snapshot
	pools   map[blocks.LedgerPlace]*pool
	works   map[int][]runs.Work // by device
	open    map[int]span        // by device: from when to when it was
	logical map[uint64]int      // numbers of chips, as the program has them
}

// pool is what was held at one place, and from when to when something could be.
type pool struct {
	runs.Pool
	span
}

type span struct{ from, to time.Time }

// join makes a span that has both.
func (s span) join(x span) span {
	if s.from.IsZero() || x.from.Before(s.from) {
		s.from = x.from
	}
	if x.to.After(s.to) {
		s.to = x.to
	}
	return s
}

func newAccount(host *model.Snapshot) *account {
	return &account{host, map[blocks.LedgerPlace]*pool{}, map[int][]runs.Work{}, map[int]span{}, map[uint64]int{}}
}

// account is what the ledger of one process says. Only chips have lines of code: those
// of a device would be the same ones again.
func (b *Builder) account(e *entry, ended time.Time, host *model.Snapshot) *account {
	a := newAccount(host)
	l := e.ledger
	for i := range l.Chips {
		a.logical[l.Chips[i].ID] = l.Chips[i].Logical
	}
	list := blocks.LedgerPools(l, host.DeviceOf)
	for i := range list {
		x := &list[i]
		p := &pool{Pool: runs.Pool{Peak: x.Peak.Bytes, PeakBound: x.Peak.Bound.String(), PeakMost: x.Peak.Most, PeakAt: x.Peak.At, Blocks: &runs.Blocks{}}}
		for _, i := range x.Lists {
			p.span = p.join(b.span(e, &l.Lists[i], ended))
		}
		if x.Chip != 0 {
			addBlocks(p.Blocks, e, x.Lists)
			addPlaces(p.Blocks, e, x.Lists, x.Peak.List)
		}
		a.pools[x.LedgerPlace] = p
	}
	for at, p := range a.pools {
		if at.Chip == 0 {
			continue
		}
		for _, whole := range []blocks.LedgerPlace{{Device: at.Device, Pool: at.Pool}, {Device: model.AllDevices, Pool: at.Pool}} {
			if sum := a.pools[whole]; sum != nil {
				sum.Blocks.Capacity += p.Blocks.Capacity
				addAmounts(sum.Blocks, p.Blocks)
			}
		}
	}
	for at, p := range a.pools {
		if p.Blocks.Allocated.Blocks == 0 && p.Blocks.Failed == 0 {
			delete(a.pools, at)
			continue
		}
		p.Held, p.HeldBound = p.Blocks.Held.Bytes, p.PeakBound
	}
	b.addWork(a, e, ended)
	for at := range a.pools {
		if at.Chip != 0 {
			a.open[at.Device] = a.open[at.Device].join(b.use(e, at.Chip, ended))
		}
	}
	return a
}

// span is from when to when a list was there. A process that was killed may have ended
// before the run, without closing anything.
func (b *Builder) span(e *entry, l *ledgerfile.List, ended time.Time) span {
	switch {
	case l.State != ledgerfile.Open:
		ended = l.Closed
	case !e.running && !e.seen.IsZero() && e.seen.Before(ended):
		ended = e.seen
	}
	from := l.Made
	if from.Before(b.started) {
		from = b.started
	}
	return span{from, ended}
}

// use is from when to when a process used a chip: while it had an allocator for it.
// Without one that is known to be the chip's it is the whole run.
func (b *Builder) use(e *entry, chip uint64, ended time.Time) (s span) {
	for i := range e.ledger.Lists {
		l := &e.ledger.Lists[i]
		if l.State != ledgerfile.Unused && slices.Contains(blocks.ChipsOf(e.ledger, l), chip) {
			s = s.join(b.span(e, l, ended))
		}
	}
	if !s.to.After(s.from) {
		s = span{b.started, ended}
		if !e.running && !e.seen.IsZero() && e.seen.Before(ended) {
			s.to = e.seen
		}
	}
	return s
}

// addBlocks sums up the lists of a pool on one chip.
func addBlocks(out *runs.Blocks, e *entry, lists []int) {
	for _, i := range lists {
		l := &e.ledger.Lists[i]
		banks := uint64(l.Banks)
		out.Allocated.Add(runs.Amount{Bytes: l.Total.Bytes * banks, Blocks: l.Total.Blocks})
		out.Left.Add(runs.Amount{Bytes: l.Left.Bytes * banks, Blocks: l.Left.Blocks})
		if e.running {
			out.Held.Add(runs.Amount{Bytes: l.Live.Bytes * banks, Blocks: l.Live.Blocks})
		} else {
			own := kept(e.ledger, i)
			out.Left.Add(runs.Amount{Bytes: (l.Live.Bytes - min(own.Bytes, l.Live.Bytes)) * banks, Blocks: l.Live.Blocks - min(own.Blocks, l.Live.Blocks)})
		}
		out.Failed += l.Failed
		out.Capacity = max(out.Capacity, l.Capacity*banks)
	}
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

// addPlaces notes what each place of the program held at the peak, and left.
func addPlaces(out *runs.Blocks, e *entry, lists []int, top int) {
	for n := range e.ledger.Sites {
		s := &e.ledger.Sites[n]
		if s.List == 0 || !slices.Contains(lists, s.List) {
			continue
		}
		banks := uint64(e.ledger.Lists[s.List].Banks)
		place := runs.Place{Tag: s.Tag, Stack: e.ledger.Stack(s.Node)}
		amount := func(x ledgerfile.Sum) runs.Amount { return runs.Amount{Bytes: x.Bytes * banks, Blocks: x.Blocks} }
		if s.List == top && s.Peak.Blocks > 0 {
			p := place
			p.Amount = amount(s.Peak)
			out.AtPeak = append(out.AtPeak, p)
		}
		left := amount(s.Left)
		if !e.running && !s.Kept {
			left.Add(amount(s.Live))
		}
		if left.Blocks > 0 {
			p := place
			p.Amount, p.Largest, p.Oldest = left, s.LeftLargest*banks, s.LeftOldest
			p.Quarters = slices.Clone(s.LeftQuarters[:])
			if !e.running && s.Live.Blocks > 0 {
				oldest(&p, e.ledger, n, banks, s.Left.Blocks > 0)
				p.Quarters = runs.AddQuarters(p.Quarters, liveQuarters(e.ledger, n))
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
	sorted.Stable(out.AtPeak, runs.Larger)
	sorted.Stable(out.LeftBy, runs.Larger)
}

// oldest notes the age and size of blocks that were live when the process ended.
func oldest(p *runs.Place, l *ledgerfile.Ledger, site int, banks uint64, known bool) {
	for i := range l.Blocks {
		x := &l.Blocks[i]
		if x.Site != site {
			continue
		}
		p.Largest = max(p.Largest, x.Bytes*banks)
		if !known || x.Born.Before(p.Oldest) {
			p.Oldest, known = x.Born, true
		}
	}
}

// merge adds another process. What one process has to itself stays as it is; of a
// place that several used at once the peak is what was seen of the sum, or more.
func (a *account) merge(x *account, seen map[chipPool]peak) {
	for at, p := range x.pools {
		if a.pools[at] == nil {
			c, own := *p, *p.Blocks
			own.LeftBy, own.Places = slices.Clone(own.LeftBy), slices.Clone(own.Places)
			c.Blocks = &own
			a.pools[at] = &c
			continue
		}
		a.pools[at].add(p, seen[chipPool{at.Chip, at.Pool}])
	}
	for device, works := range x.works {
		a.works[device] = append(a.works[device], works...)
	}
	for device, s := range x.open {
		a.open[device] = a.open[device].join(s)
	}
	maps.Copy(a.logical, x.logical)
}

// add adds what another process held at the same place. seen is the most that was seen
// of the sum.
func (p *pool) add(x *pool, seen peak) {
	bound, most := max(model.ParseBound(p.PeakBound), model.ParseBound(x.PeakBound)), max(p.most(), x.most())
	if x.from.Before(p.to) && p.from.Before(x.to) { // at once
		bound, most = max(bound, model.AtLeast), p.most()+x.most()
	}
	if bound == model.Exact || p.most() == 0 || x.most() == 0 {
		most = 0
	}
	if x.Peak > p.Peak {
		p.Peak, p.PeakAt, p.Blocks.AtPeak = x.Peak, x.PeakAt, x.Blocks.AtPeak
	}
	if seen.bytes > p.Peak {
		p.Peak, p.PeakAt, p.Blocks.AtPeak = seen.bytes, seen.at, nil
	}
	p.PeakBound, p.PeakMost, p.span = bound.String(), most, p.join(x.span)
	p.Blocks.Capacity = max(p.Blocks.Capacity, x.Blocks.Capacity)
	addAmounts(p.Blocks, x.Blocks)
	p.Blocks.LeftBy, p.Blocks.Places = append(p.Blocks.LeftBy, x.Blocks.LeftBy...), append(p.Blocks.Places, x.Blocks.Places...)
	sorted.Stable(p.Blocks.LeftBy, runs.Larger)
	p.Held, p.HeldBound = p.Blocks.Held.Bytes, p.PeakBound
}

// most is what the peak was at most; 0: not known.
func (p *pool) most() uint64 {
	if p.PeakBound == model.Exact.String() {
		return p.Peak
	}
	return p.PeakMost
}

func addAmounts(sum, x *runs.Blocks) {
	sum.Allocated.Add(x.Allocated)
	sum.Held.Add(x.Held)
	sum.Left.Add(x.Left)
	sum.Grown.Add(x.Grown)
	sum.Failed += x.Failed
}

// everywhere is what was held on all devices together.
func (a *account) everywhere() map[string]runs.Pool {
	out := map[string]runs.Pool{}
	for at, p := range a.pools {
		if at.Device == model.AllDevices {
			out[at.Pool.String()] = p.Pool
		}
	}
	return out
}

// devices are what was held on each device and chip, and what they did.
func (a *account) devices() []runs.Device {
	out := []runs.Device{}
	for _, at := range slices.SortedFunc(maps.Keys(a.pools), blocks.LedgerPlace.Compare) {
		if at.Device == model.AllDevices {
			continue
		}
		d, p := a.device(&out, at.Device), a.pools[at]
		switch {
		case at.Chip == 0 && d.ChipID == "": // else its only chip says the same, and more
			d.Pools[at.Pool.String()] = p.Pool
		case at.Chip == 0:
		case d.ChipID != "":
			d.Pools[at.Pool.String()] = p.Pool
		default:
			a.chip(d, at.Chip).Pools[at.Pool.String()] = p.Pool
			if sum, ok := d.Pools[at.Pool.String()]; ok && sum.Peak < p.Peak { // of processes at once that were seen on the chip only
				sum.Peak, sum.PeakAt = p.Peak, p.PeakAt
				d.Pools[at.Pool.String()] = sum
			}
		}
	}
	for _, device := range slices.Sorted(maps.Keys(a.works)) {
		a.device(&out, device).Work = a.works[device]
	}
	for i := range out {
		slices.SortStableFunc(out[i].Chips, func(x, y runs.Chip) int { return cmp.Compare(number(x.Logical), number(y.Logical)) })
	}
	return out
}

func number(n *int) int {
	if n == nil {
		return -1
	}
	return *n
}

// device finds the account of a device, or adds one.
func (a *account) device(list *[]runs.Device, index int) *runs.Device {
	at, found := slices.BinarySearchFunc(*list, index, func(d runs.Device, index int) int { return cmp.Compare(d.Index, index) })
	if found {
		return &(*list)[at]
	}
	x := runs.NewDevice(a.host, index)
	if s := a.open[index]; s.to.After(s.from) {
		x.Open = s.to.Sub(s.from).Seconds()
	}
	*list = slices.Insert(*list, at, x)
	return &(*list)[at]
}

// chip finds the account of a chip, or adds one.
func (a *account) chip(d *runs.Device, id uint64) *runs.Chip {
	c := runs.Chip{Pools: map[string]runs.Pool{}}
	if id != blocks.UnknownChip {
		c.ID = strconv.FormatUint(id, 10)
	}
	for i := range d.Chips {
		if d.Chips[i].ID == c.ID {
			return &d.Chips[i]
		}
	}
	if _, chip := a.host.Chip(id); chip != nil {
		c.Name = chip.Name
	}
	if n, known := a.logical[id]; known {
		c.Logical = &n
	}
	d.Chips = append(d.Chips, c)
	return &d.Chips[len(d.Chips)-1]
}
