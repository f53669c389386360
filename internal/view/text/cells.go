package text

import (
	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

func boardCell(d *model.Device) cell {
	if b, ok := d.Board.Get(); ok {
		return c(words.Escape(b))
	}
	return c(string(d.Arch))
}

// of is the style of a level.
func of(l model.Level) style {
	switch l {
	case model.Critical:
		return bad
	case model.Warning:
		return warn
	}
	return plain
}

func stateCell(a *assess.Assessment, d *model.Device) cell {
	if l := a.Device(d.Index).Level; l > model.Fine {
		return c(words.State(a, d), of(l))
	}
	return c(words.State(a, d), good)
}

// valueCell is a value of the table of fields, in one of its texts. Where the
// state already says why there is none, the word is not said again.
func valueCell(d *model.Device, s *metric.Shown, say func(*metric.Shown) string) cell {
	if !s.Known() {
		return c(missing(d, s.Status), faint)
	}
	return c(say(s), believed(d, of(s.Level)))
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
func believed(d *model.Device, st style) style {
	if d.Trouble() {
		return faint
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
func poolCell(m *model.Memory, pool model.Pool) cell {
	p := &m.Pools[pool]
	if !p.Used.Known() && !p.Occupied.Known() {
		return c(words.FigureOr(p.Used, m.Tracking), faint)
	}
	return c(words.PoolColumn(pool, p, m.Tracking))
}

// buffersCell is what buffers asked for in a pool.
func buffersCell(m *model.Memory, pool model.Pool) cell {
	u := m.Pools[pool].Used
	if !u.Known() {
		return c(words.FigureOr(u, m.Tracking), faint)
	}
	return c(words.FigureColumn(u))
}

// fullness is the bar of a device's DRAM, if there is one to draw.
func fullness(m *model.Memory) bar {
	ratio, bound, ok := words.Ratio(model.DRAM, &m.Pools[model.DRAM])
	return bar{ratio, bound, ok}
}
