package cells

import "slices"

// lines are the characters of thin rules by their arms: 1 up, 2 down, 4 left,
// 8 right.
var lines = [16]rune{3: '│', 12: '─', 10: '┌', 6: '┐', 9: '└', 5: '┘', 11: '├', 7: '┤', 14: '┬', 13: '┴', 15: '┼'}

// firstLine is the first of the characters that rules are drawn with.
const firstLine, numLines = '─', 0x40

// armsOf are the arms of a character; 0: it is no rule.
func armsOf(r rune) uint8 {
	if r < firstLine || r >= firstLine+numLines {
		return 0
	}
	return uint8(max(slices.Index(lines[:], r), 0))
}

// with is a rule with the arms of another one that is there already.
func with(there, r rune) rune {
	if joined := lines[armsOf(there)|armsOf(r)]; joined != 0 {
		return joined
	}
	return r
}

// Join lets the rules in an area meet: where one ends at another, that one gets
// an arm. Frames that share an edge are drawn over each other and then joined.
func (a Area) Join() {
	arms := func(x, y int) uint8 {
		if x < 0 || y < 0 || x >= a.W || y >= a.H {
			return 0
		}
		return armsOf(a.At(x, y).Rune)
	}
	for y := range a.H {
		for x := range a.W {
			have := arms(x, y)
			if have == 0 {
				continue
			}
			want := have
			for _, n := range []struct {
				dx, dy    int
				ours, its uint8
			}{{0, -1, 1, 2}, {0, 1, 2, 1}, {-1, 0, 4, 8}, {1, 0, 8, 4}} {
				if arms(x+n.dx, y+n.dy)&n.its != 0 {
					want |= n.ours
				}
			}
			if r := lines[want]; want != have && r != 0 {
				a.g.cells[(a.Y+y)*a.g.W+a.X+x].Rune = r
			}
		}
	}
}
