package metric

import (
	"math"
	"strconv"
	"time"

	"github.com/ttmon/ttmon/internal/field/words"
)

// Form is how the numbers of a field are written for people: on screens, in
// reports, at the axes of charts and on the page. --query prints the field's
// Unit and Decimals instead, which scripts rely on.
type Form uint8

// The forms. ByUnit stands for the form that belongs to the field's unit.
const (
	ByUnit Form = iota
	Plain
	Bytes
	Rate
	Watts
	Celsius
	Ratio // of 0..1, written as a percentage
	Estimate
	Percent // 100 is all of it
	Megahertz
	Volts
	Amperes
	RPM
	Seconds
	PerSecond
	PerHour
	Megabits
	Generation
	Lanes
	Nanoseconds // written in seconds
	Lasted      // seconds, written with two units: "2h14m"
	Date        // seconds since 1970, written as the reader's local time
	Load        // of CPU cores, in percent
)

// form is a row of the table of forms.
type form struct {
	unit     string  // behind the number
	per      float64 // how many of the field's own unit make one; 0 means 1
	decimals int
	small    bool   // has its decimals only below ten: "0.3 s", "41 s"
	joined   bool   // no blank before the unit
	before   string // stands before the number
}

var forms = [...]form{
	Plain:       {},
	Bytes:       {unit: "B"},
	Rate:        {unit: "B/s"},
	Watts:       {unit: "W"},
	Celsius:     {unit: "°C"},
	Ratio:       {unit: "%", per: 0.01},
	Estimate:    {unit: "%", per: 0.01, before: "~"},
	Percent:     {unit: "%"},
	Megahertz:   {unit: "MHz"},
	Volts:       {unit: "V", decimals: 3},
	Amperes:     {unit: "A"},
	RPM:         {unit: "rpm"},
	Seconds:     {unit: "s", decimals: 1, small: true},
	PerSecond:   {unit: "/s", decimals: 1, small: true, joined: true},
	PerHour:     {unit: "/h", decimals: 1, small: true, joined: true},
	Megabits:    {unit: "Mbit/s"},
	Generation:  {before: "Gen"},
	Lanes:       {before: "x"},
	Nanoseconds: {unit: "s", per: 1e9, decimals: 1, small: true},
	Lasted:      {},
	Date:        {},
	Load:        {unit: "%", decimals: 1, small: true},
}

// formOf is the form of numbers in a unit of the table.
func formOf(unit string, per float64) Form {
	switch unit {
	case "MiB", "B":
		return Bytes
	case "MiB/s":
		return Rate
	case "W":
		return Watts
	case "C":
		return Celsius
	case "%":
		if per == 0.01 {
			return Ratio
		}
		return Percent
	case "MHz":
		return Megahertz
	case "V":
		return Volts
	case "A":
		return Amperes
	case "rpm":
		return RPM
	case "s":
		if per == 1e9 {
			return Nanoseconds
		}
		return Seconds
	case "1/s":
		return PerSecond
	case "1/h":
		return PerHour
	case "Mbit/s":
		return Megabits
	}
	return Plain
}

// Form is how the field's numbers are written for people.
func (f *Field[S]) Form() Form {
	if f.As != ByUnit {
		return f.As
	}
	return formOf(f.Unit, f.Per)
}

// Format writes a number with its unit: "61 W", "10.2 GiB", "Gen4".
func (f Form) Format(v float64) string {
	switch f {
	case Bytes:
		return words.Bytes(uint64(max(v, 0)))
	case Rate:
		return words.Rate(v)
	case Lasted:
		return words.Duration(time.Duration(v * float64(time.Second)))
	case Date:
		return time.Unix(int64(v), 0).Local().Format("Jan 02 15:04")
	}
	return f.Bare(v) + f.unit()
}

// Bare writes a number without its unit: "61".
func (f Form) Bare(v float64) string {
	t := &forms[f]
	if t.per != 0 {
		v /= t.per
	}
	if t.decimals == 0 || t.small && v >= 9.95 {
		return t.before + words.Whole(v)
	}
	return t.before + words.Fixed(v, t.decimals)
}

// unit is what stands behind a number, with its blank.
func (f Form) unit() string {
	t := &forms[f]
	if t.joined || t.unit == "" {
		return t.unit
	}
	return " " + t.unit
}

// Axis is the unit of a chart whose scale reaches up to top, and how many of
// the field's own unit make one of it.
func (f Form) Axis(top float64) (name string, per float64) {
	switch f {
	case Bytes, Rate:
		names := []string{"B", "KiB", "MiB", "GiB", "TiB"}
		i, per := 0, 1.0
		for i+1 < len(names) && top >= 1024*per {
			i, per = i+1, per*1024
		}
		if f == Rate {
			return names[i] + "/s", per
		}
		return names[i], per
	case PerSecond, PerHour:
		return "1" + forms[f].unit, 1
	}
	if per = forms[f].per; per == 0 {
		per = 1
	}
	return forms[f].unit, per
}

// Number writes a number with three digits and without its unit, where the
// unit of the axis stands nearby.
func (f Form) Number(v, per float64) string {
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
func (f Form) Tick(v, per float64) string {
	v /= per
	switch a := math.Abs(v); {
	case a >= 1e5:
		return strconv.FormatFloat(v, 'g', 2, 64)
	case a >= 10 || v == math.Trunc(v):
		return words.Whole(v)
	case a >= 1:
		return words.Fixed(v, 1)
	}
	return words.Fixed(v, 2)
}

// Decimals is how many decimals people read.
func (f Form) Decimals() int { return forms[f].decimals }

// Adds reports whether values of several devices make a sum that means
// something.
func (f Form) Adds() bool { return f == Bytes || f == Rate || f == Watts || f == Amperes }
