package filter

import (
	"math"
	"strconv"
	"strings"
)

// number reads a value in the way the field's kind is written.
func number(f *Field, s string, pos int) (float64, *Error) {
	var x float64
	ok := false
	what := ""
	switch f.Kind {
	case Bytes:
		x, ok = bytes(s)
		what = "a number of bytes such as 512M, 1.5G or 2GB"
	case Seconds:
		x, ok = seconds(s)
		what = "a length of time such as 90s, 5m, 2h30m or 3d"
	default:
		x, ok = plain(strings.TrimSuffix(s, "%"))
		what = "a number"
	}
	if !ok {
		return 0, errorAt(pos, "%s: %q is not %s", f.Name, s, what)
	}
	return x, nil
}

func plain(s string) (float64, bool) {
	x, err := strconv.ParseFloat(s, 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

// bytes reads binary units as they are shown (K, KiB: 1024) and decimal ones
// where they are spelled out (KB: 1000).
func bytes(s string) (float64, bool) {
	i := strings.LastIndexAny(s, "0123456789.") + 1
	x, ok := plain(s[:i])
	unit := strings.ToLower(s[i:])
	if unit == "" || unit == "b" {
		return x, ok
	}
	power := strings.IndexByte("kmgtp", unit[0]) + 1
	base := 1024.0
	switch unit[1:] {
	case "", "i", "ib":
	case "b":
		base = 1000
	default:
		return 0, false
	}
	return x * math.Pow(base, float64(power)), ok && power > 0
}

// seconds reads "90", "90s", "2h30m", "3d".
func seconds(s string) (float64, bool) {
	if x, ok := plain(s); ok {
		return x, true
	}
	var sum float64
	for s != "" {
		i := strings.IndexAny(s, "smhd")
		if i <= 0 {
			return 0, false
		}
		x, ok := plain(s[:i])
		if !ok {
			return 0, false
		}
		switch s[i] {
		case 'm':
			x *= 60
		case 'h':
			x *= 3600
		case 'd':
			x *= 86400
		}
		sum, s = sum+x, s[i+1:]
	}
	return sum, true
}
