package blocks

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
)

// CoreL1 is the L1 of a process whose allocators give it out core by core: tt-metal's
// HYBRID allocator. Each of its allocators, one per chip and one per mesh, has a list
// for all cores together and one for each core. All are views of the same addresses:
//
//	list          of a mesh                       of a chip
//	all cores     buffers at one address on       copies of its meshes' buffers
//	              all cores of all its chips
//	core k        nothing                         buffers of this core alone
//
// So nothing may be added up: what a core holds is the union of what these lists say
// of it, and a chip's use is the sum over its cores.
type CoreL1 struct {
	Geometry // of a core; Banks is how many cores a chip has
	// Chips and Meshes are ordered by age. A device that was opened alone is a mesh, too.
	Chips  []*CoreChip
	Meshes []*CoreMesh
}

// CoreChip is what a chip's own allocator gave out.
type CoreChip struct {
	ID     uint64
	Copies *List   // of the buffers of its meshes; nil: there are none
	Cores  []*List // by core; nil: it has no buffer of its own
	taken  Cover   // by the buffers of the chip's meshes, on all cores
	each   uint64  // bytes of it
	// holes are those that the copies leave, the largest first: what single cores can use.
	holes []Range
}

// CoreMesh is an allocator whose buffers lie at one address on all cores of its chips.
type CoreMesh struct {
	Allocator *Allocator
	Lockstep  *List // nil: it has no buffer
	hole      uint64
}

// PerCore is the L1 of a process with the HYBRID allocator; known is false for any
// other, and where not all of it is known.
func (p *Process) PerCore() (l *CoreL1, known bool) {
	l = &CoreL1{}
	for _, a := range p.Allocators {
		if !slices.ContainsFunc(a.Lists, func(x *List) bool { return x.Pool == model.L1 && x.sum.Blocks > 0 }) && (!a.PerCore() || len(a.Chips) == 0) {
			continue // the chips of a mesh are known from its first buffer
		}
		if !a.PerCore() || len(a.Chips) == 0 || !p.Whole(a) || !l.add(a) {
			return nil, false // also of a sub-device: how its lists lie to the others is not known
		}
	}
	if p.Lost > 0 || len(l.Chips) == 0 || l.Banks == 0 || l.Capacity == 0 {
		return nil, false
	}
	for _, m := range l.Meshes {
		if slices.ContainsFunc(m.Allocator.Chips, func(id uint64) bool { return l.Chip(id) == nil }) {
			return nil, false // its cores' buffers would be missing
		}
	}
	for _, c := range l.Chips {
		c.taken = Cover(nil).With(c.Copies)
		c.holes = c.taken.holes(l.Base, l.Base+l.Capacity)
		slices.SortStableFunc(c.holes, func(a, b Range) int { return cmp.Compare(b.Size, a.Size) })
		for _, m := range l.Meshes {
			if slices.Contains(m.Allocator.Chips, c.ID) {
				c.taken = c.taken.With(m.Lockstep)
			}
		}
		c.each = c.taken.Bytes()
	}
	for _, m := range l.Meshes {
		m.hole = l.Lockstep(m, nil)
	}
	return l, true
}

// add takes an allocator in. A chip's own is made before those of its meshes, so the
// first one of a single chip is that chip's. It returns false where its lists are not
// known, or are none that such an allocator has.
func (l *CoreL1) add(a *Allocator) bool {
	all, cores := (*List)(nil), []*List(nil)
	for _, x := range a.Lists {
		if x.Pool != model.L1 {
			continue
		}
		if l.Banks == 0 {
			l.Geometry = x.Geometry
			l.PerCore, l.Nth = true, 0
		}
		same := x.Banks == l.Banks && x.Base == l.Base && x.Capacity == l.Capacity
		if !same || x.Nth == 0 || uint64(x.Nth) > l.Banks+1 || !x.Exact() || x.Inherited || x.Cut > 0 || !x.inside() {
			return false
		}
		if x.Nth == 1 {
			if all != nil {
				return false
			}
			all = x
			continue
		}
		if cores == nil {
			cores = make([]*List, l.Banks)
		}
		if k := x.Nth - 2; cores[k] == nil {
			cores[k] = x
		} else {
			return false
		}
	}
	if len(a.Chips) == 1 && l.Chip(a.Chips[0]) == nil {
		if cores == nil {
			cores = make([]*List, l.Banks)
		}
		l.Chips = append(l.Chips, &CoreChip{ID: a.Chips[0], Copies: all, Cores: cores})
		return true
	}
	l.Meshes = append(l.Meshes, &CoreMesh{Allocator: a, Lockstep: all})
	return !slices.ContainsFunc(cores, func(x *List) bool { return x != nil && x.sum.Blocks > 0 })
}

