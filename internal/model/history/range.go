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

// Range implements Reader.
func (s *Store) Range(dst []Bucket, k Key, from time.Time, step time.Duration) {
	clear(dst)
	x := s.series[k]
	if x == nil || len(dst) == 0 || step <= 0 {
		return
	}
	tier, unit := s.pick(from)
	times := s.times[tier].ms
	begin, stepMS := from.UnixMilli(), max(step.Milliseconds(), 1)
	newest := (s.rows - 1) / unit
	oldest := max(newest-tierRows+1, 0)
	last, next := Bucket{}, int64(0) // what holds, and the first bucket after its sample
	for row := max(s.seek(tier, oldest, newest, begin)-1, oldest); row <= newest; row++ {
		i := floorDiv(times[row%tierRows]-begin, stepMS)
		if row > oldest {
			fill := last.held()
			if s.away(tier, oldest, row, newest) {
				fill = Bucket{State: Away}
			}
			for ; next < min(i, int64(len(dst))); next++ {
				dst[next] = fill
			}
		}
		if i >= int64(len(dst)) {
			return
		}
		b, ok := x.row(tier, unit, row)
		if last = b; !ok {
			last = Bucket{State: Gap}
		}
		if i < 0 {
			continue
		}
		if ok {
			dst[i].add(b)
		} else {
			dst[i].miss()
		}
		next = i + 1
	}
}

// away reports whether rows are missing before a row of a tier: it follows the
// one before much later than the rows around do.
func (s *Store) away(tier, oldest, row, newest int) bool {
	times := s.times[tier].ms
	between := func(row int) int64 { return times[row%tierRows] - times[(row-1)%tierRows] }
	before, after := int64(0), int64(0)
	if row-1 > oldest {
		before = between(row - 1)
	}
	if row < newest {
		after = between(row + 1)
	}
	// Around a change of the interval the longer counts, but an absence next to
	// another is no interval.
	usual := max(before, after)
	if least := min(before, after); least > 0 {
		usual = min(usual, 3*least)
	}
	return usual > 0 && between(row) > usual*5/2+500
}

// floorDiv divides and rounds down.
func floorDiv(a, b int64) int64 {
	if a < 0 {
		return -((-a + b - 1) / b)
	}
	return a / b
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

// pick chooses the finest tier that reaches back to a time: in coarser ones the
// samples before and after an absence may be in one row.
func (s *Store) pick(from time.Time) (tier, unit int) {
	ms := from.UnixMilli()
	for unit = 1; tier+1 < numTiers; tier, unit = tier+1, unit*fold {
		oldest := max((s.rows-1)/unit-tierRows+1, 0)
		if oldest == 0 || s.times[tier].ms[oldest%tierRows] <= ms {
			break
		}
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
