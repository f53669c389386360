package failure

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// Fix is something that would have made a request fit.
type Fix struct {
	Kind FixKind `json:"kind"`
	// Blocks are those to free, or the one to move, by address.
	Blocks []blocks.Block `json:"blocks,omitempty"`
	// Bytes is what is freed of each bank, what the request would take of each
	// bank in another layout or pool, or the value of a parameter.
	Bytes uint64 `json:"bytes,omitzero"`
	// Hole is the largest hole of each bank with the fix.
	Hole uint64 `json:"bank_largest_free_bytes,omitzero"`
}

// FixKind is what kind of fix it is.
type FixKind string

// The kinds.
const (
	FreeFewest   FixKind = "free_fewest"   // the fewest blocks to free, of these the smallest
	FreeYoungest FixKind = "free_youngest" // the youngest ones that do
	Move         FixKind = "move"          // one block to copy into another hole, and to free then
	Interleaved  FixKind = "interleaved"   // instead of sharded
	InDRAM       FixKind = "dram"          // instead of L1
	L1SmallSize  FixKind = "l1_small_size" // value of the parameter when the device is opened
	TraceRegion  FixKind = "trace_region_size"
)

// findFixes fills in what would have made the request fit.
func (r *Record) findFixes() {
	if slices.Contains(r.Doubts, PerCore) {
		r.dramFix()
		return
	}
	if r.Verdict.Space != nil && r.Verdict.Cause != TooLarge && r.Verdict.Cause != Reserved {
		r.freeFixes()
		r.moveFix()
	}
	// The allocator of a sub-device takes no interleaved buffers.
	if r.Request.Sharded != nil && *r.Request.Sharded && !r.OfSubDevice() {
		r.interleavedFix()
	}
	switch r.PoolKind() {
	case model.L1:
		r.smallerL1SmallFix()
		r.dramFix()
	case model.L1Small:
		r.regionFix(L1SmallSize)
		r.dramFix()
	case model.Trace:
		r.regionFix(TraceRegion)
	}
}

// fix adds a fix.
func (r *Record) fix(f Fix) { r.Verdict.Fixes = append(r.Verdict.Fixes, f) }

// maxFreed is how many blocks a fix names at most: no user frees more by hand.
const maxFreed = 64

// window is a run of neighbouring blocks, without which there is a hole that is
// large enough.
type window struct {
	from, to int // of the blocks by address; to is not in it
	bytes    uint64
	oldest   int64 // when the oldest of them was made; 0: not known
}

// windows are the smallest runs of blocks, one for each first block, without
// which need bytes lie together.
func windows(l *blocks.List, all []blocks.Block, need uint64) (list []window) {
	end := func(i int) uint64 { // of the hole before block i
		if i == len(all) {
			return l.Base + l.Capacity
		}
		return all[i].Addr
	}
	begin := func(i int) uint64 { // of the hole before block i
		if i == 0 {
			return l.Base + l.Cut
		}
		return all[i-1].End()
	}
	for from, to := 0, 0; from < len(all); from++ {
		to = max(to, from+1)
		for to <= len(all) && end(to)-min(begin(from), end(to)) < need {
			to++
		}
		if to > len(all) {
			break
		}
		if to-from > maxFreed {
			continue
		}
		w := window{from: from, to: to}
		for i, b := range all[from:to] {
			w.bytes += b.Size
			if i == 0 || b.Born < w.oldest {
				w.oldest = b.Born
			}
		}
		list = append(list, w)
	}
	return list
}

// freeFixes finds the fewest and the youngest blocks to free.
func (r *Record) freeFixes() {
	all := slices.Collect(r.State.All())
	list := windows(r.State, all, r.Need())
	if len(list) == 0 {
		return
	}
	fewest, youngest := list[0], list[0]
	for _, w := range list[1:] {
		n, m := w.to-w.from, fewest.to-fewest.from
		if n < m || n == m && (w.bytes < fewest.bytes || w.bytes == fewest.bytes && w.oldest > fewest.oldest) {
			fewest = w
		}
		if w.oldest > youngest.oldest || w.oldest == youngest.oldest && w.bytes < youngest.bytes {
			youngest = w
		}
	}
	r.freeFix(FreeFewest, all[fewest.from:fewest.to])
	if youngest != fewest && youngest.oldest > fewest.oldest {
		r.freeFix(FreeYoungest, all[youngest.from:youngest.to])
	}
}

// freeFix adds a fix that frees blocks, if it is one.
func (r *Record) freeFix(kind FixKind, list []blocks.Block) {
	l, sum := r.State.Clone(), uint64(0)
	for _, b := range list {
		l.Free(b.Addr)
		sum += b.Size
	}
	if space, known := l.Space(); known && space.Largest >= r.Need() {
		r.fix(Fix{Kind: kind, Blocks: slices.Clone(list), Bytes: sum, Hole: space.Largest})
	}
}

// moveFix finds the smallest block that leaves a hole that is large enough once it
// lies elsewhere.
func (r *Record) moveFix() {
	all := slices.Collect(r.State.All())
	var best *Fix
	for _, w := range windows(r.State, all, r.Need()) {
		if w.to-w.from != 1 || best != nil && all[w.from].Size >= best.Blocks[0].Size {
			continue
		}
		if f, ok := r.moved(all[w.from]); ok {
			best = &f
		}
	}
	if best != nil {
		r.fix(*best)
	}
}

