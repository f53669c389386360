package top

import (
	"math"
	"strconv"

	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

// drawBlocks draws devices as blocks or compact blocks, row by row.
func (a *deviceArea) drawBlocks(s *State, area cells.Area, p plan, list []*model.Device) {
	rows := (len(list) + p.perRow - 1) / p.perRow
	room := max(area.H/p.height, 1)
	a.follow(s, a.index(list)/p.perRow, rows, room)
	for i, d := range list {
		row := i/p.perRow - a.scroll
		if row < 0 || row >= room {
			continue
		}
		box := a.blockArea(area, p, i%p.perRow, row, min(p.perRow, len(list)-i/p.perRow*p.perRow))
		a.pick(s, box, d.BusID)
		if p.level == compact {
			a.drawCompact(s, box, d)
		} else {
			a.drawBlock(s, box, d)
		}
	}
	more(area, a.scroll*p.perRow, len(list)-(a.scroll+room)*p.perRow)
}

// blockArea is where a device stands in its row. Framed blocks share their edges,
// and those of a row that is not full share its whole width.
func (a *deviceArea) blockArea(area cells.Area, p plan, column, row, inRow int) cells.Area {
	if p.level == compact {
		w := area.W / p.perRow
		return area.Sub(column*w, row*p.height, w-1, p.height)
	}
	edge := func(i int) int { return i * (area.W - 1) / inRow }
	return area.Sub(edge(column), row*p.height, edge(column+1)-edge(column)+1, p.height+1)
}

// more says how many devices lie above and below the area.
func more(area cells.Area, above, below int) {
	if above > 0 {
		area.PutRight(area.W, 0, " ↑ "+strconv.Itoa(above)+" more ", cells.Banner)
	}
	if below > 0 {
		area.PutRight(area.W, area.H-1, " ↓ "+strconv.Itoa(below)+" more ", cells.Banner)
	}
}

// headline draws "0 n300 0000:01:00.0  ok" and returns the column after it.
func (a *deviceArea) headline(s *State, box cells.Area, d *model.Device) int {
	style := a.titleStyle(s, d)
	x := box.Put(0, 0, words.FitLeft(strconv.Itoa(d.Index), 3)+" "+name(d)+" ", style)
	x = box.Put(x, 0, words.Escape(d.BusID)+"  ", cells.Faint)
	text, style := s.condition(d)
	return box.Put(x, 0, text, style)
}

// Cells for the figures beside bars, so that bars below each other are of one
// length: "~18.0/24.0 GiB", "~58 % estimated", "~61 % est.".
const (
	besideBlock = 16
	besidePool  = words.PairWidth + 1
	besideRight = 10
)

// drawBlock draws a device with all it has, in a frame: bars at the left, and
// how one value went at the right.
func (a *deviceArea) drawBlock(s *State, frame cells.Area, d *model.Device) {
	edge := cells.Axis
	if is := s.judged.Device(d.Index); is.Level > model.Fine {
		edge = cells.Of(is.Level)
	}
	box := frame.Box("", edge)
	head := frame.Sub(1, 0, frame.W-2, 1)
	x := a.headline(s, head, d)
	head.Set(x, 0, ' ', cells.Text)
	a.vitals(s, head, d, x, []vital{
		vitalOf(s.text("temperature.asic", d)),
		vitalOf(s.text("clocks.ai", d)),
		{s.fan(d), cells.Text},
	})
	bars := s.spark(box, d)
	y := 0
	bar := func(label string, b cells.Bar) {
		b.Beside = besideBlock
		box.Put(1, y, label, cells.Label)
		box.Bar(7, y, bars-8, b)
		y++
	}
	bar("DRAM", poolBar(&d.Memory, model.DRAM))
	l1 := poolBar(&d.Memory, model.L1)
	l1.Text = words.PoolLong(model.L1, &d.Memory.Pools[model.L1], d.Memory.Tracking)
	bar("L1", l1)
	bar("Power", s.bar("power.draw", d))
	bar(busyLabel(d), s.busyBar(d, "estimated"))
	a.traffic(s, box, y, d)
	if y++; y < box.H && len(d.Chips) > 1 {
		drawChips(box, y, d)
	}
}

type vital struct {
	text  string
	style cells.Style
}

func vitalOf(text string, style cells.Style) vital { return vital{text, style} }

// vitals writes values right-aligned behind column x, leaving the last ones
// out where there is no room.
func (a *deviceArea) vitals(s *State, box cells.Area, d *model.Device, x int, list []vital) {
	if silent(d) {
		// Values of a device in trouble are old or none: say what is wrong.
		text := words.Truncate(words.StateReason(d), max(box.W-x-3, 0))
		_, style := s.condition(d)
		box.Put(x+1, 0, " "+text+" ", style)
		return
	}
	width := -2
	n := 0
	for _, v := range list {
		if width+2+words.Width(v.text)+x+2 > box.W-1 {
			break
		}
		width += 2 + words.Width(v.text)
		n++
	}
	at := box.W - 1 - width
	for _, v := range list[:n] {
		box.Set(at-1, 0, ' ', cells.Text)
		at = box.Put(at, 0, v.text, v.style)
		at = box.Put(at, 0, "  ", cells.Text)
	}
}

func poolBar(m *model.Memory, p model.Pool) cells.Bar {
	r, soft := fullness(m, p)
	return cells.Bar{Ratio: r, Text: used(m, p), Fill: load(r), Soft: soft}
}

// bar is a field against its limit.
func (s *State) bar(name string, d *model.Device) cells.Bar {
	v := s.value(name, d)
	return cells.Bar{Ratio: ratio(&v), Text: v.Of(), Fill: fill(v.Level)}
}

// ratio is how much of its limit a value is, or NaN where that is not known.
func ratio(v *metric.Shown) float64 {
	if r, ok := v.Ratio(); ok {
		return r
	}
	return math.NaN()
}

// busyLabel names what busyBar shows.
func busyLabel(d *model.Device) string { return metric.BusyField(d).Head }

// busyBar is how much of the time a program ran on a device. An estimate of that
// is drawn differently from all others: it is no measurement.
func (s *State) busyBar(d *model.Device, word string) cells.Bar {
	f := metric.BusyField(d)
	b := s.bar(f.Name, d)
	if f.As != metric.Estimate {
		b.Soft = d.Work.Bound != model.Exact
		if why := words.WorkCause(d.Work.Cause); !d.Work.Measured() && why != "" {
			b.Text = why
		}
		return b
	}
	if !math.IsNaN(b.Ratio) {
		b.Text += " " + word
	}
	b.Fill, b.Mark = cells.Guess, ':'
	return b
}

// traffic draws the PCIe link, its traffic and the heartbeat.
func (a *deviceArea) traffic(s *State, box cells.Area, y int, d *model.Device) {
	box.Put(1, y, "PCIe", cells.Label)
	link, style := s.link(d)
	box.Put(7, y, link, style)
	rate := func(name string) string {
		text, _ := s.text(name, d)
		return words.PadLeft(text, words.RateWidth)
	}
	x := box.Put(17, y, "to "+rate("pcie.rx")+"  from "+rate("pcie.tx"), cells.Text)
	if b := s.beat(d); x+2+words.Width(b) <= box.W-1 {
		box.PutRight(box.W-1, y, b, cells.Text)
	}
}

// drawChips draws what each chip of a board holds.
func drawChips(box cells.Area, y int, d *model.Device) {
	box.Put(1, y, "Chips", cells.Label)
	x := 7
	w := (box.W - 8) / len(d.Chips)
	for i := range d.Chips {
		m := &d.Chips[i].Memory
		text := used(m, model.DRAM)
		end := box.Put(x, y, d.Chips[i].Name+" ", cells.Label)
		bar := w - (end - x) - words.Width(text) - 3
		if bar > 3 {
			r, soft := fullness(m, model.DRAM)
			box.Shade(end, y, bar, r, soft, load(r))
			end += bar + 1
		}
		box.Put(end, y, text, cells.Text)
		x += w
	}
}

// drawCompact draws a device in nvtop's three rows.
func (a *deviceArea) drawCompact(s *State, box cells.Area, d *model.Device) {
	x := a.headline(s, box, d)
	a.vitals(s, box, d, x, []vital{
		vitalOf(s.text("temperature.asic", d)),
		vitalOf(s.text("clocks.ai", d)),
		vitalOf(s.link(d)),
		{s.fan(d), cells.Text},
	})
	half := (box.W - 1) / 2
	pair := func(y int, la string, ba cells.Bar, lb string, bb cells.Bar) {
		ba.Beside, bb.Beside = besidePool, besideRight
		box.Put(1, y, la, cells.Label)
		box.Bar(5, y, half-5, ba)
		box.Put(half+1, y, lb, cells.Label)
		box.Bar(half+5, y, box.W-half-6, bb)
	}
	pair(1, "DRAM", poolBar(&d.Memory, model.DRAM), "Pow", s.bar("power.draw", d))
	pair(2, "L1", poolBar(&d.Memory, model.L1), busyLabel(d), s.busyBar(d, "est."))
}
