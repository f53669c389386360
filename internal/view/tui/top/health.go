package top

import (
	"math"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/metric"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
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

// condition is the word for the state of a device, and its style.
func (s *State) condition(d *model.Device) (string, cells.Style) {
	return words.State(s.judged, d), cells.Of(s.judged.Device(d.Index).Level)
}

// silent reports whether what is wrong with a device takes the place of its
// values: it gives none.
func silent(d *model.Device) bool { return d.State != model.StateOK && d.StateReason.Cause != "" }

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

// board shows values of the shown snapshot.
func (s *State) board() metric.Board { return metric.Show(s.shown, s.judged) }

// value shows a field of a device.
func (s *State) value(name string, d *model.Device) metric.Shown {
	return s.board().Value(metric.Named(name), d)
}

// text is the text of a field and its style.
func (s *State) text(name string, d *model.Device) (string, cells.Style) {
	v := s.value(name, d)
	return v.Text(), cells.OfNote(v.Level)
}

// textOf is the text of a field with its limit, and its style.
func (s *State) textOf(name string, d *model.Device) (string, cells.Style) {
	v := s.value(name, d)
	return v.Of(), cells.OfNote(v.Level)
}

// link is the PCIe link: "Gen4 x16", with "↓" where it should be better.
func (s *State) link(d *model.Device) (string, cells.Style) {
	v := s.value("pcie.link", d)
	if v.Level > model.Fine {
		return v.Text() + "↓", cells.OfNote(v.Level)
	}
	return v.Text(), cells.Text
}

// beat says how the firmware's heart beats.
func (s *State) beat(d *model.Device) string {
	if age := s.value("heartbeat.age", d); age.Known() && d.State == model.StateHung {
		return "beat stopped " + age.Text() + " ago"
	}
	rate := s.value("heartbeat.rate", d)
	return "beat " + rate.Text()
}

func (s *State) fan(d *model.Device) string {
	v := s.value("fan.speed", d)
	if v.Status == model.Absent {
		return "fan " + words.Nothing
	}
	return "fan " + v.Text()
}

func name(d *model.Device) string { return words.Foreign(d.Board) }
