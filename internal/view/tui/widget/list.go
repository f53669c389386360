package widget

import (
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// List is a list to move in. The zero List is empty and at its beginning.
type List struct {
	N      int // items
	Sel    int
	scroll int
	height int // rows drawn last
}

// Move selects another item.
func (l *List) Move(m Motion) {
	switch m {
	case Up:
		l.Sel--
	case Down:
		l.Sel++
	case PageUp:
		l.Sel -= max(l.height-1, 1)
	case PageDown:
		l.Sel += max(l.height-1, 1)
	case First:
		l.Sel = 0
	case Last:
		l.Sel = l.N - 1
	}
	l.Clamp()
}

// Clamp keeps the selection in the list after N changed.
func (l *List) Clamp() { l.Sel = min(max(l.Sel, 0), max(l.N-1, 0)) }

// Draw draws the items in view. Item draws one into its row; press is called
// when one is pressed, after it was selected.
func (l *List) Draw(h *Hits, area cells.Area, selected cells.Style, item func(i int, row cells.Area), press func(i int) []tui.Effect) {
	l.Clamp()
	l.height = area.H
	l.scroll = min(max(l.scroll, l.Sel-area.H+1), l.Sel)
	l.scroll = min(max(l.scroll, 0), max(l.N-area.H, 0))
	h.Add(area, l.wheel)
	for y := 0; y < area.H && l.scroll+y < l.N; y++ {
		i := l.scroll + y
		row := area.Sub(0, y, area.W, 1)
		item(i, row)
		if i == l.Sel {
			row.Paint(0, 0, row.W, selected)
		}
		h.Add(row, func(m tui.Mouse) []tui.Effect {
			if m.Action == tui.Press {
				l.Sel = i
				return press(i)
			}
			return l.wheel(m)
		})
	}
	if l.scroll > 0 && area.H > 0 {
		area.Set(area.W-1, 0, '↑', cells.Banner)
	}
	if l.scroll+area.H < l.N && area.H > 0 {
		area.Set(area.W-1, area.H-1, '↓', cells.Banner)
	}
}

func (l *List) wheel(m tui.Mouse) []tui.Effect {
	switch m.Action {
	case tui.WheelUp:
		l.Move(Up)
	case tui.WheelDown:
		l.Move(Down)
	}
	return nil
}
