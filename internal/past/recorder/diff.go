package recorder

import (
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/blocks/changes"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
	"github.com/ttmon/ttmon/lib/ledgerfile"
)

// holding is a list of a process, as a source has it at one moment.
type holding struct {
	def    recording.List // without the numbers of the recording
	group  uint32         // of a ledger's
	blocks iter.Seq[blocks.Block]
}

// placeOf returns the tag, the number and the lines of a site of the source.
type placeOf func(site uint32) (tag string, node uint32, stack []ledgerfile.Frame)

// align makes what is recorded of a process equal to what it holds now, by the source's
// numbers of its lists. since is the earliest that this can have been so. New blocks
// have their own time; those that are gone were freed by now.
func (r *Recorder) align(p *process, lists map[uint64]holding, place placeOf, since, now time.Time) {
	for _, n := range slices.Sorted(maps.Keys(p.lists)) {
		l := p.lists[n]
		if h, there := lists[n]; there && l.def.ID != 0 && l.group == h.group && l.def.Geometry == h.def.Geometry {
			continue
		}
		if l.def.ID != 0 {
			r.add(item{at: now, kind: recording.KindClosed, id: l.def.ID})
		}
		delete(p.lists, n)
	}
	for _, n := range slices.Sorted(maps.Keys(lists)) {
		h := lists[n]
		if l := p.lists[n]; l == nil {
			r.lastID++
			l = &list{group: h.group, def: h.def}
			l.def.ID, l.def.Process = r.lastID, p.def.ID
			p.lists[n] = l
			r.changed(l, since) // its blocks may be older than now
		} else if !slices.Equal(l.def.Chips, h.def.Chips) || l.def.Cut != h.def.Cut {
			l.def.Chips, l.def.Cut = h.def.Chips, h.def.Cut
			r.changed(l, now)
		}
		r.alignBlocks(p, p.lists[n], h, place, since, now)
	}
}

func (r *Recorder) alignBlocks(p *process, l *list, h holding, place placeOf, since, now time.Time) {
	recorded, there := l.live, map[uint64]blocks.Block{}
	if live := r.out.Live(l.def.ID); recorded == nil && live != nil {
		recorded = map[uint64]blocks.Block{}
		for b := range live.All() {
			recorded[b.Addr] = b
		}
	}
	for b := range h.blocks {
		there[b.Addr] = b
	}
	at := func(b blocks.Block) time.Time {
		if born := time.Unix(0, b.Born); b.Born > 0 && born.Before(now) && born.After(since) {
			return born
		} else if b.Born > 0 && born.Before(now) {
			return since
		}
		return now
	}
	for _, addr := range slices.Sorted(maps.Keys(recorded)) {
		b, ok := there[addr]
		if ok && isSame(recorded[addr], b) {
			continue
		}
		gone := now
		if ok { // another one is in its place: it was gone when that came
			gone = at(b)
		}
		r.add(item{at: gone, kind: recording.KindFree, id: l.def.ID, block: blocks.Block{Addr: addr}})
	}
	for _, addr := range slices.Sorted(maps.Keys(there)) {
		b := there[addr]
		if old, ok := recorded[addr]; ok && isSame(old, b) {
			continue
		}
		out := b
		if out.Site, out.Tag = 0, 0; place != nil && b.Site != 0 {
			tag, node, stack := place(b.Site)
			out.Site = r.site(p, at(b), tag, node, func() []ledgerfile.Frame { return stack })
		}
		r.add(item{at: at(b), kind: recording.KindAlloc, id: l.def.ID, block: out})
	}
	if p.def.Method == recording.BySampling {
		l.live = there
	}
}

// isSame reports whether a block that is recorded is the one that is at its address now.
// It may have been recorded later than it was allocated, and never earlier.
func isSame(recorded, now blocks.Block) bool {
	return recorded.Size == now.Size && recorded.Asked == now.Asked && now.Born <= recorded.Born
}

// poll records what a process holds that is asked now and then.
func (r *Recorder) poll(p *process, state *blocks.Process, place placeOf, now time.Time) {
	lists := map[uint64]holding{}
	for _, a := range state.Allocators {
		for i, x := range a.Lists {
			lists[a.ID<<8|uint64(i)] = holding{blocks: x.All(), def: recording.List{
				Allocator: a.ID, Pool: x.Pool.String(), Geometry: x.Geometry, Cut: x.Cut, Late: x.Origin == blocks.Late, Chips: slices.Clone(a.Chips),
			}}
		}
	}
	r.align(p, lists, place, r.begun, now)
}

// placesIn are the sites of a ledger.
func placesIn(l *ledgerfile.Ledger) placeOf {
	return func(site uint32) (string, uint32, []ledgerfile.Frame) {
		s := &l.Sites[site]
		return s.Tag, s.Node, l.Stack(s.Node)
	}
}

// resync makes what is recorded of a process equal to a copy of its ledger, events of
// which were missed. What was recorded is in the encoder, once all that waits is written.
func (r *Recorder) resync(p *process, l *ledgerfile.Ledger, now time.Time) {
	if err := r.Flush(now); err != nil {
		return // the next write tells
	}
	held := map[uint64][]blocks.Block{}
	for _, b := range l.Blocks {
		n := uint64(l.Sites[b.Site].List)
		held[n] = append(held[n], blocks.Block{Addr: b.Address, Size: b.Bytes, Asked: b.Asked, Born: b.Born.UnixNano(), Site: uint32(b.Site)})
	}
	lists := map[uint64]holding{}
	for i := range l.Lists {
		x := &l.Lists[i]
		if pool, ok := blocks.PoolOf(x.Pool); ok && x.State == ledgerfile.Open {
			lists[uint64(i)] = holding{listOf(l, x, pool), x.Group, slices.Values(held[uint64(i)])}
		}
	}
	r.align(p, lists, placesIn(l), now, now)
}

// listOf is a list of a ledger, without the numbers of the recording.
func listOf(l *ledgerfile.Ledger, x *ledgerfile.List, pool model.Pool) recording.List {
	def := recording.List{
		Allocator: uint64(x.Group), Pool: pool.String(), Cut: x.CutLow, Late: x.Late,
		Geometry: blocks.Geometry{Pool: pool, Banks: uint64(x.Banks), Base: x.Base, Capacity: x.Capacity, Align: x.Alignment, Smallest: x.Smallest},
	}
	for _, c := range x.Chips {
		def.Chips = append(def.Chips, l.Chips[c].ID)
	}
	return def
}

// realign makes what is recorded of a process equal to a state that a ttmond sent, since
// a time.
func (r *Recorder) realign(p *process, s *changes.State, since, now time.Time) {
	lists := map[uint64]holding{}
	for i := range s.Lists {
		h := &s.Lists[i]
		lists[uint64(h.ID)] = holding{def: definition(&h.List), blocks: slices.Values(h.Blocks)}
	}
	r.align(p, lists, nil, since, now)
}

// definition is a list that a ttmond sent, without the numbers of the recording.
func definition(l *changes.List) recording.List {
	return recording.List{Allocator: l.Allocator, Pool: l.Pool, Geometry: l.Geometry, Cut: l.Cut, Late: l.Late, Chips: l.Chips}
}
