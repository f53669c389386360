package tui

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
