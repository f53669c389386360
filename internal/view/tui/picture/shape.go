package picture

import (
	"fmt"
	"strings"
)

const firstBraille = '⠀'

// kind is how a character is drawn.
type kind int

const (
	letter  kind = iota // as text
	line                // of a frame
	braille             // dots
	block               // a part of a cell that is filled
	shade               // a whole cell, filled more or less
)

func kindOf(r rune) kind {
	if _, ok := arms[r]; ok {
		return line
	}
	switch {
	case shades[r] > 0:
		return shade
	case r > firstBraille && r < firstBraille+256:
		return braille
	case r >= '▀' && r <= '▓':
		return block
	}
	return letter
}

// arms are the directions of the characters that frames are drawn with: up,
// down, left, right.
var arms = map[rune][4]bool{
	'─': {false, false, true, true}, '│': {true, true, false, false},
	'┌': {false, true, false, true}, '┐': {false, true, true, false}, '└': {true, false, false, true}, '┘': {true, false, true, false},
	'╭': {false, true, false, true}, '╮': {false, true, true, false}, '╰': {true, false, false, true}, '╯': {true, false, true, false},
	'├': {true, true, false, true}, '┤': {true, true, true, false}, '┬': {false, true, true, true}, '┴': {true, false, true, true}, '┼': {true, true, true, true},
}

// round are corners that are always round.
const round = "╭╮╰╯"

// shapes draws n cells of one kind and colour, as one path where they are lines or
// dots.
func (p *painter) shapes(k kind, x, y, n int, fg int32) {
	path, class := "", ""
	for i := 0; i < n; i++ {
		r, at := p.screen.at(x+i, y).Rune, float64(x+i)
		switch {
		case k == block:
			p.block(at, r, fg)
		case k == braille:
			class = ` class="o"`
			path += p.dots(at, uint8(r-firstBraille))
		case r == '─': // as long as it goes
			from := i
			for i+1 < n && p.screen.at(x+i+1, y).Rune == '─' {
				i++
			}
			path += fmt.Sprintf("M%s %sh%s", num(pad+at*cellW), num(pad+(p.y+0.5)*cellH), num(float64(i-from+1)*cellW))
		default:
			path += p.frame(at, arms[r], p.screen.Round || strings.ContainsRune(round, r))
		}
	}
	if path != "" {
		fmt.Fprintf(&p.buf, `<path d="%s" stroke="%s"%s/>`+"\n", path, colour(fg), class)
	}
}

func (p *painter) block(x float64, r rune, fg int32) {
	switch {
	case r >= '▁' && r < '█': // eighths from below
		n := float64(r-'▁'+1) / 8
		p.rect(x, 1-n, 1, n, fg, 1)
	case r >= '▉' && r <= '▏': // eighths from the left
		p.rect(x, 0, float64('▏'-r+1)/8, 1, fg, 1)
	case r == '▀':
		p.rect(x, 0, 1, 0.5, fg, 1)
	case r == '▐':
		p.rect(x+0.5, 0, 0.5, 1, fg, 1)
	}
}

// frame is the path of thin lines from the middle of a cell.
func (p *painter) frame(x float64, a [4]bool, round bool) (path string) {
	cx, cy := pad+(x+0.5)*cellW, pad+(p.y+0.5)*cellH
	ends := [4][2]float64{{cx, cy - cellH/2}, {cx, cy + cellH/2}, {cx - cellW/2, cy}, {cx + cellW/2, cy}}
	if round && corner(a) { // one curve from end to end
		for i, on := range a {
			switch {
			case on && path == "":
				path = fmt.Sprintf("M%s %s", num(ends[i][0]), num(ends[i][1]))
			case on:
				path += fmt.Sprintf("Q%s %s %s %s", num(cx), num(cy), num(ends[i][0]), num(ends[i][1]))
			}
		}
		return path
	}
	for i, on := range a {
		if on {
			path += fmt.Sprintf("M%s %sL%s %s", num(cx), num(cy), num(ends[i][0]), num(ends[i][1]))
		}
	}
	return path
}

// corner reports whether arms make one: one up or down, one to a side.
func corner(a [4]bool) bool { return a[0] != a[1] && a[2] != a[3] }

// places are those of the eight dots of a braille character, by bit.
var places = [8][2]float64{{0, 0}, {0, 1}, {0, 2}, {1, 0}, {1, 1}, {1, 2}, {0, 3}, {1, 3}}

func (p *painter) dots(x float64, bits uint8) (path string) {
	for i, d := range places {
		if bits>>i&1 != 0 {
			path += fmt.Sprintf("M%s %sh0", num(pad+(x+0.25+d[0]*0.5)*cellW), num(pad+(p.y+0.125+d[1]*0.25)*cellH))
		}
	}
	return path
}