// inside says whether all blocks lie in what the list has. To tt-metal 0.78 a buffer
// that is larger than the end of a hole is placed outside, and its list is wrong then.
func (l *List) inside() bool {
	for b := range l.All() {
		if b.Addr < l.Base || b.End() > l.Base+l.Capacity {
			return false
		}
	}
	return true
}

// Chip is a chip by its unique id; nil: none of these.
func (l *CoreL1) Chip(id uint64) *CoreChip {
	if i := slices.IndexFunc(l.Chips, func(c *CoreChip) bool { return c.ID == id }); i >= 0 {
		return l.Chips[i]
	}
	return nil
}

// Used is what the buffers on a chip take of all its cores.
func (l *CoreL1) Used(c *CoreChip) (bytes uint64) {
	for k := range c.Cores {
		bytes += l.OnCore(c, k)
	}
	return bytes
}

// OnCore is what is taken of a core of a chip.
func (l *CoreL1) OnCore(c *CoreChip, core int) uint64 {
	n := c.each
	if own := c.Cores[core]; own != nil {
		for b := range own.All() {
			n += c.taken.rest(b)
		}
	}
	return n
}

// CoreHole is the largest hole of a core of a chip: how long a buffer of this core alone
// can be. It lies nowhere where a buffer of a mesh is, whatever cores that one has.
func (l *CoreL1) CoreHole(c *CoreChip, core int) (longest uint64) {
	own := c.Cores[core]
	for _, h := range c.holes {
		if h.Size <= longest {
			break
		}
		from, to := h.Addr, h.Addr+h.Size
		if own != nil {
			for b := range own.All() {
				longest = max(longest, min(max(b.Addr, from), to)-from)
				from = min(max(from, b.End()), to)
			}
		}
		longest = max(longest, to-from)
	}
	return longest
}

// coreHoles is that of the core that has least room, and of the one that has most.
func (l *CoreL1) coreHoles(c *CoreChip) (least, most uint64) {
	least = l.Capacity
	for k := range c.Cores {
		n := l.CoreHole(c, k)
		least, most = min(least, n), max(most, n)
	}
	return least, most
}

// hole is the largest one that lists have in common.
func (l *CoreL1) hole(lists ...*List) uint64 {
	return Cover(nil).With(lists...).Gap(l.Base, l.Base+l.Capacity)
}

// Lockstep is the largest hole that some cores of all chips of a mesh have in common:
// how long a buffer at one address on these cores can be. nil are all cores.
func (l *CoreL1) Lockstep(m *CoreMesh, cores []int) uint64 {
	return l.hole(l.InTheWay(m, cores)...)
}

// InTheWay are the lists that a buffer of a mesh at one address on some cores has to
// avoid; nil are all cores.
func (l *CoreL1) InTheWay(m *CoreMesh, cores []int) []*List {
	all := []*List{m.Lockstep}
	for _, id := range m.Allocator.Chips {
		c := l.Chip(id)
		if cores == nil {
			all = append(all, c.Cores...)
		}
		for _, k := range cores {
			all = append(all, c.Cores[k])
		}
	}
	return all
}

// Holes are the largest holes of a chip, in bytes of a core: for a buffer at one
// address on all cores, of whichever of its meshes that has least room, and for one of
// a single core.
type Holes struct{ Lockstep, CoreLeast, CoreMost uint64 }

