package widget

import (
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Sheet is lines to scroll in.
type Sheet struct {
	scroll int
	height int
	lines  int
}

// Move scrolls.
func (p *Sheet) Move(m Motion) {
	switch m {
	case Up:
		p.scroll--
	case Down:
		p.scroll++
	case PageUp:
		p.scroll -= max(p.height-1, 1)
	case PageDown:
		p.scroll += max(p.height-1, 1)
	case First:
		p.scroll = 0
	case Last:
		p.scroll = p.lines
	}
	p.clamp()
}

func (p *Sheet) clamp() { p.scroll = min(max(p.scroll, 0), max(p.lines-p.height, 0)) }

// Draw draws the lines in view.
func (p *Sheet) Draw(h *Hits, area cells.Area, drawn []lines.Line) {
	p.height, p.lines = area.H, len(drawn)
	p.clamp()
	for y, l := range drawn[p.scroll:min(p.scroll+area.H, len(drawn))] {
		l.Put(area, 0, y)
	}
	if p.scroll > 0 {
		area.PutRight(area.W, 0, " ↑ ", cells.Banner)
	}
	if p.scroll+area.H < len(drawn) && area.H > 0 {
		area.PutRight(area.W, area.H-1, " ↓ more ", cells.Banner)
	}
	h.Add(area, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.WheelUp:
			p.scroll -= 3
		case tui.WheelDown:
			p.scroll += 3
		}
		p.clamp()
		return nil
	})
}
