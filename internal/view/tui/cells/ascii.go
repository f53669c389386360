package cells

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"

	"github.com/ttmon/ttmon/internal/field/words"
)

// ASCII replaces everything that is not ASCII, cell for cell, for terminals and files
// that show nothing else.
func ASCII(s string) string { return string(AppendASCII(nil, s)) }

// AppendASCII appends text as ASCII does. What takes several cells there takes them from
// the padding before it, or from the word that an ellipsis cuts: columns stay in line.
func AppendASCII(dst []byte, s string) []byte {
	begun := len(dst)
	cut := strings.HasSuffix(strings.TrimRight(s, " "), string(ellipsis))
	for _, r := range s {
		switch r {
		case atLeast:
			if bytes.HasSuffix(dst, []byte("  ")) {
				dst = dst[:len(dst)-1]
			}
			dst = append(dst, asciiAtLeast...)
		case degree: // "91 °C" is "91 C", and what stands before it keeps its column
			if at := number(dst[min(begun, len(dst)):]); at >= 0 && bytes.HasSuffix(dst[:begun+at], []byte("  ")) {
				dst = slices.Insert(dst, begun+at, ' ')
			}
		case ellipsis:
			gives := givesWay(dst, begun)
			if cut {
				gives = min(len(asciiEllipsis)-1, len(dst)-begun)
			}
			dst = dst[:len(dst)-gives]
			if gives < len(asciiEllipsis)-1 && (len(dst) == 0 || dst[len(dst)-1] == '\n') { // a text without room for more
				dst = append(dst, asciiEllipsis[:gives+1]...)
				continue
			}
			dst = append(dst, asciiEllipsis...)
		default:
			dst = append(dst, plainRune(r)...)
		}
	}
	return dst
}

// number is where the number begins that ends a text, with a blank behind it; -1: none.
func number(text []byte) int {
	digits, blank := bytes.CutSuffix(text, []byte(" "))
	at := bytes.LastIndexAny(digits, " \n") + 1
	if !blank || at == len(digits) {
		return -1
	}
	return at
}

// givesWay is how many cells before an ellipsis it may take: padding, or the end of the
// word that it cuts, of what was appended from begun on.
func givesWay(dst []byte, begun int) int {
	n := len(asciiEllipsis) - 1
	if bytes.HasSuffix(dst, []byte("  ")) {
		return n
	}
	word := dst[min(begun, len(dst)):]
	return min(n, len(word)-1-bytes.LastIndexAny(word, " \n"))
}

func plainRune(r rune) string {
	if sub := ASCIIRune(r); sub != unknown {
		return sub
	}
	return strings.Repeat(unknown, words.Width(string(r)))
}

// What takes several cells in ASCII: a single one would read as something else.
const (
	atLeast       = '≥'
	ellipsis      = '…'
	degree        = '°'
	asciiAtLeast  = ">="
	asciiEllipsis = "..."
)

// WidenASCII gives what takes several cells in ASCII the blanks, or the end of the word,
// that stand before it.
func (g *Grid) WidenASCII() {
	for y := range g.H {
		row := g.cells[y*g.W : (y+1)*g.W]
		for x := range row {
			text := ""
			switch row[x].Rune {
			case degree:
				closeDegree(row[:x+1])
			case atLeast:
				text = asciiAtLeast
			case ellipsis:
				text = asciiEllipsis
			}
			if text == "" || x < len(text)-1 || text == asciiAtLeast && row[x-1].Rune != ' ' {
				continue
			}
			for i, r := range text {
				at := &row[x-len(text)+1+i]
				at.Rune, at.Style = r, row[x].Style
			}
		}
	}
}

// closeDegree moves the number before a degree sign, the last cell of a row, to where that
// is, if there is padding before it.
func closeDegree(row []Cell) {
	sign := len(row) - 1
	from := sign - 1 // the blank before the sign
	for from > 0 && row[from-1].Rune != ' ' {
		from--
	}
	if from < 2 || row[sign-1].Rune != ' ' || row[from-1].Rune != ' ' || row[from-2].Rune != ' ' {
		return
	}
	copy(row[from+1:], row[from:sign])
	row[from] = row[from-1]
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
	'▲': "^", '▼': "v", '↑': "^", '↓': "v", '←': "<", '→': ">", '↔': "-", '▸': ">", '◂': "<", '…': ".", '–': "-", '−': "-", '°': " ", '≥': ">",
	'·': "-", '■': "#", '×': "x", '✗': "X", '▶': ">", '‖': "=", '●': "o", '▴': "^", 'µ': "u", '¦': ":",
}
