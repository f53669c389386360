package words

import (
	"strings"

	"github.com/rivo/uniseg"
)

// Width is how many cells s takes on a terminal. A character that a reader
// sees as one (letter and accents, emoji sequence) counts once, wide ones two.
func Width(s string) int {
	if ascii(s) {
		return len(s)
	}
	return uniseg.StringWidth(s)
}

// Truncate shortens s to at most width cells; what was cut is marked by "…".
// A character is never cut in the middle.
func Truncate(s string, width int) string {
	if width <= 0 {
		return ""
	}
	if Width(s) <= width {
		return s
	}
	kept, used := 0, 0
	for rest, state := s, -1; rest != ""; {
		var cluster string
		var w int
		cluster, rest, w, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if used+w > width-1 {
			break
		}
		kept, used = kept+len(cluster), used+w
	}
	return s[:kept] + "…"
}

// Pad adds blanks on the right up to width cells.
func Pad(s string, width int) string {
	if n := width - Width(s); n > 0 {
		return s + blanks(n)
	}
	return s
}

// PadLeft adds blanks on the left up to width cells.
func PadLeft(s string, width int) string {
	if n := width - Width(s); n > 0 {
		return blanks(n) + s
	}
	return s
}

// Fit makes s exactly width cells: cut with "…" or padded on the right.
func Fit(s string, width int) string { return Pad(Truncate(s, width), width) }

// FitLeft is Fit with the blanks on the left.
func FitLeft(s string, width int) string { return PadLeft(Truncate(s, width), width) }

func ascii(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

const spaces = "                                                                "

func blanks(n int) string {
	if n <= len(spaces) {
		return spaces[:n]
	}
	return strings.Repeat(" ", n)
}
