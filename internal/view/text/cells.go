package text

import (
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

func boardCell(d *model.Device) cell {
	if b, ok := d.Board.Get(); ok {
		return c(words.Escape(b))
	}
	return c(string(d.Arch))
}

func stateCell(d *model.Device) cell {
	switch d.State {
	case model.StateOK:
		return c(words.State(d), good)
	case model.StateResetting:
		return c("reset", warn)
	case model.StateUnknown:
		return c("unknown", warn)
	default:
		return c(string(d.State), bad)
	}
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

// hotMargin is how near to its limit a chip is worth a colour.
const hotMargin = 5 // °C

func tempCell(d *model.Device, o *Options, large bool) cell {
	t, ok := d.Temperature.Get()
	if !ok {
		return chipCell(d, d.Temperature, nil)
	}
	text, st := words.Temperature(t, o.Scale), plain
	if limit, ok := d.TemperatureLimit.Get(); ok {
		if large {
			text = words.Whole(o.Scale.From(t)) + "/" + nominal(d.TemperatureLimit, words.Whole(o.Scale.From(limit))) + " " + o.Scale.Unit()
		}
		switch {
		case t >= limit:
			st = bad
		case t >= limit-hotMargin:
			st = warn
		}
	}
	return c(text, believed(d, st))
}

func powerCell(d *model.Device) cell {
	w, ok := d.Power.Get()
	if !ok {
		return chipCell(d, d.Power, nil)
	}
	text, st := words.Whole(w), plain
	if limit, ok := d.PowerLimit.Get(); ok {
		text += "/" + nominal(d.PowerLimit, words.Whole(limit))
		if w >= limit {
			st = warn
		}
	}
	return c(text+" W", believed(d, st))
}

// nominal marks a figure of the catalogue: "~160".
func nominal[T any](r model.Reading[T], text string) string {
	if r.Nominal {
		return "~" + text
	}
	return text
}

func pcieCell(d *model.Device) cell {
	gen, width := d.PCIe.Gen, d.PCIe.Width
	if !gen.Known() || !width.Known() {
		return c(missing(d, gen.Status), faint)
	}
	text := strconv.Itoa(gen.V) + ".0 x" + strconv.Itoa(width.V)
	if words.DegradedLink(d) {
		return c(text+" ↓", warn)
	}
	return c(text)
}

// poolCell is what is allocated in a pool, next to its size if that is asked
// for, or the word for why it is not known.
func poolCell(m *model.Memory, pool model.Pool, withTotal bool) cell {
	p := &m.Pools[pool]
	used, ok := p.Used.Get()
	if !ok {
		return c(unknownPool(m, p.Used.Status), faint)
	}
	if total, ok := p.Total.Get(); ok && withTotal {
		return c(words.UsedOfColumn(used, total))
	}
	return c(words.BytesColumn(used))
}

// unknownPool is the word for a figure that is not there: the reading's own,
// or that of the whole memory where nobody filled the reading in.
func unknownPool(m *model.Memory, s model.Status) string {
	if s == model.Absent {
		return words.UntrackedWord(m.Tracking)
	}
	return words.Missing(s)
}

// fullness is how much of the DRAM is allocated; ok is false where there is
// no bar to draw.
func fullness(m *model.Memory) (ratio float64, ok bool) {
	p := &m.Pools[model.DRAM]
	if !p.Used.Known() || !p.Total.Known() || p.Total.V == 0 {
		return 0, false
	}
	return float64(p.Used.V) / float64(p.Total.V), true
}
