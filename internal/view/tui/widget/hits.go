// Package widget holds what the screens are put together from: lists, sheets
// of text, an editable line, and the places that answer to the mouse.
//
// It stands between the screens (top, mem) and the cells they draw on.
package widget

import (
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// Hits remembers where things were drawn, for the mouse. What is drawn later
// lies on top.
type Hits struct{ list []hit }

type hit struct {
	area cells.Area
	do   func(tui.Mouse) []tui.Effect
}

// Reset forgets all places; every Draw begins with it.
func (h *Hits) Reset() { h.list = h.list[:0] }

// Add makes an area answer to the mouse.
func (h *Hits) Add(a cells.Area, do func(tui.Mouse) []tui.Effect) {
	if !a.Empty() {
		h.list = append(h.list, hit{a, do})
	}
}

// AddPress makes an area answer to a press of the left button.
func (h *Hits) AddPress(a cells.Area, do func() []tui.Effect) {
	h.Add(a, func(m tui.Mouse) []tui.Effect {
		if m.Action == tui.Press {
			return do()
		}
		return nil
	})
}

// Send gives a mouse event to what lies on top at its place.
func (h *Hits) Send(m tui.Mouse) []tui.Effect {
	for i := len(h.list) - 1; i >= 0; i-- {
		if h.list[i].area.Contains(m.X, m.Y) {
			return h.list[i].do(m)
		}
	}
	return nil
}
