package tui

import (
	"math/bits"
)

// ascii is the closest plain character for one that a terminal without UTF-8
// cannot show.
func ascii(r rune) string {
	if r < 0x7f {
		return string(r)
	}
	if r >= firstBraille && r < firstBraille+256 {
		return asciiDots(uint8(r - firstBraille))
	}
	if s, ok := plain[r]; ok {
		return s
	}
	return "?"
}

// console is what the kernel's own console can show: its fonts have the half
// and full blocks and the rules, but no braille and no eighths of a block.
func console(r rune) rune {
	if r >= firstBraille && r < firstBraille+256 {
		const upper, lower = 0x1b, 0xe4
		switch b := uint8(r - firstBraille); {
		case b == 0:
			return ' '
		case b&upper != 0 && b&lower != 0:
			return '█'
		case b&upper != 0:
			return '▀'
		default:
			return '▄'
		}
	}
	switch r {
	case '▉', '▊', '▋':
		return '█'
	case '▍', '▎', '▏':
		return '▌'
	case '╌':
		return '-'
	case '╱':
		return '/'
	case '▸':
		return '►'
	case '◂':
		return '◄'
	case '…':
		return '~'
	case '–', '−':
		return '-'
	}
	return r
}

// asciiDots stands for a braille cell: where its dots are, and how many.
func asciiDots(b uint8) string {
	const upper, lower = 0x1b, 0xe4 // rows 1 and 2, rows 3 and 4
	switch {
	case b == 0:
		return " "
	case bits.OnesCount8(b) >= 6:
		return "#"
	case b&upper != 0 && b&lower != 0:
		return ":"
	case b&upper != 0:
		return "'"
	}
	return "."
}

// plain has the other characters that the screens draw.
var plain = map[rune]string{
	'█': "#", '▉': "#", '▊': "#", '▋': "#", '▌': "=", '▍': "=", '▎': "-", '▏': "-", '▓': "#", '▒': "+", '¦': ":", '░': ".", '│': "|", '─': "-", '╌': "-", '╱': "/", '┌': "+", '┐': "+", '└': "+", '┘': "+", '├': "+", '┤': "+", '┬': "+", '┴': "+", '┼': "+",
	'▲': "^", '▼': "v", '↑': "^", '↓': "v", '←': "<", '→': ">", '▸': ">", '◂': "<", '…': "~", '–': "-", '−': "-", '°': " ", '≥': ">",
	'·': ",", '■': "#", '×': "x", '▶': ">", '‖': "=", '●': "o", '▴': "^", 'µ': "u",
}
