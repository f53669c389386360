package words

import (
	"math"
	"strconv"
	"time"
)

// Temperature says degrees Celsius: "52 °C", "-5 °C".
func Temperature(celsius float64) string { return Whole(celsius) + " °C" }

// Whole rounds to a whole number: "61". There is no "-0".
func Whole(v float64) string {
	return strconv.FormatFloat(math.Round(v)+0, 'f', 0, 64)
}

// Fixed writes v with a fixed number of decimals: "0.85".
func Fixed(v float64, decimals int) string {
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// Watts says power: "61 W".
func Watts(w float64) string { return Whole(w) + " W" }

// MHz says a clock: "1000 MHz".
func MHz(f float64) string { return Whole(f) + " MHz" }

// Percent says a ratio of 0..1: "58 %".
func Percent(ratio float64) string { return Whole(ratio*100) + " %" }

// CPU says a share of one core in percent: "98%", "1250%". Below ten it
// keeps a decimal: "0.4%".
func CPU(percent float64) string {
	if percent < 9.95 {
		return Fixed(percent, 1) + " %"
	}
	return Whole(percent) + " %"
}

// DurationWidth is the most cells Duration takes for anything under 27 years.
const DurationWidth = 6

// Duration says how long something has lasted with two units: "41s",
// "3m07s", "2h14m", "3d04h", "412d".
func Duration(d time.Duration) string {
	s := max(int64(d/time.Second), 0)
	two := func(a int64, ua string, b int64, ub string) string {
		out := strconv.FormatInt(a, 10) + ua
		if b < 10 {
			out += "0"
		}
		return out + strconv.FormatInt(b, 10) + ub
	}
	switch {
	case s < 60:
		return strconv.FormatInt(s, 10) + "s"
	case s < 3600:
		return two(s/60, "m", s%60, "s")
	case s < 86400:
		return two(s/3600, "h", s/60%60, "m")
	case s < 100*86400:
		return two(s/86400, "d", s/3600%24, "h")
	default:
		return strconv.FormatInt(s/86400, 10) + "d"
	}
}

// Span says a length of time in a sentence, with one unit: "41 s", "3 min",
// "3 h", "2 days".
func Span(d time.Duration) string {
	s := max(int64(d/time.Second), 0)
	switch {
	case s < 120:
		return strconv.FormatInt(s, 10) + " s"
	case s < 120*60:
		return strconv.FormatInt(s/60, 10) + " min"
	case s < 48*3600:
		return strconv.FormatInt(s/3600, 10) + " h"
	default:
		return strconv.FormatInt(s/86400, 10) + " days"
	}
}
