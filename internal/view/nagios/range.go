package nagios

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// Range is a threshold as the guidelines for monitoring plugins write it. A value
// outside it alerts; with Inside, one inside it.
//
//	10      below 0 or above 10
//	10:     below 10
//	~:10    above 10
//	10:20   below 10 or above 20
//	@10:20  from 10 to 20
type Range struct {
	Low, High float64
	Inside    bool
	text      string
}

// ParseRange reads one.
func ParseRange(s string) (Range, error) {
	r := Range{text: s, High: math.Inf(1)}
	rest, inside := strings.CutPrefix(s, "@")
	r.Inside = inside
	low, high, both := strings.Cut(rest, ":")
	if !both {
		low, high = "0", rest
	}
	var err error
	switch {
	case low == "~":
		r.Low = math.Inf(-1)
	default:
		if r.Low, err = number(low); err != nil {
			return Range{}, rangeError(s)
		}
	}
	if high != "" || !both {
		if r.High, err = number(high); err != nil {
			return Range{}, rangeError(s)
		}
	}
	if r.Low > r.High {
		return Range{}, fmt.Errorf("%q begins above its end", s)
	}
	return r, nil
}

func rangeError(s string) error {
	return fmt.Errorf("%q is not a range: 80 (above 80), 10: (below 10), 10:20 (outside), @10:20 (inside)", s)
}

func number(s string) (float64, error) {
	f, err := strconv.ParseFloat(s, 64)
	if err == nil && (math.IsNaN(f) || math.IsInf(f, 0)) {
		err = strconv.ErrRange
	}
	return f, err
}

// Alerts reports whether a value is one to warn of.
func (r Range) Alerts(v float64) bool { return (v < r.Low || v > r.High) != r.Inside }

// AlertsFrom is Alerts for a value that is at least v. sure is false where a
// higher one would be judged differently.
func (r Range) AlertsFrom(v float64) (alerts, sure bool) {
	return r.Alerts(v), v > r.High || v >= r.Low && math.IsInf(r.High, 1)
}

// String is the range as it was written.
func (r Range) String() string { return r.text }

// scaled is the range in another unit, for performance data.
func (r Range) scaled(by float64) string {
	if by == 1 {
		return r.text
	}
	var b strings.Builder
	if r.Inside {
		b.WriteByte('@')
	}
	switch {
	case math.IsInf(r.Low, -1):
		b.WriteString("~:")
	case r.Low != 0 || r.Inside || math.IsInf(r.High, 1):
		b.WriteString(plain(r.Low*by) + ":")
	}
	if !math.IsInf(r.High, 1) {
		b.WriteString(plain(r.High * by))
	}
	return b.String()
}

func plain(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }
