package top

import (
	"math"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/view/words"
)

// load is the style of a bar of memory by how full it is.
func load(ratio float64) cells.Style { return fill(assess.Fill(ratio)) }

// fill is the style of a bar whose value has a level.
func fill(l model.Level) cells.Style {
	if l > model.Fine {
		return cells.Of(l)
	}
	return cells.Fill
}

// level is the style of a value of a device: plain unless a condition was found
// by it.
func (s *State) level(d *model.Device, k model.FactKind) cells.Style {
	return cells.OfNote(s.judged.Value(d.Index, k))
}

// condition is the word for the state of a device, and its style.
func (s *State) condition(d *model.Device) (string, cells.Style) {
	return words.State(s.judged, d), cells.Of(s.judged.Device(d.Index).Level)
}

// silent reports whether what is wrong with a device takes the place of its
// values: it gives none.
func silent(d *model.Device) bool { return d.State != model.StateOK && d.StateReason.Cause != "" }

// ratio is a/b, or NaN where one of them is missing.
func ratio[T ~uint64 | ~float64](a, b model.Reading[T]) float64 {
	if !a.Known() || !b.Known() || b.V == 0 {
		return math.NaN()
	}
	return float64(a.V) / float64(b.V)
}

// fullness is how full a pool is, or NaN where that cannot be told; soft, if
// it is not exact.
func fullness(m *model.Memory, p model.Pool) (r float64, soft bool) {
	r, bound, ok := words.Ratio(p, &m.Pools[p])
	if !ok {
		return math.NaN(), false
	}
	return r, bound != model.Exact
}

// used says the use of a pool, or why it is not known: "10.2/24.0 GiB".
func used(m *model.Memory, p model.Pool) string { return words.Pool(p, &m.Pools[p], m.Tracking) }

func (s *State) temperature(d *model.Device) string {
	return words.Reading(d.Temperature, func(t float64) string { return words.Temperature(t, s.scale()) })
}

func activity(d *model.Device) string {
	return words.Reading(d.Activity.Ratio, func(r float64) string { return "~" + words.Percent(r) })
}

// beat says how the firmware's heart beats.
func beat(d *model.Device) string {
	if age, ok := d.HeartbeatAge.Get(); ok && d.State == model.StateHung {
		return "beat stopped " + words.Whole(age) + " s ago"
	}
	return "beat " + words.Reading(d.HeartbeatRate, func(r float64) string { return words.Whole(r) + "/s" })
}

func fan(d *model.Device) string {
	if d.Fan.Status == model.Absent {
		return "fan " + words.Nothing
	}
	return "fan " + words.Reading(d.Fan, words.Whole) + " rpm"
}

// link says the PCIe link: "Gen4 x16", with "↓" where it should be better.
func (s *State) link(d *model.Device) string {
	out := words.Link(d.PCIe.Gen, d.PCIe.Width)
	if out == "" {
		return words.Missing(d.PCIe.Gen.Status)
	}
	if s.judged.Value(d.Index, model.FactLinkGen) > model.Fine {
		out += "↓"
	}
	return out
}

func name(d *model.Device) string { return words.Foreign(d.Board) }
