package words

import (
	"math"
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// Bar draws a ratio of 0..1 in width cells: "▓▓▓░░░". Only nothing is drawn
// empty and only everything is drawn full.
func Bar(ratio float64, width int) string {
	n := Filled(ratio, width)
	return strings.Repeat("▓", n) + strings.Repeat("░", width-n)
}

// SoftBar is a bar of a figure with a bound: that of a doubtful one has a soft
// end, "▓▓▓▒░░".
func SoftBar(ratio float64, width int, bound model.Bound) string {
	n := Filled(ratio, width)
	if n == 0 || bound == model.Exact {
		return Bar(ratio, width)
	}
	return strings.Repeat("▓", n-1) + "▒" + strings.Repeat("░", width-n)
}

// Filled is how many of width cells a bar of the given ratio fills.
func Filled(ratio float64, width int) int {
	switch {
	case width <= 0 || !(ratio > 0):
		return 0
	case ratio >= 1:
		return width
	}
	n := int(math.Round(ratio * float64(width)))
	if width == 1 {
		return n
	}
	return min(max(n, 1), width-1)
}
