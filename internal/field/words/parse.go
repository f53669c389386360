package words

import (
	"math"
	"strconv"
	"strings"
)

// ParseBytes reads a size as people write it: 4096, 512M, 1.5g, 4GiB. Units are
// binary.
func ParseBytes(s string) (n uint64, ok bool) {
	text := strings.TrimSuffix(strings.ToLower(strings.TrimSpace(s)), "b")
	text = strings.TrimSpace(strings.TrimSuffix(text, "i"))
	step := 0
	if text != "" {
		if step = strings.IndexByte("kmgt", text[len(text)-1]) + 1; step > 0 {
			text = strings.TrimSpace(text[:len(text)-1])
		}
	}
	v, err := strconv.ParseFloat(text, 64)
	v *= math.Pow(1024, float64(step))
	if err != nil || math.IsNaN(v) || v < 0 || v > 1<<60 {
		return 0, false
	}
	return uint64(v), true
}
