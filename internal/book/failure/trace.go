package failure

import "github.com/ttmon/ttmon/internal/book/blocks"

// Region is why a trace was refused: tt-metal adds up what the traces of a device
// take, and throws before it asks its allocator where that is more than the trace
// region has.
type Region struct {
	Size   uint64 `json:"region_bytes"` // trace_region_size
	Needed uint64 `json:"needed_bytes"` // by all traces, with the one that was refused
	// Bank is what the one that was refused takes of each bank, at most; 0: not known.
	Bank uint64 `json:"refused_bank_bytes,omitzero"`
}

// regionRound is what tt-metal rounds each bank's part of a trace region up to,
// since it divides it among the banks.
const regionRound = 8192

// division is how a trace region is laid over the banks.
type division int

const (
	divisionUnknown division = iota
	wholeRegion              // each bank has all of it (before 0.74)
	dividedRegion            // each bank has its part
)

// bank is what each of so many banks has of a region.
func (d division) bank(size, banks uint64) uint64 {
	if d == wholeRegion {
		return size
	}
	return roundUp(ceil(size, banks), regionRound)
}

// smallest is the smallest region of which each bank has so many bytes.
func (d division) smallest(bank, banks uint64) uint64 {
	if d == wholeRegion || bank == 0 {
		return bank
	}
	return (roundUp(bank, regionRound)-regionRound)*banks + 1
}

// IsRegion reports whether a list can be that of a trace region of so many bytes.
func IsRegion(g *blocks.Geometry, size uint64) bool {
	return g.Banks > 0 && (wholeRegion.bank(size, g.Banks) == g.Capacity || dividedRegion.bank(size, g.Banks) == g.Capacity)
}

// division is how the region of the record is laid over the banks: by the size of
// a bank, or by the release where that is the same either way.
func (r *Record) division() division {
	g := &r.State.Geometry
	if g.Banks == 0 {
		return divisionUnknown
	}
	whole, divided := wholeRegion.bank(r.Region.Size, g.Banks) == g.Capacity, dividedRegion.bank(r.Region.Size, g.Banks) == g.Capacity
	switch {
	case whole && divided:
		n, known := r.traceBanks()
		switch {
		case !known:
			return divisionUnknown
		case n == 1 && g.Banks > 1:
			return wholeRegion
		}
		return dividedRegion
	case whole:
		return wholeRegion
	case divided:
		return dividedRegion
	}
	return divisionUnknown
}

func (r *Record) judgeTrace() {
	v := &r.Verdict
	v.Cause, v.Missing = RegionTooSmall, r.Region.Needed-min(r.Region.Size, r.Region.Needed)
	if len(r.Chips) == 0 {
		r.doubt(ChipUnknown)
	}
	space, known := r.State.Space()
	switch {
	case known:
		v.Space = &space
	case r.Region.Size > 0: // else there is no region, and nothing is in it
		r.doubtState()
		return
	}
	d := r.division()
	if d == divisionUnknown {
		return
	}
	// Holes count as used but for the largest: what lies between them would lie
	// there in a larger region, too.
	used, banks := r.State.Capacity-space.Largest, r.State.Banks
	r.Region.Bank = traceBank(r.refused(), banks)
	size := max(r.Region.Needed, d.smallest(used+r.Region.Bank, banks))
	r.fix(Fix{Kind: TraceRegion, Bytes: size, Hole: d.bank(size, banks) - used})
}

// refused is how large the trace is that was refused, at most: tt-metal never takes
// one that it has refused off its sum, so that those are in it, too.
func (r *Record) refused() uint64 {
	size := r.Region.Needed
	for b := range r.State.All() {
		size -= min(b.Asked, size)
	}
	return size
}

// traceBank is what a trace takes of each bank, at most. tt-metal takes the largest
// pages that waste least, or that go around the banks twice; releases differ in
// the largest one.
func traceBank(bytes, banks uint64) uint64 {
	const smallest, largest = 1024, 8192
	pick, least := uint64(smallest), ^uint64(0)
	for page := uint64(smallest); page <= largest; page *= 2 {
		turn := page * banks
		if waste := roundUp(bytes, turn) - bytes; waste <= least || bytes/turn >= 2 {
			pick, least = page, waste
		}
	}
	return roundUp(bytes, pick*banks) / banks
}

func ceil(n, by uint64) uint64 { return n/by + min(n%by, 1) }

func roundUp(n, to uint64) uint64 { return ceil(n, to) * to }
