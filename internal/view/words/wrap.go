package words

import "strings"

// Wrap breaks text at blanks into lines of at most width cells. A word that is
// longer than a line stands alone on its own, uncut.
func Wrap(text string, width int) []string {
	var lines []string
	var line strings.Builder
	used := 0
	for word := range strings.FieldsSeq(text) {
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
