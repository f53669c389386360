package history

import (
	"math"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// Sizes of a Store. At one sample a second the tiers reach back 30 minutes,
// 6 hours and 3 days. A series costs 7 KB after half an hour and 36 KB after
// three days.
const (
	tierRows = 1800
	fold     = 12 // rows of a tier that make one of the next
	numTiers = 3
)

// Store keeps series in memory. All series share their sampling times: Begin
// starts a row, Put adds values to it. A series without a value in a row has
// a gap there. A Store is not safe for concurrent use.
type Store struct {
	rows   int // rows begun so far
	times  [numTiers]timeRing
	series map[Key]*series
}

// New is an empty store.
func New() *Store { return &Store{series: map[Key]*series{}} }

// timeRing holds the time, in Unix milliseconds, at which each row of a tier begins.
type timeRing struct{ ms []int64 }

func (r *timeRing) set(row int, ms int64) { setRing(&r.ms, row, ms) }

// setRing writes entry row of a ring that grows up to tierRows entries.
// Rows are written in order.
func setRing[T any](ring *[]T, row int, v T) {
	if row < tierRows && row >= len(*ring) {
		*ring = append(*ring, v)
		return
	}
	(*ring)[row%tierRows] = v
}

// series is one line of numbers. Tier 0 holds samples; higher tiers hold the
// minimum and maximum of fold rows below, NaN where nothing was known.
type series struct {
	first, next int // rows of tier 0 held: first <= row < next
	raw         []float32
	lo, hi      [numTiers][]float32 // entry 0 unused
	// bounds are those of the samples; nil while all have been exact.
	bounds [numTiers][]model.Bound
}

// Begin starts a row at time t. A time before the last row's is moved up to
// it: a clock that was set back must not tangle the chart.
func (s *Store) Begin(t time.Time) {
	ms := t.UnixMilli()
	if s.rows > 0 {
		ms = max(ms, s.times[0].ms[(s.rows-1)%tierRows])
	}
	for tier, unit := 0, 1; tier < numTiers; tier, unit = tier+1, unit*fold {
		if s.rows%unit == 0 {
			s.times[tier].set(s.rows/unit, ms)
		}
	}
	s.rows++
	if s.rows%tierRows == 0 {
		s.forget()
	}
}

// Put adds a value to the row begun last. NaN and infinities count as unknown.
func (s *Store) Put(k Key, v float64) { s.PutBound(k, v, model.Exact) }

// PutBound adds a value that may be doubtful.
func (s *Store) PutBound(k Key, v float64, bound model.Bound) {
	if s.rows == 0 {
		panic("BUG: history: Put before Begin")
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return
	}
	row := s.rows - 1
	x := s.series[k]
	if x == nil {
		x = &series{first: row, next: row}
		s.series[k] = x
	}
	if x.next > row {
		return // twice in one row: the first holds
	}
	for x.next < row {
		x.push(nan32(), model.Exact)
	}
	x.push(float32(v), bound)
}

func nan32() float32 { return float32(math.NaN()) }

// push appends the sample of row x.next.
func (x *series) push(v float32, bound model.Bound) {
	row := x.next
	x.next++
	setRing(&x.raw, row-x.first, v)
	x.pushBound(row, bound)
	for tier, unit := 1, fold; tier < numTiers; tier, unit = tier+1, unit*fold {
		at := row/unit - x.first/unit
		if at < tierRows && at >= len(x.lo[tier]) || at >= tierRows && row%unit == 0 {
			setRing(&x.lo[tier], at, v)
			setRing(&x.hi[tier], at, v)
			continue
		}
		at %= tierRows
		if lo := x.lo[tier][at]; v < lo || lo != lo {
			x.lo[tier][at] = v
		}
		if hi := x.hi[tier][at]; v > hi || hi != hi {
			x.hi[tier][at] = v
		}
	}
}

// pushBound keeps the worst bound of each row of each tier.
func (x *series) pushBound(row int, bound model.Bound) {
	if x.bounds[0] == nil {
		if bound == model.Exact {
			return
		}
		for tier, unit := 0, 1; tier < numTiers; tier, unit = tier+1, unit*fold {
			x.bounds[tier] = make([]model.Bound, min(row/unit-x.first/unit, tierRows), tierRows)
		}
	}
	for tier, unit := 0, 1; tier < numTiers; tier, unit = tier+1, unit*fold {
		at := row/unit - x.first/unit
		if at < tierRows && at >= len(x.bounds[tier]) || at >= tierRows && row%unit == 0 {
			setRing(&x.bounds[tier], at, bound)
			continue
		}
		at %= tierRows
		x.bounds[tier][at] = max(x.bounds[tier][at], bound)
	}
}

// forget drops series of which nothing is left in any tier.
func (s *Store) forget() {
	reach := tierRows
	for range numTiers - 1 {
		reach *= fold
	}
	for k, x := range s.series {
		if x.next < s.rows-reach {
			delete(s.series, k)
		}
	}
}
