package words

import (
	"strings"
)

// Wrap breaks text at blanks into lines of at most width cells, though not
// between a number and its unit, nor within a command that resets devices: its
// first half alone would reset them all. A word that is longer than a line stands alone on
// its own, uncut.
func Wrap(text string, width int) []string {
	var lines []string
	var line strings.Builder
	used := 0
	for _, word := range unbroken(text) {
		w := Width(word)
		if used > 0 && used+1+w > width {
			lines = append(lines, line.String())
			line.Reset()
			used = 0
		}
		if used > 0 {
			line.WriteByte(' ')
			used++
		}
		line.WriteString(word)
		used += w
	}
	if used > 0 {
		lines = append(lines, line.String())
	}
	return lines
}

// unbroken splits text into what has to stay together: words, and numbers with
// their units.
func unbroken(text string) []string {
	var list []string
	for word := range strings.FieldsSeq(text) {
		n := len(list)
		if n > 0 && (isUnit(strings.TrimRight(word, ".,;:)")) && endsInDigit(list[n-1]) || list[n-1] == "tt-smi" || strings.HasPrefix(list[n-1], "tt-smi ") && strings.HasPrefix(word, nodePath)) {
			list[n-1] += " " + word
			continue
		}
		list = append(list, word)
	}
	return list
}

func endsInDigit(s string) bool { return s[len(s)-1] >= '0' && s[len(s)-1] <= '9' }

func isUnit(s string) bool {
	switch s {
	case "s", "min", "h", "days", "ms", "W", "MHz", "°C", "°F", "%", "B", "KiB", "MiB", "GiB", "TiB":
		return true
	}
	return false
}
