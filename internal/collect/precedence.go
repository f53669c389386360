package collect

import (
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/book/claim"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/track"
)

// This file decides which source is believed, for figures and for blocks, by
// claim.Rank: two are never added.

// Allocators is what one source knows of the allocators of a process.
type Allocators struct {
	Source  model.Source
	Process *blocks.Process
	// Ledger is what Process was made of, with tags and call sites; nil where
	// the process keeps none.
	Ledger *track.Process
}

// Best chooses among what sources know of the allocators of one process, by
// the rule of the join; ok is false for an empty list.
func Best(list ...Allocators) (best Allocators, ok bool) {
	for _, a := range list {
		if !ok || claim.Rank(a.Source, !a.Process.Complete()) < claim.Rank(best.Source, !best.Process.Complete()) {
			best, ok = a, true
		}
	}
	return best, ok
}

// Ledgers are the processes that keep a ledger, as of the last Collect. Immutable.
func (c *Collector) Ledgers() []track.Process {
	if keepers := c.keepers.Load(); keepers != nil {
		return *keepers
	}
	return nil
}

// Blocks finds the allocators of a process: those of its ledger as of the last
// Collect, or what another source sees. It does not wait for a Collect that is
// under way.
func (c *Collector) Blocks(pid int) (Allocators, bool) {
	var list []Allocators
	if keepers := c.keepers.Load(); keepers != nil {
		for i := range *keepers {
			if p := &(*keepers)[i]; p.PID == pid {
				list = append(list, Allocators{Source: model.FromTrack, Process: p.State, Ledger: p})
			}
		}
	}
	for _, s := range c.sources {
		if s.Find == nil {
			continue
		}
		if a, ok := s.Find(pid); ok {
			list = append(list, a)
		}
	}
	return Best(list...)
}

// choose decides which source speaks for a process. Where another one knows a
// pool better, merge takes that pool from it.
func (j *join) choose(id model.ProcessID) {
	best, bestRank := model.Source(""), 0
	for _, source := range claim.Ranks {
		n, partial := 0, false
		for i := range j.held[id] {
			if h := &j.held[id][i]; h.source == source && (!h.refused || !j.others(id, source)) {
				n++
				partial = partial || h.Partial
			}
		}
		if r := claim.Rank(source, partial); n > 0 && (best == "" || r < bestRank) {
			best, bestRank = source, r
		}
	}
	j.chosen[id] = best
}

// others reports whether another source than the given one, that is believed,
// speaks for a process.
func (j *join) others(id model.ProcessID, source model.Source) bool {
	return slices.ContainsFunc(j.held[id], func(h holding) bool { return h.source != source && !h.refused })
}

// merge takes from other sources the pools that they know better than the
// chosen one, chip by chip: circular buffers of which an allocator knows
// nothing, or the pool of a process that was found late, and was read whole
// when it was next used.
func (j *join) merge(id model.ProcessID) {
	list := j.held[id]
	for i := range list {
		h := &list[i]
		if h.source != j.chosen[id] || h.refused || h.at.device == noPlace {
			continue
		}
		var others []*claim.Held
		for k := range list {
			o := &list[k]
			if o.source != h.source && !o.refused && o.at == h.at && !o.Chip.OnDevice && !o.Chip.Some {
				others = append(others, o.Held)
			}
		}
		h.Held = mergePools(h.Held, others)
	}
}

// mergePools is h with the pools that others know better. It has the doubts of
// the claims that it is made of: those of a claim that was set aside are about
// figures that are not shown.
func mergePools(h *claim.Held, others []*claim.Held) *claim.Held {
	var from [model.NumPools]*claim.Held
	taken := false
	for _, pool := range model.Pools() {
		from[pool] = h
		for _, o := range others {
			if knowsBetter(o, from[pool], pool) {
				from[pool], taken = o, true
			}
		}
	}
	if !taken {
		return h
	}
	merged := *h
	pools := claim.Pools{}
	if h.Pools != nil {
		pools = *h.Pools
	}
	for _, pool := range model.Pools() {
		o := from[pool]
		if o == h {
			continue
		}
		merged.Bytes[pool] = bytesIn(o, pool)
		switch {
		case pool == model.CB:
			merged.CB = o.CB
			continue
		case o.Pools != nil:
			pools[pool] = o.Pools[pool]
		default:
			pools[pool] = claim.Pool{}
		}
		merged.Pools = &pools
	}
	merged.Doubts, merged.Partial = nil, false
	for _, c := range append([]*claim.Held{h}, others...) {
		buffers, more := contributes(c, &from)
		if !buffers && !more {
			continue
		}
		for _, d := range c.Doubts {
			if more || !d.Kind.Row().Quiet { // circular buffers are unsure in every release, for reasons of their own
				merged.Doubts = model.AddDoubts(merged.Doubts, d)
			}
		}
		merged.Partial = merged.Partial || c.Partial
	}
	return &merged
}

// contributes reports whether a claim is the one that is believed about circular
// buffers, and about some other pool, and says anything of it.
func contributes(c *claim.Held, from *[model.NumPools]*claim.Held) (buffers, more bool) {
	for pool, o := range from {
		switch {
		case o != c || c.Bytes[pool].Status() == model.Absent && (c.Pools == nil || !c.Pools[pool].Occupied.Known()):
		case model.Pool(pool) == model.CB:
			buffers = true
		default:
			more = true
		}
	}
	return buffers, more
}

// knowsBetter reports whether o is to be believed about a pool, and not h. A
// pool that was read whole says more than what is merely counted.
func knowsBetter(o, h *claim.Held, pool model.Pool) bool {
	_, bound, known := h.Bytes[pool].Best()
	if known && bound == model.Exact && !h.Partial {
		return false
	}
	if o.Pools != nil && o.Pools[pool].Whole && (h.Pools == nil || !h.Pools[pool].Whole) && bytesIn(o, pool).Known() {
		return true
	}
	return better(bytesIn(o, pool), bytesIn(h, pool))
}

// bytesIn is what a claim says of a pool; one that is known not to be all that
// the process holds is a lower bound.
func bytesIn(h *claim.Held, pool model.Pool) model.Bytes {
	if h.Partial {
		return h.Bytes[pool].Doubted(model.AtLeast)
	}
	return h.Bytes[pool]
}

// better reports whether a says more than b about one quantity: an exact figure
// more than one in doubt, and a lower bound more than anything in doubt that is
// no higher.
func better(a, b model.Bytes) bool {
	n, an, known := a.Best()
	m, bn, other := b.Best()
	switch {
	case !known || !other:
		return known && !other
	case an == model.Exact || bn == model.Exact:
		return an == model.Exact && bn != model.Exact
	case an == model.AtLeast:
		return n >= m && !(bn == model.AtLeast && n == m)
	case bn == model.AtLeast:
		return n > m
	}
	return false
}