// Holes tells those of a chip.
func (l *CoreL1) Holes(c *CoreChip) (h Holes) {
	h.CoreLeast, h.CoreMost = l.coreHoles(c)
	found := false
	for _, m := range l.Meshes {
		if slices.Contains(m.Allocator.Chips, c.ID) && (!found || m.hole < h.Lockstep) {
			h.Lockstep, found = m.hole, true
		}
	}
	if !found { // the chips of a mesh are known from its first buffer
		h.Lockstep = l.hole(append(slices.Clone(c.Cores), c.Copies)...)
	}
	return h
}

// Cover is a set of addresses: ranges in order that do not touch.
type Cover []Range

// With is the union with the blocks of lists; a nil list has none.
func (c Cover) With(lists ...*List) Cover {
	all := slices.Clone(c)
	for _, l := range lists {
		if l == nil {
			continue
		}
		for b := range l.All() {
			all = append(all, Range{b.Addr, b.Size})
		}
	}
	slices.SortFunc(all, func(a, b Range) int { return cmp.Compare(a.Addr, b.Addr) })
	out := all[:0]
	for _, r := range all {
		if n := len(out); n > 0 && r.Addr <= out[n-1].Addr+out[n-1].Size {
			out[n-1].Size = max(out[n-1].Size, r.Addr+r.Size-out[n-1].Addr)
			continue
		}
		out = append(out, r)
	}
	return out
}

// Bytes is how many addresses it has.
func (c Cover) Bytes() (n uint64) {
	for _, r := range c {
		n += r.Size
	}
	return n
}

// rest is how much of a block it does not have.
func (c Cover) rest(b Block) uint64 {
	n := b.Size
	i, _ := slices.BinarySearchFunc(c, b.Addr, func(r Range, at uint64) int { return cmp.Compare(r.Addr+r.Size, at+1) })
	for _, r := range c[i:] {
		if r.Addr >= b.End() {
			break
		}
		n -= min(r.Addr+r.Size, b.End()) - max(r.Addr, b.Addr)
	}
	return n
}

// holes are the stretches between two addresses that it leaves free.
func (c Cover) holes(from, to uint64) (list []Range) {
	for _, r := range c {
		if r.Addr > from {
			list = append(list, Range{from, r.Addr - from})
		}
		from = max(from, r.Addr+r.Size)
	}
	if to > from {
		list = append(list, Range{from, to - from})
	}
	return list
}

// Gap is the longest of them.
func (c Cover) Gap(from, to uint64) (longest uint64) {
	for _, h := range c.holes(from, to) {
		longest = max(longest, h.Size)
	}
	return longest
}

// CoreBanks says which bank, and so which list, each core of a grid of so many cores
// is, row by row: tt-metal mixes them up, always the same way, with the generator and
// the shuffle of GNU's C++ library. A device that was opened with a bank map of its own
// (l1_bank_remap) has others.
func CoreBanks(cores int) []int {
	banks := make([]int, cores)
	for i := range banks {
		banks[i] = i
	}
	random := minimalStandard(1)
	at := 1
	swap := func(with int) {
		banks[at], banks[with] = banks[with], banks[at]
		at++
	}
	if cores > 0 && cores%2 == 0 {
		swap(random.below(2))
	}
	for at < cores { // two places from one number
		n := random.below((at + 1) * (at + 2))
		first, second := n/(at+2), n%(at+2)
		swap(first)
		swap(second)
	}
	return banks
}

// minimalStandard is C++'s minstd_rand0.
type minimalStandard uint64

// below is the next number, scaled to less than n.
func (m *minimalStandard) below(n int) int {
	const prime = 1<<31 - 1
	scale := (prime - 2) / n
	for {
		*m = *m * 16807 % prime
		if x := int(*m - 1); x < n*scale {
			return x / scale
		}
	}
}

// CoreGroup are cores of a chip whose L1 holds the same.
type CoreGroup struct {
	Banks []int // their numbers
	// List is what one of them holds. A buffer of other cores, which only keeps their
	// addresses free here, has none of what the core's own buffers have.
	List *List
}

