package metric

import (
	"sync"

	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// Shown is the value of a field for a device at one moment, as views show it:
// its text, its limit and how much it matters all come from the table and the
// judge.
type Shown struct {
	Value
	Field *Device
	Level model.Level // what the judge says of it; Fine: nothing
	limit Value
}

// Board shows the values of the devices of one snapshot.
type Board struct {
	snap   *model.Snapshot
	judged *assess.Assessment
}

// Show begins to show a snapshot, temperatures in a scale.
func Show(s *model.Snapshot, a *assess.Assessment) Board {
	return Board{s, a}
}

// Value shows a field of a device.
func (b Board) Value(f *Device, d *model.Device) Shown {
	s := Shown{Value: f.Get(b.snap, d), Field: f}
	if f.Limit != "" {
		s.limit = Named(f.Limit).Get(b.snap, d)
	}
	if f.Fact != "" {
		s.Level = b.judged.Value(d.Index, f.Fact)
	}
	return s
}

// Text is the value: "61 W", "≥9.9 GiB", "yes", or the word for why there is
// none.
func (s *Shown) Text() string {
	if !s.Known() {
		return words.Missing(s.Status)
	}
	if s.Field.Kind == Text || s.Field.Kind == Bool {
		return words.Escape(s.Field.Format(s.Value))
	}
	return words.Mark(s.Bound) + s.Field.Form().Format(s.Num)
}

// Of is the value and its limit: "61/85 W"; a limit of the catalogue has the
// mark of doubt. Where no limit is known it is Text.
func (s *Shown) Of() string {
	if !s.Known() || !s.limit.Known() {
		return s.Text()
	}
	form := s.Field.Form()
	if form == Bytes {
		return words.Mark(s.Bound) + words.UsedOf(uint64(max(s.Num, 0)), uint64(max(s.limit.Num, 0)))
	}
	limit := form.Bare(s.limit.Num)
	if s.limit.Nominal {
		limit = words.Mark(model.Unsure) + limit
	}
	return form.Bare(s.Num) + "/" + limit + form.unit()
}

// Bare is the value without its unit, where that stands nearby: "61".
func (s *Shown) Bare() string {
	if !s.Known() {
		return s.Text()
	}
	return s.Field.Form().Bare(s.Num)
}

// Full is the value in a report: whether it is nominal, or the full reason why
// there is none.
func (s *Shown) Full() string {
	text := s.Text()
	switch {
	case s.Known() && s.Nominal:
		return text + " (nominal)"
	case s.Known():
		return text
	case s.Status == model.Pending:
		text = words.Missing(model.Absent)
	}
	if s.Why != "" {
		text += " (" + words.Escape(s.Why) + ")"
	}
	return text
}

// Ratio is how much of its limit the value is; ok is false where one of them
// is not known.
func (s *Shown) Ratio() (ratio float64, ok bool) {
	if form := s.Field.Form(); s.Known() && (form == Ratio || form == Estimate) {
		return s.Num, true
	}
	if !s.Known() || !s.limit.Known() || s.limit.Num == 0 {
		return 0, false
	}
	return s.Num / s.limit.Num, true
}

// LimitInUnit is what the value is measured against, in the field's Unit; ok is
// false where there is none.
func (s *Shown) LimitInUnit() (limit float64, ok bool) {
	if !s.limit.Known() {
		return 0, false
	}
	if s.Field.Per != 0 {
		return s.limit.Num / s.Field.Per, true
	}
	return s.limit.Num, true
}

// Section is a part of a report about a device.
type Section string

// The sections, by their titles.
const (
	Identity  Section = "Identity"
	Health    Section = "Health"
	Thermal   Section = "Temperature"
	Power     Section = "Power"
	Clocks    Section = "Clocks"
	Activity  Section = "Activity"
	Memory    Section = "Memory"
	PCIe      Section = "PCIe"
	Firmware  Section = "Firmware"
	Telemetry Section = "Firmware Telemetry" // what ttmond reads of the chip itself
	GDDR      Section = "GDDR"
	Ethernet  Section = "Ethernet Links"
)

// Sections lists them, the most asked for first.
func Sections() []Section {
	return []Section{Health, Thermal, Power, Clocks, Activity, Telemetry, GDDR, Ethernet, Memory, PCIe, Identity, Firmware}
}

// Report lists the fields of a section with what they show for a device. What
// hardly any device has is left out where it is missing.
func (b Board) Report(section Section, d *model.Device) []Shown {
	fields := registry().bySection[section]
	if d.Telemetry.State == model.TelemetryOff {
		switch section {
		case Telemetry:
			fields = fields[:1] // that it is off
		case GDDR, Ethernet:
			return nil
		}
	}
	var list []Shown
	for _, f := range fields {
		s := b.Value(f, d)
		if !s.Known() && s.Status == model.Absent && f.Sparse {
			continue
		}
		list = append(list, s)
	}
	return list
}

// index finds fields of devices quickly. It is made once, when a view first
// asks.
type index struct {
	byName    map[string]*Device
	bySection map[Section][]*Device
	headed    []*Device
}

var registry = sync.OnceValue(func() index {
	list := Devices()
	x := index{byName: make(map[string]*Device, len(list)), bySection: map[Section][]*Device{}}
	for i := range list {
		f := &list[i]
		x.byName[f.Name] = f
		if f.Section != "" {
			x.bySection[f.Section] = append(x.bySection[f.Section], f)
		}
		if f.Head != "" {
			x.headed = append(x.headed, f)
		}
	}
	return x
})

// Named is the field of devices with a name. A view that asks for one that is
// not there has a bug.
func Named(name string) *Device {
	f, ok := registry().byName[name]
	if !ok {
		panic("BUG: there is no metric " + name)
	}
	return f
}

// Headed lists the fields that have a heading: the values that every view of
// many devices shows, as far as there is room.
func Headed() []*Device { return registry().headed }
