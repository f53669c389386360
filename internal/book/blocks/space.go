package blocks

import (
	"iter"
	"math"

	"github.com/ttmon/ttmon/internal/model"
)

// Range is a part of every bank.
type Range struct {
	Addr uint64 `json:"address"`
	Size uint64 `json:"bank_bytes"`
}

// Holes are the free ranges by address. There are none to tell of a list that
// is not known from its start, or whose capacity is not known.
func (l *List) Holes() iter.Seq[Range] {
	return func(yield func(Range) bool) {
		if !l.spaceKnown() {
			return
		}
		at := l.Base + l.Cut
		for b := range l.All() {
			if b.Addr > at && !yield(Range{at, b.Addr - at}) {
				return
			}
			at = max(at, b.End())
		}
		if end := l.Base + l.Capacity; end > at {
			yield(Range{at, end - at})
		}
	}
}

// Space is what is free in each bank.
type Space struct {
	Free    uint64 `json:"bank_free_bytes"`
	Largest uint64 `json:"bank_largest_free_bytes"`
	Holes   uint64 `json:"holes"`
}

// spaceKnown says whether what is free can be told.
func (l *List) spaceKnown() bool { return l.Capacity > 0 && l.Exact() && !l.Inherited }

// Space walks the holes. It is not known where Holes tells nothing.
func (l *List) Space() (s Space, known bool) {
	if !l.spaceKnown() {
		return s, false
	}
	for h := range l.Holes() {
		s.Free += h.Size
		s.Largest = max(s.Largest, h.Size)
		s.Holes++
	}
	return s, true
}

// Request is a buffer that a program might ask for.
type Request struct {
	Bytes uint64 // over all banks
	Page  uint64 // bytes that stay together in one bank; 0: Bytes are spread evenly
	// Shards is how many banks have a part of it, each of ShardPages pages; 0:
	// it is interleaved, over all banks.
	Shards, ShardPages uint64
}

// Fit is the answer to a Request.
type Fit struct {
	Fits      bool    `json:"fits"`
	Refused   Refusal `json:"refused,omitzero"` // why not, whatever is free
	BankBytes uint64  `json:"bank_bytes"`       // what the buffer would take from each bank
	Space
}

// Refusal is why tt-metal refuses a buffer, whatever is free.
type Refusal string

// Refusals.
const (
	NotInterleaved Refusal = "not_interleaved" // the pool has sharded buffers only
	TooManyShards  Refusal = "too_many_shards" // more than there are banks
)

// l1Page is what pages of a shard in L1 are rounded up to.
const l1Page = 16

// refuses says why the pool cannot have such a buffer at all; empty: it can.
func (g Geometry) refuses(r Request) Refusal {
	switch {
	case r.Shards == 0 && g.Pool == model.L1Small:
		return NotInterleaved
	case r.Shards > g.Banks:
		return TooManyShards
	}
	return ""
}

// Need is what a buffer takes from each bank: its pages are dealt out to the
// banks one by one, each rounded up to the alignment, and every bank gives as
// much as the one with the most pages. A sharded one takes a shard. known is
// false while the number of banks is not known.
func (g Geometry) Need(r Request) (bytes uint64, known bool) {
	banks := g.Banks
	if banks == 0 {
		return 0, false
	}
	align := max(g.Align, 1)
	if r.Shards > 0 {
		page := align
		if (g.Pool == model.L1 || g.Pool == model.L1Small) && !g.PerCore {
			page = l1Page
		}
		return up(max(product(r.ShardPages, up(r.Page, page)), g.Smallest), align), true
	}
	page := r.Page
	if page == 0 {
		page = up(ceil(r.Bytes, banks), align)
	}
	if page != 0 {
		bytes = product(ceil(ceil(r.Bytes, page), banks), up(page, align))
	}
	return up(max(bytes, g.Smallest), align), true
}

// Round is what a request for some bytes of each bank takes of it.
func (g Geometry) Round(bytes uint64) uint64 { return up(max(bytes, g.Smallest), max(g.Align, 1)) }

// Fits says whether a buffer could be allocated now.
func (l *List) Fits(r Request) (f Fit, known bool) {
	need, ok := l.Need(r)
	space, known := l.Space()
	if !ok || !known {
		return f, false
	}
	refused := l.refuses(r)
	return Fit{Fits: refused == "" && need <= space.Largest, Refused: refused, BankBytes: need, Space: space}, true
}

func ceil(n, by uint64) uint64 { return n/by + min(n%by, 1) }

func up(n, to uint64) uint64 { return product(ceil(n, to), to) }

// product is a times b, or the largest number there is: a request that is too
// large to be counted does not fit, and must not come out as a small one.
func product(a, b uint64) uint64 {
	if n, ok := times(a, b); ok {
		return n
	}
	return math.MaxUint64
}
