package top

import (
	"slices"
	"strconv"
	"strings"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// lineColumn is a column of the one-line-per-device layout.
type lineColumn struct {
	title string
	width int
	rank  int // order in which columns go when room is short; 0 never goes
	left  bool
	vital bool // gives way to the reason of a device in trouble
	draw  func(s *State, a cells.Area, d *model.Device)
}

// text is a column that holds one piece of text.
func text(f func(s *State, d *model.Device) (string, cells.Style)) func(*State, cells.Area, *model.Device) {
	return func(s *State, a cells.Area, d *model.Device) {
		t, style := f(s, d)
		a.PutRight(a.W, 0, words.Truncate(t, a.W), style)
	}
}

func plain(f func(d *model.Device) string) func(*State, cells.Area, *model.Device) {
	return text(func(_ *State, d *model.Device) (string, cells.Style) { return f(d), cells.Text })
}

func leftText(f func(d *model.Device) (string, cells.Style)) func(*State, cells.Area, *model.Device) {
	return func(_ *State, a cells.Area, d *model.Device) {
		t, style := f(d)
		a.Put(0, 0, words.Truncate(t, a.W), style)
	}
}

// fieldColumn is a column for a field of the table of metrics.
func fieldColumn(name string, c lineColumn, say func(*State, string, *model.Device) (string, cells.Style)) lineColumn {
	c.title = metric.Named(name).Head
	c.draw = text(func(s *State, d *model.Device) (string, cells.Style) { return say(s, name, d) })
	return c
}

func lineColumns(boardWidth int, trays bool) []lineColumn { // boardWidth 0: all boards are alike
	list := []lineColumn{
		{title: "#", width: 3, draw: plain(func(d *model.Device) string { return strconv.Itoa(d.Index) })},
		{title: "Board", width: boardWidth, rank: 6, left: true, draw: leftText(func(d *model.Device) (string, cells.Style) { return name(d), cells.Strong })},
		{title: "Bus id", width: 12, rank: 3, left: true, draw: leftText(func(d *model.Device) (string, cells.Style) { return words.Escape(d.BusID), cells.Faint })},
		{title: "State", width: 9, left: true, draw: func(s *State, a cells.Area, d *model.Device) {
			t, style := s.condition(d)
			a.Put(0, 0, words.Truncate(t, a.W), style)
		}},
		fieldColumn("temperature.asic", lineColumn{width: 6, vital: true}, (*State).text),
		fieldColumn("power.draw", lineColumn{width: 9, vital: true}, (*State).textOf),
		fieldColumn("clocks.ai", lineColumn{width: 8, rank: 4, vital: true}, (*State).text),
		{title: "", width: 8, rank: 5, draw: func(_ *State, a cells.Area, d *model.Device) {
			r, soft := fullness(&d.Memory, model.DRAM)
			a.Shade(0, 0, a.W, r, soft, load(r))
		}},
		{title: "DRAM", width: words.FigurePairWidth, draw: plain(func(d *model.Device) string { return used(&d.Memory, model.DRAM) })},
		{title: "L1", width: 13, rank: 7, draw: plain(func(d *model.Device) string { return used(&d.Memory, model.L1) })},
		{title: metric.Named("busy").Head, width: 5, rank: 8, draw: text((*State).busyShort)},
		fieldColumn("pcie.rx", lineColumn{width: words.RateWidth, rank: 2}, (*State).text),
		fieldColumn("pcie.tx", lineColumn{width: words.RateWidth + 1, rank: 2}, (*State).text),
		fieldColumn("pcie.link", lineColumn{width: 9, rank: 1}, func(s *State, _ string, d *model.Device) (string, cells.Style) { return s.link(d) }),
		fieldColumn("fan.speed", lineColumn{width: 8, rank: 1}, (*State).text),
	}
	if boardWidth == 0 {
		list = slices.DeleteFunc(list, func(c lineColumn) bool { return c.title == "Board" })
	}
	if trays {
		place := func(d *model.Device) (string, cells.Style) {
			return strconv.Itoa(d.Tray) + "." + strconv.Itoa(d.Slot), cells.Label
		}
		list = slices.Insert(list, 1, lineColumn{title: "Tray", width: 4, rank: 9, left: true, draw: leftText(place)})
	}
	return list
}

// fitLines drops the least important columns until the rest fit. A bar left
// over grows up to twice its width.
func fitLines(list []lineColumn, w int) []lineColumn {
	width := func() int {
		sum := 0
		for _, c := range list {
			sum += c.width + 1
		}
		return sum
	}
	for width() > w {
		drop := -1
		for i, c := range list {
			if c.rank > 0 && (drop < 0 || c.rank <= list[drop].rank) {
				drop = i
			}
		}
		if drop < 0 {
			break
		}
		list = slices.Delete(list, drop, drop+1)
	}
	for i := range list {
		if spare := w - width(); list[i].title == "" && spare > 0 {
			list[i].width += min(spare, 16)
		}
	}
	return list
}

// drawLines draws a row per device, filling columns of rows from the top.
func (a *deviceArea) drawLines(s *State, area cells.Area, p plan, list []*model.Device) {
	depth := (len(list) + p.perRow - 1) / p.perRow
	room := max(area.H-1, 1)
	a.follow(s, a.index(list)%depth, depth, room)
	w := area.W / p.perRow
	gap := min(p.perRow-1, 1) // between columns of rows
	boardWidth := 5
	for _, d := range list {
		boardWidth = min(max(boardWidth, words.Width(name(d))), 12)
	}
	if alike(list) != "" && len(list) > 2 {
		boardWidth = 0 // the title names it
	}
	columns := fitLines(lineColumns(boardWidth, s.grouped()), w-gap)
	for c := range p.perRow {
		drawLineHeading(area.Sub(c*w, 0, w-gap, 1), columns)
	}
	for i, d := range list {
		if y := i%depth - a.scroll; y >= 0 && y < room {
			row := area.Sub(i/depth*w, 1+y, w-gap, 1)
			a.pick(s, row, d.BusID)
			a.drawLine(s, row, columns, d)
			if mark := bracket(s, list, i); mark != 0 {
				row.Set(0, 0, mark, cells.Label)
			}
		}
	}
	more(area, a.scroll*p.perRow, (depth-a.scroll-room)*p.perRow)
}

func drawLineHeading(row cells.Area, columns []lineColumn) {
	row.Fill(' ', cells.Heading)
	x := 0
	for _, c := range columns {
		if c.left {
			row.Put(x, 0, c.title, cells.Heading)
		} else {
			row.PutRight(x+c.width, 0, c.title, cells.Heading)
		}
		x += c.width + 1
	}
}

func (a *deviceArea) drawLine(s *State, row cells.Area, columns []lineColumn, d *model.Device) {
	x := 0
	reason := -1
	for _, c := range columns {
		if silent(d) && c.vital {
			if reason < 0 {
				reason = x
			}
			x += c.width + 1
			continue
		}
		if reason >= 0 {
			s.putReason(row.Sub(reason, 0, x-reason-1, 1), d)
			reason = -1
		}
		c.draw(s, row.Sub(x, 0, c.width, 1), d)
		x += c.width + 1
	}
	if d.BusID == a.bus && s.focus == devices {
		row.Paint(0, 0, row.W, cells.Selected)
	}
}

// bracket joins neighbours of one board, where devices are grouped by board.
func bracket(s *State, list []*model.Device, i int) rune {
	if s.cfg.Top.Devices.Group != "board" || s.cfg.Top.Devices.Order == "worst" {
		return 0
	}
	before := i > 0 && board(list[i-1]) == board(list[i])
	after := i+1 < len(list) && board(list[i+1]) == board(list[i])
	switch {
	case before && after:
		return '├'
	case after:
		return '┌'
	case before:
		return '└'
	}
	return 0
}

// busyShort is how busy a device is, where room is short: "62%", "~58%".
func (s *State) busyShort(d *model.Device) (string, cells.Style) {
	f := metric.BusyField(d)
	text, style := s.text(f.Name, d)
	if f.As == metric.Estimate {
		style = cells.Guess
	}
	return strings.ReplaceAll(text, " ", ""), style
}

func (s *State) putReason(a cells.Area, d *model.Device) {
	_, style := s.condition(d)
	a.Put(1, 0, words.Truncate(words.StateReason(d), a.W-1), style)
}
