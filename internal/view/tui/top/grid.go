package top

import (
	"math"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// drawGrid draws a cell per device: by tray where there are trays, else
// column by column.
func (a *deviceArea) drawGrid(s *State, area cells.Area, p plan, list []*model.Device) {
	w := area.W / p.perRow
	heading := 0
	groups := chunks(list, (len(list)+p.perRow-1)/p.perRow)
	if s.grouped() {
		groups, heading = byTray(list), 1
	}
	depth := 0
	for _, g := range groups {
		depth = max(depth, len(g)+heading)
	}
	bands := (len(groups) + p.perRow - 1) / p.perRow
	group, row := locateIn(groups, a.bus)
	a.follow(s, group/p.perRow*depth+row+heading, bands*depth, area.H)
	below := 0
	for i, g := range groups {
		x, top := i%p.perRow*w, i/p.perRow*depth-a.scroll
		if heading > 0 && top >= 0 && top < area.H && len(g) > 0 {
			end := area.Put(x+1, top, "tray "+strconv.Itoa(g[0].Tray)+" ", cells.Label)
			area.HLine(end, top, x+w-1-end, cells.Faint)
			if w >= labelledGrid {
				label := " DRAM"
				if w > roomForBusy {
					label += "  Busy"
				}
				area.PutRight(x+w-1, top, label, cells.Label)
			}
		}
		for j, d := range g {
			y := top + heading + j
			if y >= area.H {
				below++
			}
			if y < 0 || y >= area.H {
				continue
			}
			cell := area.Sub(x, y, w-1, 1)
			a.pick(s, cell, d.BusID)
			a.drawCell(s, cell, d)
		}
	}
	if a.scroll > 0 {
		area.PutRight(area.W, 0, " ↑ more ", cells.Banner)
	}
	if a.scroll+area.H < bands*depth {
		area.PutRight(area.W, area.H-1, " ↓ "+strconv.Itoa(below)+" more ", cells.Banner)
	}
}

// labelledGrid is how wide cells are below a heading that says what their bars are.
const labelledGrid = 18

// roomForBusy is the width of a cell of the grid that says how busy its device is, too.
const roomForBusy = 3 + 2*5 + 19

// locateIn is the group of a device and its row in it.
func locateIn(groups [][]*model.Device, bus string) (group, row int) {
	for i, g := range groups {
		for j, d := range g {
			if d.BusID == bus {
				return i, j
			}
		}
	}
	return 0, 0
}

func byTray(list []*model.Device) [][]*model.Device {
	var out [][]*model.Device
	for i, d := range list {
		if i == 0 || d.Tray != list[i-1].Tray {
			out = append(out, nil)
		}
		out[len(out)-1] = append(out[len(out)-1], d)
	}
	return out
}

func chunks(list []*model.Device, n int) [][]*model.Device {
	var out [][]*model.Device
	for len(list) > n {
		out = append(out, list[:n])
		list = list[n:]
	}
	return append(out, list)
}

// drawCell draws " 3 52° 61W ▓▓▓▓░░░", with more where there is more room.
func (a *deviceArea) drawCell(s *State, cell cells.Area, d *model.Device) {
	number := cells.Strong
	if l := s.judged.Device(d.Index).Level; l > model.Fine {
		number = cells.Of(l)
	}
	x := cell.Put(0, 0, words.FitLeft(strconv.Itoa(d.Index), 3), number)
	if d.State != model.StateOK {
		is := s.judged.Device(d.Index)
		text := words.Kind(is.Kind)
		if held := words.Held(s.shown, &is); held != "" {
			text += " " + held
		}
		cell.Put(x+1, 0, words.Truncate(text, cell.W-x-1), cells.Of(is.Level))
	} else {
		a.drawCellValues(s, cell, x, d)
	}
	if d.BusID == a.bus && s.focus == devices {
		cell.Paint(0, 0, cell.W, cells.Selected)
	}
}

func (a *deviceArea) drawCellValues(s *State, cell cells.Area, x int, d *model.Device) {
	for _, v := range []struct{ name, unit string }{{"temperature.asic", "°"}, {"power.draw", "W"}} {
		shown := s.value(v.name, d)
		text := shown.Bare()
		if shown.Known() {
			text += v.unit
		}
		cell.PutRight(x+4, 0, words.Truncate(text, 4), cells.OfNote(shown.Level))
		x += 5
	}
	if cell.W >= roomForBusy {
		text, style := s.busyShort(d)
		cell.PutRight(cell.W, 0, words.Truncate(text, 5), style)
		cell = cell.Sub(0, 0, cell.W-6, 1)
	}
	if cell.W-x >= words.FigurePairWidth+1+cells.MinBar && d.Memory.Pools[model.DRAM].Used.Known() {
		cell.PutRight(cell.W, 0, used(&d.Memory, model.DRAM), cells.Text)
		cell = cell.Sub(0, 0, cell.W-words.FigurePairWidth-1, 1)
	}
	r, soft := fullness(&d.Memory, model.DRAM)
	if math.IsNaN(r) {
		cell.Put(x, 0, words.Truncate(used(&d.Memory, model.DRAM), cell.W-x), cells.Faint)
		return
	}
	cell.Shade(x, 0, cell.W-x, r, soft, load(r))
}
