package picture

import "fmt"

const firstBraille = '⠀'

// isShape tells whether a character is drawn as a shape.
func isShape(r rune) bool {
	_, line := arms[r]
	return line || r >= '▀' && r <= '▓' || r > firstBraille && r < firstBraille+256
}

// arms are the directions of the characters that frames are drawn with: up,
// down, left, right.
var arms = map[rune][4]bool{
	'─': {false, false, true, true}, '│': {true, true, false, false},
	'┌': {false, true, false, true}, '┐': {false, true, true, false}, '└': {true, false, false, true}, '┘': {true, false, true, false},
	'├': {true, true, false, true}, '┤': {true, true, true, false}, '┬': {false, true, true, true}, '┴': {true, false, true, true}, '┼': {true, true, true, true},
}

// shape draws a character that is a shape, and tells whether it is one.
func (p *painter) shape(x, y int, r rune, l look) bool {
	fx, fy := float64(x), float64(y)
	switch a, line := arms[r]; {
	case line:
		p.frame(fx, fy, a, l.fg)
	case r > firstBraille && r < firstBraille+256:
		p.braille(fx, fy, uint8(r-firstBraille), l.fg)
	case r >= '▁' && r < '█': // eighths from below
		n := float64(r-'▁'+1) / 8
		p.rect(fx, fy+1-n, 1, n, l.fg, 1)
	case r >= '▉' && r <= '▏': // eighths from the left
		p.rect(fx, fy, float64('▏'-r+1)/8, 1, l.fg, 1)
	case r == '▀':
		p.rect(fx, fy, 1, 0.5, l.fg, 1)
	case r == '▐':
		p.rect(fx+0.5, fy, 0.5, 1, l.fg, 1)
	default:
		return false
	}
	return true
}

// frame draws thin lines from the middle of a cell.
func (p *painter) frame(x, y float64, a [4]bool, fg int32) {
	cx, cy := pad+(x+0.5)*cellW, pad+(y+0.5)*cellH
	ends := [4][2]float64{{cx, cy - cellH/2}, {cx, cy + cellH/2}, {cx - cellW/2, cy}, {cx + cellW/2, cy}}
	path := ""
	if p.round && corner(a) { // one curve from end to end
		for i, on := range a {
			switch {
			case on && path == "":
				path = fmt.Sprintf("M%s %s", num(ends[i][0]), num(ends[i][1]))
			case on:
				path += fmt.Sprintf("Q%s %s %s %s", num(cx), num(cy), num(ends[i][0]), num(ends[i][1]))
			}
		}
	} else {
		for i, on := range a {
			if on {
				path += fmt.Sprintf("M%s %sL%s %s", num(cx), num(cy), num(ends[i][0]), num(ends[i][1]))
			}
		}
	}
	fmt.Fprintf(&p.buf, `<path d="%s" stroke="%s" fill="none"/>`+"\n", path, colour(fg))
}

// corner tells whether arms make one: one up or down, one to a side.
func corner(a [4]bool) bool { return a[0] != a[1] && a[2] != a[3] }

// dots are the places of the eight dots of a braille character, by bit.
var dots = [8][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}

func (p *painter) braille(x, y float64, bits uint8, fg int32) {
	path := ""
	for i, d := range dots {
		if bits>>i&1 != 0 {
			path += fmt.Sprintf("M%s %sh0", num(pad+(x+0.25+d[0]*0.5)*cellW), num(pad+(y+0.125+d[1]*0.25)*cellH))
		}
	}
	fmt.Fprintf(&p.buf, `<path d="%s" stroke="%s" stroke-width="2.6" stroke-linecap="round"/>`+"\n", path, colour(fg))
}