// Groups are the cores of a chip by what they hold, the largest group first: programs
// put the same on many cores.
func (l *CoreL1) Groups(c *CoreChip) (list []*CoreGroup) {
	var common []*List // of whose copies the originals are known
	for _, m := range l.Meshes {
		if slices.Contains(m.Allocator.Chips, c.ID) {
			common = append(common, m.Lockstep)
		}
	}
	common = append(common, c.Copies)
	by := map[string]*CoreGroup{}
	for k, own := range c.Cores {
		key := placesOf(own)
		g := by[key]
		if g == nil {
			g = &CoreGroup{List: l.merged(append([]*List{own}, common...)...)}
			by[key] = g
			list = append(list, g)
		}
		g.Banks = append(g.Banks, k)
		g.List.Banks = uint64(len(g.Banks))
	}
	slices.SortStableFunc(list, func(a, b *CoreGroup) int { return cmp.Compare(len(b.Banks), len(a.Banks)) })
	return list
}

// placesOf tells lists with the same blocks from others.
func placesOf(l *List) string {
	var key []byte
	if l != nil {
		for b := range l.All() {
			key = binary.AppendUvarint(binary.AppendUvarint(key, b.Addr), b.Size)
		}
	}
	return string(key)
}

// Common is what a buffer of a mesh at one address on some cores has to avoid, as a
// list; nil are all cores.
func (l *CoreL1) Common(m *CoreMesh, cores []int) *List { return l.merged(l.InTheWay(m, cores)...) }

// Alone is what one core of a chip holds, as a list of one bank.
func (l *CoreL1) Alone(c *CoreChip, core int) *List {
	out := l.merged(c.Cores[core], c.Copies)
	out.Banks = 1
	return out
}

// merged is the union of lists as one: of what several have, the first one's block stays.
func (l *CoreL1) merged(lists ...*List) *List {
	out := NewList(l.Geometry, FromStart)
	for _, from := range lists {
		if from == nil {
			continue
		}
		for b := range from.All() {
			out.allocRest(b)
		}
	}
	out.Peak = Peak{} // the most that these cores ever held is not known
	return out
}

// allocRest adds what no other block has of a block.
func (l *List) allocRest(b Block) {
	end, whole := b.End(), b
	for b.Addr < end {
		old, ok := l.live.overlapping(b.Addr, end)
		if !ok {
			old = Block{Addr: end}
		}
		if old.Addr > b.Addr {
			b.Size = old.Addr - b.Addr
			if b.Size < whole.Size {
				b.Asked = 0 // of the whole block
			}
			l.Alloc(b)
		}
		b.Addr, b.Asked = old.End(), whole.Asked
	}
}

// Place is where a core of a bank is in the grid that programs use; known is false for
// grids of which the number of cores does not tell the shape.
func (l *CoreL1) Place(bank int) (x, y int, known bool) {
	columns := l.columns()
	if columns == 0 {
		return 0, 0, false
	}
	n := slices.Index(CoreBanks(int(l.Banks)), bank)
	return n % columns, n / columns, true
}

// BankAt is the bank of the core at a place of the grid.
func (l *CoreL1) BankAt(x, y int) (bank int, known bool) {
	columns := l.columns()
	if columns == 0 || x < 0 || y < 0 || x >= columns || y >= int(l.Banks)/columns {
		return 0, false
	}
	return CoreBanks(int(l.Banks))[y*columns+x], true
}

// columns of the grid. A Blackhole's has ten rows, a Wormhole's eight columns, or seven
// where one of them dispatches; 0: it may be either.
func (l *CoreL1) columns() int {
	const blackhole, wormhole = 64, 32 // by the alignment of their DRAM
	n := int(l.Banks)
	switch {
	case l.Align == blackhole && n%10 == 0 && n%9 != 0:
		return n / 10
	case l.Align == wormhole && n%8 == 0 && n%7 != 0:
		return 8
	case l.Align == wormhole && n%7 == 0 && n%8 != 0:
		return 7
	}
	return 0
}
