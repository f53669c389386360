package track

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/hostfs/proc"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// process is the live process behind a ledger; the same one while neither changes.
func (r *Reader) process(f *file, pid int) *Process {
	if f.result != nil && f.holder == pid {
		return f.result
	}
	if f.holder != pid {
		f.holder, f.start = pid, 0
		if st, err := proc.ReadStat(r.opts.Root, pid); err == nil {
			f.start = st.Start
		}
	}
	f.result = &Process{PID: pid, Start: f.start, Path: f.path, Ledger: f.ledger, State: State(f.ledger, pid, f.start)}
	return f.result
}

// State is a ledger in the terms of internal/book/blocks: its open lists, by
// allocator. The numbers of tags and sites in it are those of the ledger's sites.
func State(l *ledgerfile.Ledger, pid int, start uint64) *blocks.Process {
	p := &blocks.Process{PID: pid, Start: start, Late: l.Flags&ledgerfile.Late != 0, Lost: l.Lost}
	lists := make([]*blocks.List, len(l.Lists))
	groups := map[uint32]*blocks.Allocator{}
	for i := range l.Lists {
		x := &l.Lists[i]
		pool, ok := blocks.PoolOf(x.Pool)
		if x.State != ledgerfile.Open || !ok {
			continue
		}
		lists[i] = blocks.FromLedger(x, pool)
		a := groups[x.Group]
		if a == nil {
			a = &blocks.Allocator{ID: uint64(x.Group)}
			if x.SubDevice > 0 {
				n := int(x.SubDevice - 1)
				a.SubDevice = &n
			}
			groups[x.Group] = a
			p.Allocators = append(p.Allocators, a)
		}
		for _, n := range x.Chips {
			if id := l.Chips[n].ID; !slices.Contains(a.Chips, id) {
				a.Chips = append(a.Chips, id)
			}
		}
		a.Lists = append(a.Lists, lists[i])
	}
	slices.SortFunc(p.Allocators, func(a, b *blocks.Allocator) int { return cmp.Compare(a.ID, b.ID) })
	onlyChip(l, p)
	number(l, p, lists)
	fill(l, lists)
	for i, list := range lists {
		if list != nil && l.Lists[i].Peak.Bytes > list.Peak.BankBytes {
			list.Peak.BankBytes = l.Lists[i].Peak.Bytes
			list.Peak.BankAt = l.Lists[i].PeakTime.UnixNano()
		}
	}
	return p
}

// number gives lists of L1 that is given out core by core their numbers: an allocator
// makes them in order. The order of those that were met late is not known.
func number(l *ledgerfile.Ledger, p *blocks.Process, lists []*blocks.List) {
	cores := map[uint32]bool{}
	for _, a := range p.Allocators {
		cores[uint32(a.ID)] = a.PerCore()
	}
	for i, list := range lists {
		if x := &l.Lists[i]; list != nil && list.Pool == model.L1 && cores[x.Group] && !x.Late {
			list.Nth = x.Nth + 1
		}
	}
}

// fill puts the blocks into their lists, by age: where a damaged ledger has
// two over each other, the younger one counts and the list is unsure.
func fill(l *ledgerfile.Ledger, lists []*blocks.List) {
	order := make([]int32, len(l.Blocks))
	for i := range order {
		order[i] = int32(i)
	}
	slices.SortFunc(order, func(a, b int32) int {
		x, y := &l.Blocks[a], &l.Blocks[b]
		return cmp.Or(x.Born.Compare(y.Born), cmp.Compare(x.Address, y.Address))
	})
	for _, i := range order {
		b := &l.Blocks[i]
		list := lists[l.Sites[b.Site].List]
		if list == nil {
			continue
		}
		at := int64(0)
		if !b.Born.IsZero() {
			at = b.Born.UnixNano()
		}
		list.Alloc(blocks.Block{Addr: b.Address, Size: b.Bytes, Asked: b.Asked, Born: at, Site: uint32(b.Site)})
	}
}

// onlyChip gives allocators of which no chip is known the one that the process
// has, if there is no other: tt-metal does not account for what threads other
// than the first allocate (0.72 and later), and the chips are learned from that.
func onlyChip(l *ledgerfile.Ledger, p *blocks.Process) {
	if len(l.Chips) != 1 {
		return
	}
	for _, a := range p.Allocators {
		if len(a.Chips) == 0 {
			a.Chips = []uint64{l.Chips[0].ID}
		}
	}
}
