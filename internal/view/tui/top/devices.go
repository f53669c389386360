package top

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/tui/widget"
)

// deviceArea is the upper part of the main page.
type deviceArea struct {
	bus    string // the selected device, by bus id; empty: the first
	scroll int    // rows of devices above the area
}

// list is the devices to show, in the order to show them.
func (a *deviceArea) list(s *State) []*model.Device {
	if s.shown == nil {
		return nil
	}
	var list []*model.Device
	for i := range s.shown.Devices {
		if d := &s.shown.Devices[i]; d.AmongNamed(s.cfg.Top.Devices.Only) {
			list = append(list, d)
		}
	}
	switch {
	case s.cfg.Top.Devices.Order == "worst":
		slices.SortStableFunc(list, func(a, b *model.Device) int { return s.judged.Compare(a.Index, b.Index) })
	case s.grouped():
		slices.SortStableFunc(list, func(a, b *model.Device) int {
			return cmp.Or(cmp.Compare(a.Tray, b.Tray), cmp.Compare(a.Slot, b.Slot))
		})
	case s.cfg.Top.Devices.Group == "board":
		first := map[string]int{}
		for i, d := range list {
			if _, ok := first[board(d)]; !ok {
				first[board(d)] = i
			}
		}
		slices.SortStableFunc(list, func(a, b *model.Device) int { return cmp.Compare(first[board(a)], first[board(b)]) })
	}
	return list
}

// alike is the board that all devices are, or "".
func alike(list []*model.Device) string {
	for _, d := range list {
		if name(d) != name(list[0]) {
			return ""
		}
	}
	if len(list) == 0 {
		return ""
	}
	return name(list[0])
}

// board is what devices of one board have in common.
func board(d *model.Device) string {
	if d.Serial.Known() {
		return d.Serial.V
	}
	return d.BusID
}

// grouped reports whether devices stand by tray.
func (s *State) grouped() bool {
	return s.cfg.Top.Devices.Group == "tray" && s.cfg.Top.Devices.Order != "worst" && s.shown != nil &&
		slices.ContainsFunc(s.shown.Devices, func(d model.Device) bool { return d.Tray > 0 })
}

// selected is the selected device, or nil when there is none at all.
func (a *deviceArea) selected(s *State) *model.Device {
	list := a.list(s)
	if len(list) == 0 {
		return nil
	}
	return list[a.index(list)]
}

func (a *deviceArea) index(list []*model.Device) int {
	return max(slices.IndexFunc(list, func(d *model.Device) bool { return d.BusID == a.bus }), 0)
}

// ensureSelection makes sure a device is selected.
func (a *deviceArea) ensureSelection(s *State) {
	if list := a.list(s); a.bus == "" && len(list) > 0 {
		a.bus = list[0].BusID
	}
}

// move selects another device.
func (a *deviceArea) move(s *State, m widget.Motion) {
	list := a.list(s)
	if len(list) == 0 {
		return
	}
	p := s.plan()
	i := a.index(list)
	across, along := 1, p.perRow
	if p.level == grid || p.level == lines {
		across, along = a.depth(p, len(list), s), 1 // columns are filled from the top
	}
	page := max(p.devices/p.height, 1) * p.perRow
	switch m {
	case widget.Up:
		i -= along
	case widget.Down:
		i += along
	case widget.Left:
		i -= across
	case widget.Right:
		i += across
	case widget.PageUp:
		i -= page
	case widget.PageDown:
		i += page
	case widget.First:
		i = 0
	case widget.Last:
		i = len(list) - 1
	}
	if i >= 0 && i < len(list) {
		a.bus = list[i].BusID
	} else if m == widget.PageUp || m == widget.PageDown {
		a.bus = list[min(max(i, 0), len(list)-1)].BusID
	}
}

// depth is how many devices stand in a column where columns are filled first.
func (a *deviceArea) depth(p plan, n int, s *State) int {
	if p.level == grid && s.grouped() {
		return max((n+max(len(trays(a.list(s))), 1)-1)/max(len(trays(a.list(s))), 1), 1)
	}
	return (n + p.perRow - 1) / p.perRow
}

// trays lists the trays that have devices, in order.
func trays(list []*model.Device) []int {
	var out []int
	for _, d := range list {
		if !slices.Contains(out, d.Tray) {
			out = append(out, d.Tray)
		}
	}
	return out
}

// draw draws the device area.
func (a *deviceArea) draw(s *State, area cells.Area, p plan) {
	s.hits.Add(area, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.WheelUp:
			a.scroll = max(a.scroll-1, 0)
		case tui.WheelDown:
			a.scroll++ // draw keeps it in bounds
		}
		return nil
	})
	list := a.list(s)
	if len(list) == 0 {
		s.drawNoDevices(area)
		return
	}
	switch p.level {
	case grid:
		a.drawGrid(s, area, p, list)
	case lines:
		a.drawLines(s, area, p, list)
	default:
		a.drawBlocks(s, area, p, list)
	}
}

// follow keeps the scroll position in bounds, and the selected row in view
// while the area has the focus.
func (a *deviceArea) follow(s *State, row, rows, room int) {
	if s.focus == devices && s.page == nil {
		if row < a.scroll {
			a.scroll = row
		}
		if row >= a.scroll+room {
			a.scroll = row - room + 1
		}
	}
	a.scroll = min(max(a.scroll, 0), max(rows-room, 0))
}

// pick makes an area select a device; a second press opens it.
func (a *deviceArea) pick(s *State, area cells.Area, bus string) {
	s.hits.Add(area, func(m tui.Mouse) []tui.Effect {
		switch m.Action {
		case tui.Press:
			again := s.focus == devices && a.bus == bus
			s.focus, a.bus = devices, bus
			if again {
				return s.enter()
			}
		case tui.WheelUp:
			a.scroll = max(a.scroll-1, 0)
		case tui.WheelDown:
			a.scroll++
		}
		return nil
	})
}

// titleStyle is how the name of a device is shown.
func (a *deviceArea) titleStyle(s *State, d *model.Device) cells.Style {
	if d.BusID != a.bus {
		return cells.Strong
	}
	if s.focus == devices {
		return cells.Selected
	}
	return cells.Strong
}

// drawNoDevices says why there is nothing to see.
func (s *State) drawNoDevices(area cells.Area) {
	text, hint := "Waiting for the first sample …", ""
	if s.shown != nil {
		text, hint = noDevices(s.shown, len(s.cfg.Top.Devices.Only) > 0)
	}
	area.Put(2, 0, text, cells.Strong)
	area.Put(2, 1, hint, cells.Text)
}

func noDevices(snap *model.Snapshot, filtered bool) (text, hint string) {
	switch {
	case len(snap.Devices) > 0 && filtered:
		return "None of this host's devices is among those chosen.", "F2, Devices, Only: leave it empty to see all."
	case !snap.Host.DriverLoaded && len(snap.Host.Unbound) > 0:
		return "There are Tenstorrent devices, and no driver for them.", "modprobe tenstorrent"
	case !snap.Host.DriverLoaded:
		return "No Tenstorrent device: the tenstorrent driver is not loaded.", "A device will show up here as soon as there is one."
	default:
		return "The driver is loaded and has no device.", "A device will show up here as soon as there is one."
	}
}
