package cells

import (
	"math/bits"
	"strings"

	"github.com/ttmon/ttmon/internal/words"
)

// ASCII replaces everything that is not ASCII, cell for cell, for terminals and files
// that show nothing else.
func ASCII(s string) string {
	clean := true
	for i := range len(s) {
		clean = clean && s[i] < 0x80
	}
	if clean {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		if sub := ASCIIRune(r); sub != unknown {
			b.WriteString(sub)
			continue
		}
		for range words.Width(string(r)) {
			b.WriteString(unknown)
		}
	}
	return b.String()
}

// ASCIIRune is the closest plain character for one.
func ASCIIRune(r rune) string {
	if r < 0x7f {
		return string(r)
	}
	if r >= firstBraille && r < firstBraille+256 {
		return asciiDots(uint8(r - firstBraille))
	}
	if s, ok := plain[r]; ok {
		return s
	}
	return unknown
}

// unknown stands for what has no plain character that is close.
const unknown = "?"

// Braille cells are drawn by charts.
const (
	firstBraille = 0x2800
	upperDots    = 0x1b // rows 1 and 2
	lowerDots    = 0xe4 // rows 3 and 4
)

// asciiDots stands for a braille cell: where its dots are, and how many.
func asciiDots(b uint8) string {
	switch {
	case b == 0:
		return " "
	case bits.OnesCount8(b) >= 6:
		return "#"
	case b&upperDots != 0 && b&lowerDots != 0:
		return ":"
	case b&upperDots != 0:
		return "'"
	}
	return "."
}

// plain has the other characters that are drawn.
var plain = map[rune]string{
	'█': "#", '▉': "#", '▊': "#", '▋': "#", '▌': "=", '▍': "=", '▎': "-", '▏': "-", '▓': "=", '▒': "+", '░': ".", '▇': "%", '▆': "*", '▅': "+", '▄': "=", '▃': "-", '▂': ".", '▁': "_",
	'│': "|", '║': "|", '┃': "|", '─': "-", '━': "=", '═': "=", '╌': "-", '╱': "/", '┌': "+", '┐': "+", '└': "+", '┘': "+", '├': "+", '┤': "+", '┬': "+", '┴': "+", '┼': "+",
	'┏': "+", '┳': "+", '┓': "+", '┡': "+", '╇': "+", '┩': "+",
	'▲': "^", '▼': "v", '↑': "^", '↓': "v", '←': "<", '→': ">", '↔': "-", '▸': ">", '◂': "<", '…': "~", '–': "-", '−': "-", '°': " ", '≥': ">",
	'·': "-", '■': "#", '×': "x", '✗': "X", '▶': ">", '‖': "=", '●': "o", '▴': "^", 'µ': "u", '¦': ":",
}
