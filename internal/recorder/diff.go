package recorder

import (
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// placeOf returns the tag, the number and the lines of a site of the producer.
type placeOf func(site uint32) (tag string, node uint32, stack []ledgerfile.Frame)

// diff records the difference between what a process holds now and at the last poll.
// New blocks have their own time; those that are gone were freed by now.
func (r *Recorder) diff(p *process, state *blocks.Process, place placeOf, now time.Time) {
	seen := map[uint64]bool{}
	for _, a := range state.Allocators {
		for i, x := range a.Lists {
			key := a.ID<<8 | uint64(i)
			seen[key] = true
			l := p.lists[key]
			if l == nil {
				l = &list{live: map[uint64]blocks.Block{}, def: recording.List{
					Process: p.def.ID, Allocator: a.ID, Pool: x.Pool.String(), Geometry: x.Geometry, Cut: x.Cut, Late: x.Origin == blocks.Late,
				}}
				r.lastID++
				l.def.ID, l.def.Chips = r.lastID, slices.Clone(a.Chips)
				p.lists[key] = l
				r.changed(l, r.begun) // its blocks may be older than this poll
			} else if !slices.Equal(l.def.Chips, a.Chips) || l.def.Cut != x.Cut {
				l.def.Chips, l.def.Cut = slices.Clone(a.Chips), x.Cut
				r.changed(l, now)
			}
			r.compare(p, l, x, place, now)
		}
	}
	for key, l := range p.lists {
		if !seen[key] {
			r.add(item{at: now, kind: recording.KindClosed, id: l.def.ID})
			delete(p.lists, key)
		}
	}
}

func (r *Recorder) compare(p *process, l *list, x *blocks.List, place placeOf, now time.Time) {
	there := make(map[uint64]blocks.Block, len(l.live))
	for b := range x.All() {
		there[b.Addr] = b
	}
	for _, addr := range slices.Sorted(maps.Keys(l.live)) {
		if b, ok := there[addr]; !ok || b != l.live[addr] {
			at := now
			if ok { // another one is in its place: it was gone when that came
				at = allocatedAt(b, now)
			}
			r.add(item{at: at, kind: recording.KindFree, id: l.def.ID, block: blocks.Block{Addr: addr}})
		}
	}
	for b := range x.All() {
		if b == l.live[b.Addr] {
			continue
		}
		out := b
		if out.Site, out.Tag = 0, 0; place != nil && b.Site != 0 {
			tag, node, stack := place(b.Site)
			out.Site = r.site(p, allocatedAt(b, now), tag, node, func() []ledgerfile.Frame { return stack })
		}
		r.add(item{at: allocatedAt(b, now), kind: recording.KindAlloc, id: l.def.ID, block: out})
	}
	l.live = there
}

// allocatedAt is when a block came, as far as that can be.
func allocatedAt(b blocks.Block, now time.Time) time.Time {
	if at := time.Unix(0, b.Born); b.Born > 0 && at.Before(now) {
		return at
	}
	return now
}

// resync makes what is recorded of a process equal to a copy of its ledger.
// What was recorded is in the encoder, once all that waits is written.
func (r *Recorder) resync(p *process, l *ledgerfile.Ledger, now time.Time) {
	if err := r.Flush(now); err != nil {
		return // the next write tells
	}
	known := map[uint64]*list{}
	for i := range l.Lists {
		x := &l.Lists[i]
		pool, ok := blocks.PoolOf(x.Pool)
		if x.State != ledgerfile.Open || !ok {
			continue
		}
		known[uint64(i)] = r.relist(p, l, i, pool, now)
	}
	for n, old := range p.lists {
		if known[n] != old && old.def.ID != 0 {
			r.add(item{at: now, kind: recording.KindClosed, id: old.def.ID})
		}
	}
	p.lists = known
	there := map[uint64]map[uint64]ledgerfile.Block{}
	for _, b := range l.Blocks {
		n := uint64(l.Sites[b.Site].List)
		if there[n] == nil {
			there[n] = map[uint64]ledgerfile.Block{}
		}
		there[n][b.Address] = b
	}
	for n, list := range known {
		r.realign(p, list, l, there[n], now)
	}
}

// relist is the list of a copy: the one that was known, if it is the same one.
func (r *Recorder) relist(p *process, l *ledgerfile.Ledger, n int, pool model.Pool, now time.Time) *list {
	x := &l.Lists[n]
	g := blocks.Geometry{Pool: pool, Banks: uint64(x.Banks), Base: x.Base, Capacity: x.Capacity, Align: x.Alignment, Smallest: x.Smallest}
	old := p.lists[uint64(n)]
	if old == nil || old.def.ID == 0 || old.group != x.Group || old.def.Geometry != g {
		r.lastID++
		old = &list{group: x.Group, def: recording.List{ID: r.lastID, Process: p.def.ID, Allocator: uint64(x.Group), Pool: pool.String(), Geometry: g, Late: x.Late}}
	}
	old.def.Cut, old.def.Chips = x.CutLow, nil
	for _, c := range x.Chips {
		old.def.Chips = append(old.def.Chips, l.Chips[c].ID)
	}
	r.changed(old, now)
	return old
}

func (r *Recorder) realign(p *process, l *list, from *ledgerfile.Ledger, there map[uint64]ledgerfile.Block, now time.Time) {
	recorded := map[uint64]bool{}
	if live := r.out.Live(l.def.ID); live != nil {
		for b := range live.All() {
			if x, ok := there[b.Addr]; ok && x.Bytes == b.Size && x.Born.UnixNano() == b.Born {
				recorded[b.Addr] = true
				continue
			}
			r.add(item{at: now, kind: recording.KindFree, id: l.def.ID, block: blocks.Block{Addr: b.Addr}})
		}
	}
	for _, addr := range slices.Sorted(maps.Keys(there)) {
		if recorded[addr] {
			continue
		}
		x := there[addr]
		b := blocks.Block{Addr: addr, Size: x.Bytes, Asked: x.Asked}
		site := from.Sites[x.Site]
		b.Site = r.site(p, now, site.Tag, site.Node, func() []ledgerfile.Frame { return from.Stack(site.Node) })
		r.add(item{at: now, kind: recording.KindAlloc, id: l.def.ID, block: b})
	}
}
