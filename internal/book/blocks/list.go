package blocks

import (
	"iter"

	"github.com/ttmon/ttmon/internal/model"
)

// Block is a range that is taken in every bank of a pool.
type Block struct {
	Addr  uint64 `json:"address"`              // in the bank, as the allocator hands it out (base included)
	Size  uint64 `json:"bank_bytes"`           // taken from each bank, rounded as the allocator does
	Asked uint64 `json:"asked_bytes,omitzero"` // by the buffer, over all banks; 0: not known
	Born  int64  `json:"born_ns,omitzero"`     // Unix time in nanoseconds; 0: before anybody watched
	Tag   uint32 `json:"tag,omitzero"`         // the producer's number of a tag; 0: none
	Site  uint32 `json:"site,omitzero"`        // the producer's number of a call site; 0: not known
}

// End is the first address behind the block.
func (b Block) End() uint64 { return b.Addr + b.Size }

// Geometry is what an allocator was told about one of its pools when it was
// made. The zero value is a pool of which only the kind is known.
type Geometry struct {
	Pool     model.Pool `json:"-"`
	Banks    uint64     `json:"banks"`          // 0: not known
	Base     uint64     `json:"base_address"`   // of the pool in each bank
	Capacity uint64     `json:"bank_capacity"`  // bytes for buffers in each bank; 0: not known
	Align    uint64     `json:"alignment"`      // sizes and addresses are multiples of it
	Smallest uint64     `json:"smallest_block"` // no block is smaller
	// PerCore says that its allocator has such a list for each core (HYBRID), where
	// that is known of the process and not by their number.
	PerCore bool `json:"per_core,omitzero"`
	// Nth is which list of L1 of such an allocator it is: 1 that for all cores
	// together, k + 2 that of core k; 0: not known, or there is one for all.
	Nth uint32 `json:"nth,omitzero"`
}

// Origin says since when a list is known.
type Origin string

// Origins.
const (
	FromStart Origin = "start" // from its construction or from a clear: all blocks are known
	Late      Origin = "late"  // found in use: only what was allocated since is known
)

// List is one pool of one allocator: its live blocks by address.
type List struct {
	Geometry
	Origin Origin
	// Cut is how many bytes at the low end of every bank the allocator has set
	// aside (shrink_size); no block is placed there.
	Cut uint64
	// Inherited says that the list is a forked child's copy of its parent's:
	// its blocks are those that the child took itself. What is free in a copy
	// is unknown.
	Inherited bool
	// Contradictions counts events that cannot be true of what is known: a
	// block over another one, a free of nothing. Any makes the list unsure.
	Contradictions uint64
	// FreedUnseen counts frees of blocks from before a Late list was found.
	FreedUnseen uint64
	Peak        Peak

	live index
	sum  Usage
}

// Usage sums the live blocks.
type Usage struct {
	Blocks       uint64 // live
	BankBytes    uint64 // taken from each bank
	Asked        uint64 // by the buffers whose request is known
	AskedUnknown uint64 // blocks whose request is not known
	UnknownBytes uint64 // that those take from each bank
}

// Peak is the most that a list ever held while it was watched.
type Peak struct {
	BankBytes uint64 `json:"bank_bytes"`
	BankAt    int64  `json:"bank_at_ns"` // Unix time in nanoseconds
	Asked     uint64 `json:"asked_bytes"`
	AskedAt   int64  `json:"asked_at_ns"`
}

// NewList makes an empty list. One that would end behind the last address has no
// memory: tt-metal subtracts what it reserves from the DRAM that the allocator of a
// sub-device does not have.
func NewList(g Geometry, o Origin) *List {
	if g.Base+g.Capacity < g.Base {
		g.Capacity = 0
	}
	return &List{Geometry: g, Origin: o}
}

// Alloc adds a block, unless it cannot be one. Blocks that it overlaps are dropped and
// counted as contradictions: the newer event is right, and something was missed before.
func (l *List) Alloc(b Block) (dropped []Block, added bool) {
	if b.Size == 0 || b.End() < b.Addr {
		l.Contradictions++
		return nil, false
	}
	for {
		old, ok := l.live.overlapping(b.Addr, b.End())
		if !ok {
			break
		}
		l.Contradictions++
		l.remove(old.Addr)
		dropped = append(dropped, old)
	}
	l.live.insert(b)
	l.sum.Blocks++
	l.sum.BankBytes += b.Size
	l.sum.Asked += b.Asked
	if b.Asked == 0 {
		l.sum.AskedUnknown++
		l.sum.UnknownBytes += b.Size
	}
	if l.sum.BankBytes > l.Peak.BankBytes {
		l.Peak.BankBytes, l.Peak.BankAt = l.sum.BankBytes, b.Born
	}
	if l.sum.Asked > l.Peak.Asked {
		l.Peak.Asked, l.Peak.AskedAt = l.sum.Asked, b.Born
	}
	return dropped, true
}

// Free drops the block at an address and returns it.
func (l *List) Free(addr uint64) (Block, bool) {
	b, ok := l.remove(addr)
	switch {
	case ok:
	case l.Origin == Late || l.Inherited:
		l.FreedUnseen++
	default:
		l.Contradictions++
	}
	return b, ok
}

func (l *List) remove(addr uint64) (Block, bool) {
	b, ok := l.live.remove(addr)
	if !ok {
		return b, false
	}
	l.sum.Blocks--
	l.sum.BankBytes -= b.Size
	l.sum.Asked -= b.Asked
	if b.Asked == 0 {
		l.sum.AskedUnknown--
		l.sum.UnknownBytes -= b.Size
	}
	return b, true
}

// Clear drops all blocks. From here on the list is known from its start,
// whatever was missed before.
func (l *List) Clear() {
	l.live, l.sum = index{}, Usage{}
	l.Origin, l.Contradictions, l.FreedUnseen, l.Inherited = FromStart, 0, 0, false
}

// At returns the block that starts at an address.
func (l *List) At(addr uint64) (Block, bool) { return l.live.at(addr) }

// All are the live blocks by address. The list must not be changed meanwhile.
func (l *List) All() iter.Seq[Block] { return l.live.all() }

// Usage is O(1).
func (l *List) Usage() Usage { return l.sum }

// Exact says that the blocks are all there are.
func (l *List) Exact() bool { return l.Origin == FromStart && l.Contradictions == 0 }

// Used is what the buffers in the list asked for. A block whose request is not
// known counts as what it takes, which is no less: the sum may then be too high.
func (l *List) Used() model.Bytes {
	bound := model.Exact
	switch {
	case l.Contradictions > 0:
		bound = model.Unsure
	case l.Origin == Late:
		bound = model.AtLeast
	}
	if l.sum.AskedUnknown == 0 {
		return model.BoundBytes(l.sum.Asked, bound)
	}
	if l.Banks == 0 {
		return model.BoundBytes(l.sum.Asked, max(bound, model.AtLeast))
	}
	return model.BoundBytes(l.sum.Asked+l.sum.UnknownBytes*l.Banks, model.Unsure)
}

// Occupied is what the blocks take from the pool, over all banks; known is
// false while the number of banks is not known.
func (l *List) Occupied() (bytes uint64, known bool) {
	return l.sum.BankBytes * l.Banks, l.Banks > 0
}

// Clone is a copy of its own.
func (l *List) Clone() *List {
	c := *l
	c.live = l.live.clone()
	return &c
}