// moved is the fix that copies a block into another hole and frees it then. In
// whatever order the allocator searches: a hole takes the copy, and neither of
// those beside the block does.
func (r *Record) moved(b blocks.Block) (f Fix, ok bool) {
	elsewhere := false
	for h := range r.State.Holes() {
		beside := h.Addr+h.Size == b.Addr || h.Addr == b.End()
		if h.Size >= b.Size && beside {
			return f, false
		}
		elsewhere = elsewhere || h.Size >= b.Size
	}
	l := r.State.Clone()
	l.Free(b.Addr)
	space, known := l.Space()
	if !elsewhere || !known || space.Largest < r.Need() {
		return f, false
	}
	return Fix{Kind: Move, Blocks: []blocks.Block{b}, Bytes: b.Size, Hole: space.Largest}, true
}

// tilePages are the sizes of a tile by type. Of a tensor in rows the page of an
// interleaved one is another than that of a shard.
var tilePages = []uint64{2048, 4096, 1024, 1088, 576}

// interleavedFix asks whether the buffer would have fitted interleaved over all
// banks.
func (r *Record) interleavedFix() {
	if r.Request.Bytes == 0 || !slices.Contains(tilePages, r.Request.Page) {
		return
	}
	f, known := r.State.Fits(blocks.Request{Bytes: r.Request.Bytes, Page: r.Request.Page})
	if known && f.Fits {
		r.fix(Fix{Kind: Interleaved, Bytes: f.BankBytes, Hole: f.Largest})
	}
}

// dramFix asks whether the buffer would have fitted into DRAM, in whatever pages.
func (r *Record) dramFix() {
	s, ok := r.sibling(model.DRAM)
	if !ok || s.Space == nil || r.Request.Bytes == 0 {
		return
	}
	// No bank ever has more than all of it.
	if s.Round(r.Request.Bytes) > s.Space.Largest {
		return
	}
	need, known := s.Need(blocks.Request{Bytes: r.Request.Bytes, Page: r.Request.Page})
	if known {
		r.fix(Fix{Kind: InDRAM, Bytes: need, Hole: s.Space.Largest})
	}
}

func (r *Record) sibling(pool model.Pool) (s Sibling, ok bool) {
	for _, x := range r.Siblings {
		if x.Pool == pool.String() {
			x.Geometry.Pool = pool
			return x, true
		}
	}
	return s, false
}

// smallerL1SmallFix asks whether the request would have fitted had the region of
// L1_SMALL been no larger than what is used of it: what it gives up is added to
// L1. That is sure while L1 is empty; where it is not, its buffers would lie
// elsewhere in a larger one.
func (r *Record) smallerL1SmallFix() {
	s, ok := r.sibling(model.L1Small)
	if !ok || s.Capacity == 0 || r.Verdict.Space == nil || r.State.Cut > 0 || r.State.Usage().Blocks > 0 {
		return
	}
	needed := s.Used
	if gain := s.Capacity - min(needed, s.Capacity); gain > 0 && r.State.Capacity+gain >= r.Need() {
		r.fix(Fix{Kind: L1SmallSize, Bytes: needed, Hole: r.State.Capacity + gain})
	}
}

// usualL1Small is what programs pass as l1_small_size that need any: 24 to 32 KiB.
const usualL1Small = 32 << 10

// regionFix says how large a region would have had to be that is sized when the
// device is opened, as long as it is empty. What is in it would lie elsewhere in a
// larger one, so that then it cannot be said.
func (r *Record) regionFix(kind FixKind) {
	if r.State.Usage().Blocks > 0 || !r.State.Exact() {
		return
	}
	hole := r.Need()
	if kind == L1SmallSize {
		// An operation takes several buffers of it, one after the other: the next
		// request would not fit a region for this one alone.
		hole = max(hole, usualL1Small)
	}
	value := hole
	if kind == TraceRegion {
		banks, known := r.traceBanks()
		if !known {
			return
		}
		value *= banks
	}
	r.fix(Fix{Kind: kind, Bytes: value, Hole: hole})
}

// traceBanks is by how much of a trace_region_size a bank gets its part: since
// 0.74 it is divided among the banks, before each had all of it.
func (r *Record) traceBanks() (uint64, bool) {
	major, minor, ok := version(r.Process.Release)
	switch {
	case !ok:
		return 0, false
	case major == 0 && minor < 74:
		return 1, true
	}
	return r.State.Banks, r.State.Banks > 0
}

// version takes a release ("ttnn 0.81.1") apart.
func version(release string) (major, minor int, ok bool) {
	_, number, _ := strings.Cut(release, " ")
	parts := strings.SplitN(number, ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err := strconv.Atoi(parts[0])
	if err != nil {
		return 0, 0, false
	}
	minor, err = strconv.Atoi(parts[1])
	return major, minor, err == nil
}

// clashFixes names the buffers that would have had to lie elsewhere: all that
// the circular buffers reach into.
func (r *Record) clashFixes() {
	var list []blocks.Block
	sum := uint64(0)
	for b := range r.State.All() {
		if b.Addr >= r.Clash.Reach {
			break
		}
		list, sum = append(list, b), sum+b.Size
	}
	if len(list) > 0 && len(list) <= maxFreed && r.Verdict.Space != nil {
		r.fix(Fix{Kind: FreeFewest, Blocks: list, Bytes: sum})
	}
}

// Key names a fix in tests and messages.
func (f *Fix) Key() string { return fmt.Sprintf("%s %d", f.Kind, f.Bytes) }
