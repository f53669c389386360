package text

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/assess"
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

// chipCell is a value read from the chip. Where the state already says why
// there is none, the word is not said again.
func chipCell(d *model.Device, r model.Reading[float64], say func(float64) string) cell {
	if v, ok := r.Get(); ok {
		return c(say(v), believed(d, plain))
	}
	return c(missing(d, r.Status), faint)
}

// textCell is chipCell for texts.
func textCell(d *model.Device, r model.Reading[string]) cell {
	if !r.Known() {
		return c(missing(d, r.Status), faint)
	}
	return c(words.Foreign(r))
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

func tempCell(a *assess.Assessment, d *model.Device, o *Options, large bool) cell {
	t, ok := d.Temperature.Get()
	if !ok {
		return chipCell(d, d.Temperature, nil)
	}
	text := words.Temperature(t, o.Scale)
	if limit, ok := d.TemperatureLimit.Get(); ok && large {
		text = words.Whole(o.Scale.From(t)) + "/" + words.Nominal(d.TemperatureLimit, words.Whole(o.Scale.From(limit))) + " " + o.Scale.Unit()
	}
	return c(text, believed(d, of(a.Value(d.Index, model.FactTemperature))))
}

func powerCell(a *assess.Assessment, d *model.Device) cell {
	if !d.Power.Known() {
		return chipCell(d, d.Power, nil)
	}
	return c(words.Power(d), believed(d, of(a.Value(d.Index, model.FactPower))))
}

func pcieCell(a *assess.Assessment, d *model.Device) cell {
	gen, width := d.PCIe.Gen, d.PCIe.Width
	if !gen.Known() || !width.Known() {
		return c(missing(d, gen.Status), faint)
	}
	text := strconv.Itoa(gen.V) + ".0 x" + strconv.Itoa(width.V)
	if l := a.Value(d.Index, model.FactLinkGen); l > model.Fine {
		return c(text+" ↓", of(l))
	}
	return c(text)
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
