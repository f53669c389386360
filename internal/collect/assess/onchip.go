package assess

import (
	"slices"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/model"
)

// LinkKind is what is wrong with what joins two chips; ok where nothing is, as
// far as that is known.
func LinkKind(e *mesh.Edge) model.ConditionKind {
	up, unknown := e.Up()
	switch {
	case up+unknown == len(e.Channels):
		return model.ConditionOK
	case up+unknown == 0:
		return model.ConditionLinkDown
	}
	return model.ConditionWeakLink
}

// meshLinks finds Ethernet links that should be up and are not, at both of their
// ends. The links of a device that does not work go down with it: that device
// has a condition of its own.
func meshLinks(f *finder) {
	m := mesh.Of(f.snap)
	works := func(index int) bool {
		d := f.snap.Device(index)
		return d != nil && d.State == model.StateOK
	}
	found := map[int]map[model.ConditionKind]*model.Condition{}
	for i := range m.Edges {
		e := &m.Edges[i]
		k := LinkKind(e)
		if k == model.ConditionOK || !works(e.A.Device) || !e.Outside && !works(e.B.Device) {
			continue
		}
		up, _ := e.Up()
		fact := model.Fact{Kind: model.FactChannels, Value: float64(up), Limit: float64(len(e.Channels))}
		for _, end := range ends(e) {
			if found[end] == nil {
				found[end] = map[model.ConditionKind]*model.Condition{}
			}
			c := found[end][k]
			if c == nil {
				c = &model.Condition{Kind: k, Remedy: model.RemedyInnerLink}
				found[end][k] = c
			}
			if cabled(f.snap, e) {
				c.Remedy = model.RemedyLink
			}
			c.Facts = append(c.Facts, fact)
		}
	}
	f.working(func(d *model.Device) {
		for _, k := range []model.ConditionKind{model.ConditionLinkDown, model.ConditionWeakLink} {
			if c := found[d.Index][k]; c != nil {
				f.add(d, *c)
			}
		}
	})
}

// linksOf are the Ethernet links that are wrong at each device, by their places in the
// mesh; nil where no row is about one. Rows about different links are different rows.
func linksOf(s *model.Snapshot, rows []Row) map[int][]int {
	about := slices.ContainsFunc(rows, func(r Row) bool {
		return slices.ContainsFunc(r.Conditions, func(c model.Condition) bool {
			return c.Kind == model.ConditionLinkDown || c.Kind == model.ConditionWeakLink
		})
	})
	if !about {
		return nil
	}
	m := mesh.Of(s)
	links := map[int][]int{}
	for i := range m.Edges {
		e := &m.Edges[i]
		if LinkKind(e) == model.ConditionOK {
			continue
		}
		for _, end := range ends(e) {
			links[end] = append(links[end], i)
		}
	}
	return links
}

// cabled reports whether an edge may be a cable: not between chips of one board, nor of
// one tray of a Galaxy.
func cabled(s *model.Snapshot, e *mesh.Edge) bool {
	if e.Outside {
		return true
	}
	if e.A.Device == e.B.Device {
		return false
	}
	a, b := s.Device(e.A.Device), s.Device(e.B.Device)
	if a == nil || b == nil {
		return true
	}
	sameBoard := a.Serial.Known() && b.Serial.Known() && a.Serial.V == b.Serial.V
	return !sameBoard && (a.Tray == 0 || a.Tray != b.Tray)
}

// ends are the devices at the ends of an edge.
func ends(e *mesh.Edge) []int {
	if e.Outside || e.A.Device == e.B.Device {
		return []int{e.A.Device}
	}
	return []int{e.A.Device, e.B.Device}
}

// modules finds GDDR modules that do not work as they should.
func modules(f *finder) {
	f.working(func(d *model.Device) {
		for _, k := range []model.ConditionKind{model.ConditionMemoryFailed, model.ConditionMemoryErrors} {
			if n := len(BadModules(d, k)); n > 0 {
				f.add(d, model.Condition{Kind: k, Remedy: model.RemedyBoard, Facts: []model.Fact{{Kind: model.FactCount, Value: float64(n)}}})
			}
		}
	})
}

// BadModules are the GDDR modules of a device that are in a condition.
func BadModules(d *model.Device, k model.ConditionKind) (list []int) {
	for i := range d.Telemetry.Modules {
		m := &d.Telemetry.Modules[i]
		bad := m.UncorrectedReads.V || m.UncorrectedWrite.V
		if k == model.ConditionMemoryFailed {
			bad = m.Failed.V || m.Trained.Known() && !m.Trained.V
		}
		if bad {
			list = append(list, m.Index)
		}
	}
	return list
}

// CanFind reports whether a condition of a device would be found: what only the
// firmware knows is found only where ttmond reads it.
func CanFind(d *model.Device, k model.ConditionKind) bool {
	switch k.Row().Reads {
	case model.ReadsTable:
		return d.Telemetry.State == model.TelemetryOK
	case model.ReadsTried:
		return d.Telemetry.State != model.TelemetryOff
	}
	return true
}

// stalledReads finds chips that do not answer a read of their own table.
func stalledReads(f *finder) {
	f.working(func(d *model.Device) {
		if t := &d.Telemetry; t.State == model.TelemetryStalled {
			f.add(d, model.Condition{Kind: model.ConditionReadStalled, Since: t.Since, Remedy: model.RemedyReset})
		}
	})
}
