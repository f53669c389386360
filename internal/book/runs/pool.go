package runs

import (
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Pool is what was held of a kind of memory.
type Pool struct {
	Peak      uint64 `json:"peak_bytes"`
	PeakBound string `json:"peak_bound"` // exact only where a ledger says so
	// PeakMost is what a peak that is not exact was at most; 0: that is not known.
	PeakMost  uint64    `json:"peak_at_most_bytes,omitempty"`
	PeakAt    time.Time `json:"peak_at"`
	Mean      float64   `json:"mean_bytes"`
	MeanBound string    `json:"mean_bound"` // unsure: of samples, of a part of the run; empty: there is none
	Seconds   float64   `json:"known_s"`    // of the run in which it was known
	Held      uint64    `json:"last_bytes"`
	HeldBound string    `json:"last_bound,omitempty"` // empty: an older release kept none
	// Blocks is what ledgers say of its blocks; nil: there is none. Only the account
	// of ttmon run has it.
	Blocks *Blocks `json:"blocks,omitempty"`
}

// Blocks is what ledgers say of the blocks of a pool, and of the lines of the program
// that held them.
type Blocks struct {
	Capacity  uint64 `json:"capacity_bytes,omitempty"` // of the allocator; 0: not known
	Allocated Amount `json:"allocated"`                // ever
	Held      Amount `json:"held"`                     // by processes that run on
	Left      Amount `json:"left"`                     // by those that ended, or closed the device
	// Grown is the part of what was left by lines that left blocks in each quarter of
	// the run; the rest was alive when the device was closed, which ttnn releases.
	Grown  Amount  `json:"grown,omitzero"`
	Failed uint64  `json:"failed,omitempty"`  // requests that found no room
	AtPeak []Place `json:"at_peak,omitempty"` // largest first
	LeftBy []Place `json:"left_by,omitempty"`
	Places []Place `json:"-"` // all that ever allocated, for profiles
}

// Amount is memory in blocks.
type Amount struct {
	Bytes  uint64 `json:"bytes"`
	Blocks uint64 `json:"blocks"`
}

// Add adds another amount.
func (a *Amount) Add(b Amount) {
	a.Bytes += b.Bytes
	a.Blocks += b.Blocks
}

// PeakBytes is the peak with its bound. The zero Pool has none.
func (p Pool) PeakBytes() model.Bytes {
	if p.PeakBound == "" {
		return model.NoBytes(model.Absent)
	}
	return model.BoundBytes(p.Peak, model.ParseBound(p.PeakBound))
}

// MeanBytes is the mean with its bound. The zero Pool has none.
func (p Pool) MeanBytes() model.Bytes {
	if p.MeanBound == "" || p.Seconds == 0 {
		return model.NoBytes(model.Absent)
	}
	return model.BoundBytes(uint64(p.Mean+0.5), model.Unsure) // whatever an older release says
}

// LeftBytes is what was left in blocks that were not freed, where that is known.
func (p Pool) LeftBytes() model.Bytes {
	if p.Blocks == nil {
		return model.NoBytes(model.Absent)
	}
	return model.ExactBytes(p.Blocks.Left.Bytes)
}

// Limit is the answer to whether a peak stayed within a limit.
type Limit int

// The answers.
const (
	Within Limit = iota
	Exceeded
	Uncertain // it may have been more than is known
)

// Within answers whether the peak stayed within a limit.
func (p Pool) Within(limit uint64) Limit {
	n, bound, known := p.PeakBytes().Best()
	switch {
	case known && n > limit && bound != model.Unsure:
		return Exceeded
	case known && bound == model.Exact, p.PeakMost > 0 && p.PeakMost <= limit:
		return Within
	}
	return Uncertain
}
