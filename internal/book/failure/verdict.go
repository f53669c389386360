package failure

import (
	"slices"

	"github.com/ttmon/ttmon/internal/book/blocks"
	"github.com/ttmon/ttmon/internal/model"
)

// Cause is why a request failed.
type Cause string

// The causes.
const (
	// Full: less is free than was asked for.
	Full Cause = "full"
	// Fragmented: enough is free, and no hole is large enough.
	Fragmented Cause = "fragmented"
	// TooLarge: a bank could not hold it if it were empty.
	TooLarge Cause = "too_large"
	// Reserved: a hole is large enough, but the request may not use it, because of
	// another allocator, an address limit or a cut.
	Reserved Cause = "reserved"
	// Overlap: circular buffers and a buffer need the same addresses.
	Overlap Cause = "overlap"
	// RegionTooSmall: the traces of a device need more than trace_region_size, or
	// there is no region of L1_SMALL or TRACE at all: its size is set when the device
	// is opened.
	RegionTooSmall Cause = "region_too_small"
	// Unknown: what was free is not known.
	Unknown Cause = "unknown"
)

// Verdict is why a request failed, and what would have made it fit. Sizes are
// those of one bank.
type Verdict struct {
	Cause Cause `json:"cause"`
	// Missing is how much larger the request is than what is free (full), the
	// largest hole (fragmented) or the bank (too large). For a clash it is the
	// overlap; for a trace region it counts all banks.
	Missing uint64        `json:"missing_bank_bytes,omitzero"`
	Space   *blocks.Space `json:"space"` // what was free; nil: not known
	By      Reserver      `json:"reserved_by,omitempty"`
	// Fixes would have made it fit. Each was checked against the allocator's own
	// rules, on the state as it was.
	Fixes []Fix `json:"fixes"`
}

// Reserver is why a request could not use a hole that is large enough.
type Reserver string

// The reservers.
const (
	ByCut   Reserver = "cut"       // the low end of every bank is set aside (for sub-devices, as a rule: shrink_allocator_size)
	ByLimit Reserver = "limit"     // the request allowed no address below a limit
	ByOther Reserver = "allocator" // another allocator of the device uses the same banks
)

// Judge fills in the verdict.
func (r *Record) Judge() {
	r.Verdict = Verdict{Cause: Unknown, Fixes: []Fix{}}
	if r.State == nil {
		r.doubt(StateUnknown)
		return
	}
	r.doubtLines()
	switch r.Kind {
	case Clash:
		r.judgeClash()
	case Trace:
		r.judgeTrace()
	case NoRoom:
		r.judgeRoom()
	}
}

// doubtLines notes which lines of code are unknown: those of the holders, or all.
func (r *Record) doubtLines() {
	holders := slices.ContainsFunc(r.Sites, func(s Site) bool { return s.Tag != "" || len(s.Stack) > 0 })
	request := len(r.Stack) > 0
	switch {
	case holders, request && r.State.Usage().Blocks == 0: // without blocks there are no holders
	case r.Traced:
		r.doubt(LinesMissing)
	case request:
		r.doubt(NoHolderLines)
	default:
		r.doubt(NoLines)
	}
}

// judgeRoom finds out why there was no room.
func (r *Record) judgeRoom() {
	if len(r.Chips) == 0 {
		r.doubt(ChipUnknown)
	}
	v, need := &r.Verdict, r.Need()
	switch bank := r.State.Capacity; {
	case r.regionIsUnset():
		v.Cause, v.Missing = RegionTooSmall, need
	case need > bank && bank > 0:
		v.Cause, v.Missing = TooLarge, need-bank
	}
	space, known := r.State.Space()
	if !known {
		if r.State.Capacity > 0 {
			r.doubtState()
		}
		r.findFixes()
		return
	}
	v.Space = &space
	switch {
	case v.Cause == TooLarge:
	case need <= space.Largest:
		v.Cause, v.By = Reserved, ByOther
		if r.Request.Limit > r.State.Base {
			v.By = ByLimit
		}
	case r.State.Cut > 0 && r.fitsWithoutCut(need):
		v.Cause, v.By, v.Missing = Reserved, ByCut, need-space.Largest
	case need > space.Free:
		v.Cause, v.Missing = Full, need-space.Free
	default:
		v.Cause, v.Missing = Fragmented, need-space.Largest
	}
	r.findFixes()
}

// doubtState notes that what was free is not known, unless the reason is known.
func (r *Record) doubtState() {
	if !slices.Contains(r.Doubts, BlocksMissing) {
		r.doubt(StateUnknown)
	}
}

// regionIsUnset reports whether the pool exists only if the program asks for it
// when it opens the device, and it did not.
func (r *Record) regionIsUnset() bool {
	p := r.PoolKind()
	return (p == model.L1Small || p == model.Trace) && r.State.Capacity == 0
}

func (r *Record) fitsWithoutCut(need uint64) bool {
	l := r.State.Clone()
	l.Cut = 0
	space, known := l.Space()
	return known && need <= space.Largest
}

func (r *Record) judgeClash() {
	v := &r.Verdict
	v.Cause, v.Missing = Overlap, r.Clash.Overlap
	if space, known := r.State.Space(); known {
		v.Space = &space
	}
	if end := r.endOfL1(); end > 0 && r.Clash.Reach > end {
		v.Cause, v.Missing = TooLarge, r.Clash.Reach-end
		return
	}
	r.clashFixes()
}

// endOfL1 is where the memory of a core ends, of which L1_SMALL may have a part; 0:
// it is not known.
func (r *Record) endOfL1() (end uint64) {
	if r.State.Capacity > 0 {
		end = r.State.Base + r.State.Capacity
	}
	if s, ok := r.sibling(model.L1Small); ok && s.Capacity > 0 {
		end = max(end, s.Base+s.Capacity)
	}
	return end
}
