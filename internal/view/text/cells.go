package text

import (
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/lines"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
)

func boardCell(d *model.Device) lines.Cell {
	if b, ok := d.Board.Get(); ok {
		return lines.C(words.Escape(b))
	}
	return lines.C(string(d.Arch))
}

func stateCell(a *assess.Assessment, d *model.Device) lines.Cell {
	if l := a.Device(d.Index).Level; l > model.Fine {
		return lines.C(words.State(a, d), cells.OfNote(l))
	}
	return lines.C(words.State(a, d), cells.Good)
}

// valueCell is a value of the table of fields, in one of its texts. Where the
// state already says why there is none, the word is not said again.
func valueCell(d *model.Device, s *metric.Shown, say func(*metric.Shown) string) lines.Cell {
	if !s.Known() {
		return lines.C(missing(d, s.Status), cells.Faint)
	}
	return lines.C(say(s), believed(d, cells.OfNote(s.Level)))
}

// linkText is a PCIe link, with an arrow where it should be better.
func linkText(s *metric.Shown) string {
	if s.Level > model.Fine {
		return s.Text() + "↓"
	}
	return s.Text()
}

// believed is the style of a value: the last ones of firmware that stopped are
// not to catch the eye.
func believed(d *model.Device, st cells.Style) cells.Style {
	if d.Trouble() {
		return cells.Faint
	}
	return st
}

func missing(d *model.Device, s model.Status) string {
	if d.State == model.StateLost || d.State != model.StateOK && (s == model.Hung || s == model.Lost || s == model.Resetting) {
		return words.Nothing
	}
	return words.Missing(s)
}

// poolCell is what is taken of a pool and of how much, or what its buffers
// asked for, or the word for why it is not known.
func poolCell(m *model.Memory, pool model.Pool) lines.Cell {
	p := &m.Pools[pool]
	if !p.Used.Known() && !p.Occupied.Known() {
		return lines.C(words.FigureOr(p.Used, m.Tracking), cells.Faint)
	}
	return lines.C(words.PoolColumn(pool, p, m.Tracking))
}

// buffersCell is what buffers asked for in a pool.
func buffersCell(m *model.Memory, pool model.Pool) lines.Cell {
	u := m.Pools[pool].Used
	if !u.Known() {
		return lines.C(words.FigureOr(u, m.Tracking), cells.Faint)
	}
	return lines.C(words.FigureColumn(u))
}

// fullness is the bar of a device's DRAM, if there is one to draw.
func fullness(m *model.Memory) lines.Cell {
	ratio, bound, ok := words.Ratio(model.DRAM, &m.Pools[model.DRAM])
	if !ok {
		return lines.Cell{}
	}
	return lines.Cell{Bar: &lines.Bar{Ratio: ratio, Bound: bound}}
}
