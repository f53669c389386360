package top

import (
	"fmt"
	"slices"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/facts"
	"github.com/ttmon/ttmon/internal/view/sheet"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// devicePage is everything known about one device, and why the rest is not.
type devicePage struct {
	sheet widget.Sheet
	bus   string
}

func (p *devicePage) keys() []binding {
	step := func(by int) func(s *State) []tui.Effect {
		return func(s *State) []tui.Effect {
			list := s.dev.list(s)
			if i := slices.IndexFunc(list, func(d *model.Device) bool { return d.BusID == p.bus }); i >= 0 && i+by >= 0 && i+by < len(list) {
				p.bus, s.dev.bus = list[i+by].BusID, list[i+by].BusID
			}
			return nil
		}
	}
	return []binding{
		{keys: []tui.Key{"right", "l", "n"}, foot: "Next", help: "next device", do: step(1)},
		{keys: []tui.Key{"left", "h", "b"}, foot: "Previous", help: "previous device", do: step(-1)},
		{keys: []tui.Key{"m"}, foot: "Memory", help: "its memory, and who holds it", do: func(s *State) []tui.Effect {
			s.dev.bus = p.bus
			return s.openMemory()
		}},
	}
}

func (p *devicePage) key(_ *State, k tui.Key) []tui.Effect {
	if m, ok := widget.MotionOf(k); ok {
		p.sheet.Move(m)
	}
	return nil
}

func (p *devicePage) draw(s *State, area cells.Area) {
	head, body := area.Top(1)
	i := slices.IndexFunc(s.shown.Devices, func(d model.Device) bool { return d.BusID == p.bus })
	if i < 0 {
		head.Put(1, 0, "Device "+words.Escape(p.bus)+" is gone.", cells.Bad)
		return
	}
	d := &s.shown.Devices[i]
	x := head.Put(1, 0, fmt.Sprintf("Device %d  %s  %s", d.Index, name(d), words.Escape(d.BusID)), cells.Strong)
	text, style := s.condition(d)
	head.Put(x+2, 0, text, style)
	body = s.drawDeviceCharts(body, d)
	p.sheet.Draw(&s.hits, body, sheet.Screen(body.W, facts.Device(s.shown, d).Parts...))
}
