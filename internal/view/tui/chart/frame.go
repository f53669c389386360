package chart

import "github.com/ttmon/ttmon/internal/view/tui/cells"

// Frames divides an area into columns by rows of framed charts that share
// their lines, and returns each with its frame, row by row.
func Frames(a cells.Area, columns, rows int) []cells.Area {
	if a.W < 3 || a.H < 3 || columns < 1 || rows < 1 {
		return nil
	}
	edge := func(i, n, size int) int { return i * (size - 1) / n }
	var out []cells.Area
	for r := range rows {
		top, bottom := edge(r, rows, a.H), edge(r+1, rows, a.H)
		for c := range columns {
			left, right := edge(c, columns, a.W), edge(c+1, columns, a.W)
			f := a.Sub(left, top, right-left+1, bottom-top+1)
			f.Box("", cells.Axis)
			out = append(out, f)
		}
	}
	for r := range rows + 1 {
		for c := range columns + 1 {
			x, y := edge(c, columns, a.W), edge(r, rows, a.H)
			a.Set(x, y, corner(r > 0, r < rows, c > 0, c < columns), cells.Axis)
		}
	}
	return out
}

// corner is the line character with arms in the given directions.
func corner(up, down, left, right bool) rune {
	i := 0
	for b, on := range []bool{up, down, left, right} {
		if on {
			i |= 1 << b
		}
	}
	return []rune("   │ ┘┐┤ └┌├─┴┬┼")[i]
}
