package export

import (
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/past/recording"
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

// move takes in that a block came, or is gone.
func (b *builder) move(s *recording.State, m *recording.Move, ns int64) {
	bytes := int64(m.BytesOfChip())
	if m.Gone {
		bytes = -bytes
	}
	b.change(b.sums(s, m.List), bytes, ns)
	site, _ := s.Site(m.Block.Site)
	if site.Tag != "" {
		b.tag(m.List.Process, site.Tag, bytes, ns)
	}
	key := blockKey{m.List.ID, m.Block.Addr}
	if o, ok := b.open[key]; ok && m.Gone {
		delete(b.open, key)
		b.to.Instant(&Instant{Group: b.groupOf(m.List.Process), Track: "large blocks", Name: "free " + o.name, NS: ns, Flow: o.flow, FlowEnd: true})
	}
	if !m.Gone && b.o.Large > 0 && m.BytesOfChip() >= b.o.Large {
		b.large(m, &site, ns)
	}
}

// large emits one block.
func (b *builder) large(m *recording.Move, site *recording.Site, ns int64) {
	b.flows++
	name := words.Bytes(m.BytesOfChip()) + " of " + m.List.Pool
	args := []Arg{{"address", fmt.Sprintf("%#x", m.Block.Addr)}, {"bytes", strconv.FormatUint(m.BytesOfChip(), 10)}}
	if site.Tag != "" {
		args = append(args, Arg{"tag", words.Escape(site.Tag)})
	}
	if f, ok := site.Where(); ok {
		name += words.Escape(fmt.Sprintf(" at %s:%d", filepath.Base(f.File), f.Line))
		args = append(args, Arg{"line", words.Escape(fmt.Sprintf("%s:%d %s", f.File, f.Line, f.Function))})
	}
	b.open[blockKey{m.List.ID, m.Block.Addr}] = openBlock{b.flows, name}
	b.to.Instant(&Instant{Group: b.groupOf(m.List.Process), Track: "large blocks", Name: "alloc " + name, NS: ns, Flow: b.flows, Args: args})
}

func (b *builder) groupOf(process uint32) Group {
	if p := b.processes[process]; p != nil {
		return p.group
	}
	return host
}

// change moves what a process holds, on each chip of a list.
func (b *builder) change(sums []*heldSum, by, ns int64) {
	for _, h := range sums {
		h.bytes += by
		if !h.grain.some {
			b.moved = append(b.moved, h)
		}
		h.grain.add(Point{ns, float64(h.bytes)})
	}
}

// sums are the counters that the blocks of a list are added to: one for each of
// its chips, or one for all if they are not known.
func (b *builder) sums(s *recording.State, def *recording.List) []*heldSum {
	out := b.lists[def.ID]
	if out != nil {
		return out
	}
	for _, chip := range b.chips[def.ID] {
		out = append(out, b.sum(s, def, chip, true))
	}
	if len(out) == 0 {
		out = append(out, b.sum(s, def, 0, false))
	}
	b.lists[def.ID] = out
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

// drop ends a process.
func (b *builder) drop(id uint32, ns int64) {
	if p := b.processes[id]; p != nil && p.open {
		p.open = false
		b.process(p, ns)
	}
}
