package chart

import "math"

// Scale is the range of values from the bottom to the top of a chart.
type Scale struct{ Bottom, Top float64 }

// row is the dot row of a value on a chart of the given number of rows.
func (s Scale) row(v float64, rows int) int {
	if s.Top <= s.Bottom || math.IsNaN(v) {
		return 0
	}
	y := math.Round((v - s.Bottom) / (s.Top - s.Bottom) * float64(rows-1))
	return int(min(max(y, 0), float64(rows-1)))
}

// Fit is a scale with round ends around all values from lo to hi. A flat line
// gets some room above and below, and nothing that cannot be negative starts
// below zero.
func Fit(lo, hi float64) Scale {
	if math.IsNaN(lo) || math.IsNaN(hi) || math.IsInf(lo, 0) || math.IsInf(hi, 0) || hi < lo {
		return Scale{0, 1}
	}
	if hi == lo {
		pad := max(math.Abs(hi)*0.05, 1)
		lo, hi = lo-pad, hi+pad
		if lo < 0 && lo+pad >= 0 {
			lo = 0
		}
	}
	step := niceStep(hi - lo)
	return Scale{math.Floor(lo/step) * step, math.Ceil(hi/step) * step}
}

// UpTo is a scale from zero to limit, or to a round number above hi where
// the values exceed the limit or there is none.
func UpTo(limit, hi float64) Scale {
	if limit > 0 && hi <= limit {
		return Scale{0, limit}
	}
	if !(hi > 0) || math.IsInf(hi, 0) {
		return Scale{0, 1}
	}
	step := niceStep(hi)
	return Scale{0, math.Ceil(hi/step) * step}
}

// niceStep is 1, 2 or 5 times a power of ten, about a quarter of a range.
func niceStep(size float64) float64 {
	raw := size / 4
	power := math.Pow(10, math.Floor(math.Log10(raw)))
	switch f := raw / power; {
	case f <= 1:
		return power
	case f <= 2:
		return 2 * power
	case f <= 5:
		return 5 * power
	default:
		return 10 * power
	}
}

// Legible widens a scale until its ends and its middle are written differently:
// an axis that reads 3.0, 3.0, 3.0 says nothing.
func Legible(s Scale, tick func(float64) string) Scale {
	for range 20 {
		middle := (s.Bottom + s.Top) / 2
		low, mid, high := tick(s.Bottom), tick(middle), tick(s.Top)
		if low != mid && mid != high {
			break
		}
		size := max(s.Top-s.Bottom, math.Abs(middle)/1e6)
		s.Bottom, s.Top = s.Bottom-size/2, s.Top+size/2
		if s.Bottom < 0 && s.Bottom+size/2 >= 0 {
			s.Bottom, s.Top = 0, 2*size
		}
	}
	return s
}
