package export

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/blocks"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/recording"
	"github.com/ttmon/ttmon/internal/words"
)

type heldKey struct {
	process uint32
	chip    uint64
	pool    model.Pool
}

type heldSum struct {
	bytes  int64
	series *Series
	grain  grain
}

type blockKey struct {
	list uint32
	addr uint64
}

type openBlock struct {
	flow uint64
	name string
}

// liveList is a list, and the blocks of it that are held, by address.
type liveList struct {
	def    recording.List
	sums   []*heldSum // of each of its chips
	blocks map[uint64]liveBlock
}

type liveBlock struct {
	bytes uint64 // of one chip
	site  uint32
}

type tagKey struct {
	process uint32
	tag     string
}

type tagSlice struct {
	blocks int
	bytes  int64
	peak   int64
	from   int64
}

// alloc takes in a new block.
func (b *builder) alloc(s *recording.State, rec *recording.Record, ns int64) {
	l := b.live[rec.ID]
	if l == nil {
		def, _, ok := s.List(rec.ID)
		if !ok {
			return
		}
		def.Chips = b.chips[rec.ID]
		l = &liveList{def: def, sums: b.sums(s, &def), blocks: map[uint64]liveBlock{}}
		b.live[rec.ID] = l
	}
	b.free(s, rec.ID, rec.Block.Addr, ns) // its end was missed
	bytes := bytesOf(&l.def, rec.Block)
	b.change(l, int64(bytes), ns)
	l.blocks[rec.Block.Addr] = liveBlock{bytes, rec.Block.Site}
	site, _ := s.Site(rec.Block.Site)
	if site.Tag != "" {
		b.tag(l.def.Process, site.Tag, int64(bytes), ns)
	}
	if b.o.Large > 0 && bytes >= b.o.Large {
		b.large(rec, l, &site, bytes, ns)
	}
}

// large emits one block.
func (b *builder) large(rec *recording.Record, l *liveList, site *recording.Site, bytes uint64, ns int64) {
	b.flows++
	name := words.Bytes(bytes) + " of " + l.def.Pool
	args := []Arg{{"address", fmt.Sprintf("%#x", rec.Block.Addr)}, {"bytes", strconv.FormatUint(bytes, 10)}}
	if site.Tag != "" {
		args = append(args, Arg{"tag", words.Escape(site.Tag)})
	}
	if f, ok := site.Where(); ok {
		name += words.Escape(fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line))
		args = append(args, Arg{"line", words.Escape(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function))})
	}
	b.open[blockKey{rec.ID, rec.Block.Addr}] = openBlock{b.flows, name}
	b.to.Instant(&Instant{Group: b.groupOf(l.def.Process), Track: "large blocks", Name: "alloc " + name, NS: ns, Flow: b.flows, Args: args})
}

// bytesOf is what a block takes from one chip.
func bytesOf(l *recording.List, x blocks.Block) uint64 { return x.Size * max(l.Geometry.Banks, 1) }

// free takes in that a block is gone.
func (b *builder) free(s *recording.State, list uint32, addr uint64, ns int64) {
	l := b.live[list]
	if l == nil {
		return
	}
	x, ok := l.blocks[addr]
	if !ok {
		return
	}
	delete(l.blocks, addr)
	b.change(l, -int64(x.bytes), ns)
	if site, ok := s.Site(x.site); ok && site.Tag != "" {
		b.tag(l.def.Process, site.Tag, -int64(x.bytes), ns)
	}
	key := blockKey{list, addr}
	if o, ok := b.open[key]; ok {
		delete(b.open, key)
		b.to.Instant(&Instant{Group: b.groupOf(l.def.Process), Track: "large blocks", Name: "free " + o.name, NS: ns, Flow: o.flow, FlowEnd: true})
	}
}

// clear takes in that a list gave up all its blocks.
func (b *builder) clear(s *recording.State, list uint32, ns int64) {
	if l := b.live[list]; l != nil {
		for _, addr := range slices.Sorted(maps.Keys(l.blocks)) {
			b.free(s, list, addr, ns)
		}
	}
}

func (b *builder) groupOf(process uint32) Group {
	if p := b.processes[process]; p != nil {
		return p.group
	}
	return host
}

// change moves what a process holds, on each chip of a list.
func (b *builder) change(l *liveList, by, ns int64) {
	for _, h := range l.sums {
		h.bytes += by
		if !h.grain.some {
			b.moved = append(b.moved, h)
		}
		h.grain.add(Point{ns, float64(h.bytes)})
	}
}

// sums are the counters that the blocks of a list are added to: one for each of
// its chips, or one for all if they are not known.
func (b *builder) sums(s *recording.State, def *recording.List) (out []*heldSum) {
	for _, chip := range def.Chips {
		out = append(out, b.sum(s, def, chip, true))
	}
	if len(out) == 0 {
		out = append(out, b.sum(s, def, 0, false))
	}
	return out
}

func (b *builder) sum(s *recording.State, def *recording.List, chip uint64, known bool) *heldSum {
	key := heldKey{def.Process, chip, def.Geometry.Pool}
	if h := b.held[key]; h != nil {
		return h
	}
	name := "chip " + strconv.FormatUint(chip, 10)
	if !known {
		name = "a chip that is not known"
	}
	h := &heldSum{series: &Series{
		Group: b.groupOf(def.Process), Name: fmt.Sprintf("%s, exact, %s", words.PoolName(def.Geometry.Pool), name), Field: def.Pool + ".blocks", Unit: "B",
		Labels: map[string]string{"pool": def.Pool},
	}}
	if known {
		h.series.Labels["chip_id"] = strconv.FormatUint(chip, 10)
	}
	if p, ok := s.Process(def.Process); ok {
		h.series.Labels["pid"] = strconv.Itoa(p.PID)
	}
	b.held[key] = h
	return h
}

// tag keeps the slice of a tag: as long as anything is held under it.
func (b *builder) tag(process uint32, tag string, by, ns int64) {
	key := tagKey{process, tag}
	x := b.tags[key]
	if x == nil {
		x = &tagSlice{}
		b.tags[key] = x
	}
	if x.blocks == 0 {
		x.from, x.peak = ns, 0
	}
	x.bytes += by
	x.peak = max(x.peak, x.bytes)
	if by > 0 {
		x.blocks++
		return
	}
	if x.blocks--; x.blocks == 0 {
		b.endTag(key, x, ns)
	}
}

func (b *builder) endTag(key tagKey, x *tagSlice, ns int64) {
	name := words.Escape(key.tag)
	b.to.Slice(&Slice{
		Group: b.groupOf(key.process), Track: "tag " + name, Name: name, From: x.from, To: ns,
		Args: []Arg{{"at most", words.Bytes(uint64(max(x.peak, 0)))}},
	})
	delete(b.tags, key)
}

// drop ends a process and all that it held.
func (b *builder) drop(s *recording.State, id uint32, ns int64) {
	for _, list := range slices.Sorted(maps.Keys(b.live)) {
		if b.live[list].def.Process == id {
			b.clear(s, list, ns)
			delete(b.live, list)
		}
	}
	if p := b.processes[id]; p != nil && p.open {
		p.open = false
		b.process(p, ns)
	}
}
