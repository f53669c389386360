package history

import "time"

// Span implements Reader.
func (s *Store) Span() (oldest, newest time.Time) {
	if s.rows == 0 {
		return
	}
	last := numTiers - 1
	unit := 1
	for range last {
		unit *= fold
	}
	row := max((s.rows-1)/unit-tierRows+1, 0)
	return time.UnixMilli(s.times[last].ms[row%tierRows]), time.UnixMilli(s.times[0].ms[(s.rows-1)%tierRows])
}

// Spacing implements Reader.
func (s *Store) Spacing() time.Duration { return s.spacing(0, 1) }

// spacing is the distance of the last two rows of a tier, as far as it has them.
func (s *Store) spacing(tier, unit int) time.Duration {
	row := (s.rows - 1) / unit
	if s.rows == 0 || row == 0 {
		return 0
	}
	ms := s.times[tier].ms
	return time.Duration(ms[row%tierRows]-ms[(row-1)%tierRows]) * time.Millisecond
}

// Range implements Reader.
func (s *Store) Range(dst []Bucket, k Key, from time.Time, step time.Duration) {
	clear(dst)
	x := s.series[k]
	if x == nil || len(dst) == 0 || step <= 0 {
		return
	}
	tier, unit := s.pick(from, step)
	times := s.times[tier].ms
	begin, stepMS := from.UnixMilli(), max(step.Milliseconds(), 1)
	newest := (s.rows - 1) / unit
	oldest := max(newest-tierRows+1, 0)
	for row := s.seek(tier, oldest, newest, begin); row <= newest; row++ {
		i := (times[row%tierRows] - begin) / stepMS
		if i >= int64(len(dst)) {
			return
		}
		if b, ok := x.row(tier, unit, row); ok {
			dst[i].add(b)
		} else {
			dst[i].miss()
		}
	}
}

// row is what a series holds in a row of a tier.
func (x *series) row(tier, unit, row int) (b Bucket, ok bool) {
	if row < x.first/unit || row > (x.next-1)/unit {
		return b, false
	}
	at := (row - x.first/unit) % tierRows
	b.State = Sampled
	if bounds := x.bounds[tier]; bounds != nil {
		b.Bound = bounds[at]
	}
	if tier == 0 {
		b.Min = x.raw[at]
		b.Max, b.Last = b.Min, b.Min
	} else {
		// The order inside a folded row is gone; a chart draws min to max anyway.
		b.Min, b.Max, b.Last = x.lo[tier][at], x.hi[tier][at], x.hi[tier][at]
	}
	return b, b.Min == b.Min
}

// pick chooses the coarsest tier that still has a row for every step, and a
// coarser one still where finer ones do not reach back to from.
func (s *Store) pick(from time.Time, step time.Duration) (tier, unit int) {
	ms := from.UnixMilli()
	unit = 1
	for tier+1 < numTiers {
		oldest := max((s.rows-1)/unit-tierRows+1, 0)
		reaches := oldest == 0 || s.times[tier].ms[oldest%tierRows] <= ms
		next := s.spacing(tier+1, unit*fold)
		if reaches && (next == 0 || next > step) {
			break
		}
		tier, unit = tier+1, unit*fold
	}
	return tier, unit
}

// seek is the first row of a tier, from oldest on, that begins at or after ms.
func (s *Store) seek(tier, oldest, newest int, ms int64) int {
	times := s.times[tier].ms
	lo, hi := oldest, newest+1
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if times[mid%tierRows] < ms {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}
