package gauge

import (
	"math"
	"strconv"

	"github.com/ttmon/ttmon/internal/view/words"
)

// Unit is how the figures of a gauge are written.
type Unit int

// The units. Ratios of 0..1 are written as percentages.
const (
	Bytes Unit = iota
	Rate
	Watts
	Celsius
	Ratio
	Megahertz
	Volts
	Amperes
	RPM
	PerSecond
	Percent // as it is: 100 is all of one core
)

var unitNames = map[Unit]string{
	Watts: "W", Ratio: "%", Megahertz: "MHz", Volts: "V", Amperes: "A", RPM: "rpm", PerSecond: "1/s", Percent: "%",
}

// Say writes a figure with its unit.
func (u Unit) Say(v float64, s words.Scale) string {
	switch u {
	case Bytes:
		return words.Bytes(uint64(max(v, 0)))
	case Rate:
		return words.Rate(v)
	case Celsius:
		return words.Temperature(v, s)
	case Ratio:
		return "~" + words.Percent(v)
	case Volts:
		return words.Fixed(v, 3) + " V"
	case PerSecond:
		return words.Fixed(v, 1) + "/s"
	}
	return words.Whole(v) + " " + unitNames[u]
}

// Axis is the unit of a chart whose scale reaches up to top, and the number
// of the gauge's own units that make one of it.
func (u Unit) Axis(top float64, s words.Scale) (name string, per float64) {
	switch u {
	case Bytes, Rate:
		names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
		i, per := 0, 1.0
		for i+1 < len(names) && top >= 1024*per {
			i, per = i+1, per*1024
		}
		if u == Rate {
			return names[i] + "/s", per
		}
		return names[i], per
	case Celsius:
		return s.Unit(), 1
	case Ratio:
		return "%", 0.01
	}
	return unitNames[u], 1
}

// Number writes a figure with three digits and without its unit, where the
// unit of the axis stands nearby.
func (u Unit) Number(v, per float64, s words.Scale) string {
	if u == Celsius {
		v = s.From(v)
	}
	v /= per
	switch a := math.Abs(v); {
	case a >= 100 || v == math.Trunc(v):
		return words.Whole(v)
	case a >= 10:
		return words.Fixed(v, 1)
	}
	return words.Fixed(v, 2)
}

// Tick writes a number at the axis, in at most four cells.
func (u Unit) Tick(v, per float64, s words.Scale) string {
	if u == Celsius {
		v = s.From(v)
	}
	v /= per
	switch a := math.Abs(v); {
	case a >= 1e5:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a >= 10 || v == math.Trunc(v):
		return words.Whole(v)
	case a >= 1:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	return strconv.FormatFloat(v, 'f', 2, 64)
}
