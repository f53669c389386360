package assess

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/model"
)

// Assessment is what is wrong with the host of one snapshot.
type Assessment struct {
	snap       *model.Snapshot
	conditions []model.Condition // worst first
}

// Of is the assessment of a snapshot: the one that it carries, or, where it
// carries none, one that is made from it alone. Conditions of devices that are
// not in the snapshot, because others were asked for, are left out.
func Of(s *model.Snapshot) *Assessment {
	list := s.Conditions
	if !s.Assessed {
		list = find(s, Default(), func(*model.Device, model.ConditionKind) bool { return false })
		list = withoutImplied(list)
		sorted.Stable(list, func(a, b *model.Condition) int { return compare(a, b) })
	}
	a := &Assessment{snap: s}
	for i := range list {
		if c := &list[i]; c.Device == model.NoDevice || s.Device(c.Device) != nil {
			a.conditions = append(a.conditions, *c)
		}
	}
	return a
}

// Conditions lists all conditions, the worst first.
func (a *Assessment) Conditions() []model.Condition { return a.conditions }

// Device is the state of a device: the worst of its conditions that is a
// state, or one of kind ok.
func (a *Assessment) Device(index int) model.Condition {
	for i := range a.conditions {
		if c := &a.conditions[i]; c.Device == index && c.Kind.Row().State {
			return *c
		}
	}
	return model.Condition{Kind: model.ConditionOK, Device: index}
}

// About lists the conditions of a device, the worst first.
func (a *Assessment) About(index int) []model.Condition {
	var list []model.Condition
	for i := range a.conditions {
		if a.conditions[i].Device == index {
			list = append(list, a.conditions[i])
		}
	}
	return list
}

// Find is the condition of a device that is of a kind.
func (a *Assessment) Find(index int, k model.ConditionKind) (model.Condition, bool) {
	i := slices.IndexFunc(a.conditions, func(c model.Condition) bool { return c.Device == index && c.Kind == k })
	if i < 0 {
		return model.Condition{}, false
	}
	return a.conditions[i], true
}

// Value is the level of a value of a device: that of the worst condition which
// was found by it.
func (a *Assessment) Value(index int, k model.FactKind) (l model.Level) {
	for i := range a.conditions {
		c := &a.conditions[i]
		if c.Device == index && slices.ContainsFunc(c.Facts, func(f model.Fact) bool { return f.Kind == k }) {
			l = max(l, c.Level)
		}
	}
	return l
}

// Worst is the level of the worst condition of the host.
func (a *Assessment) Worst() (l model.Level) {
	for i := range a.conditions {
		l = max(l, a.conditions[i].Level)
	}
	return l
}

// Compare orders devices by how much they need attention, the worst first.
// Devices with the same conditions stay as they are: their places must not
// change with every degree.
func (a *Assessment) Compare(x, y int) int {
	p, q := a.About(x), a.About(y)
	for i := range min(len(p), len(q)) {
		p[i].Device, q[i].Device = 0, 0
		if c := compare(&p[i], &q[i]); c != 0 {
			return c
		}
	}
	return len(q) - len(p)
}

// Count is how many devices are in a state.
type Count struct {
	Kind  model.ConditionKind
	Level model.Level
	N     int
}

// Counts says how many devices are in which state, the worst first and ok
// last.
func (a *Assessment) Counts() []Count {
	t := Tally{}
	for i := range a.snap.Devices {
		t[a.Device(a.snap.Devices[i].Index).Kind]++
	}
	return t.Counts()
}

// Affected lists the processes that a condition affects: those that use the
// device.
func Affected(s *model.Snapshot, c *model.Condition) []*model.Process {
	var list []*model.Process
	for i := range s.Processes {
		p := &s.Processes[i]
		if c.Process != (model.ProcessID{}) && p.ID() == c.Process || c.Device != model.NoDevice && uses(p, c.Device) {
			list = append(list, p)
		}
	}
	return list
}

// Row is all that is wrong with a device, or with several of them in the same
// way: wherever trouble is shown, it is a line.
type Row struct {
	Devices    []int             // kernel indexes; empty: the host
	Conditions []model.Condition // of the first device, the worst first: at least one
	Alerts     []*model.Alert    // that fire about the same
}

// Level is that of the worst condition.
func (r *Row) Level() model.Level { return r.Conditions[0].Level }

// Rows lists the trouble, the worst first: what is a warning or worse. Devices
// that are in the same trouble since the same time share a row.
func (a *Assessment) Rows() []Row {
	var rows []Row
	at := map[int]int{} // row of a device
	for i := range a.conditions {
		c := a.conditions[i]
		if c.Level < model.Warning {
			continue
		}
		if j, ok := at[c.Device]; ok && c.Device != model.NoDevice {
			rows[j].Conditions = append(rows[j].Conditions, c)
			continue
		}
		at[c.Device] = len(rows)
		r := Row{Conditions: []model.Condition{c}}
		if c.Device != model.NoDevice {
			r.Devices = []int{c.Device}
		}
		rows = append(rows, r)
	}
	for i := range rows {
		rows[i].Alerts = a.alerts(&rows[i])
	}
	return a.joined(rows)
}

// joined makes one row of those that say the same of different devices.
func (a *Assessment) joined(rows []Row) []Row {
	var out []Row
	links := linksOf(a.snap, rows)
	for i := range rows {
		j := slices.IndexFunc(out, func(r Row) bool {
			return a.same(&r, &rows[i]) && slices.Equal(links[r.Devices[0]], links[rows[i].Devices[0]])
		})
		if j < 0 || len(rows[i].Devices) == 0 {
			out = append(out, rows[i])
			continue
		}
		out[j].Devices = append(out[j].Devices, rows[i].Devices...)
		out[j].Alerts = append(out[j].Alerts, rows[i].Alerts...)
	}
	return out
}

// same reports whether two rows say the same of different devices.
func (a *Assessment) same(r, q *Row) bool {
	if len(r.Devices) == 0 || len(q.Devices) == 0 {
		return false
	}
	c, d := r.Conditions, q.Conditions
	return slices.EqualFunc(c, d, func(x, y model.Condition) bool {
		gap := x.Since.Sub(y.Since)
		return x.Kind == y.Kind && x.Cause == y.Cause && slices.Equal(x.Facts, y.Facts) && gap < 2*time.Second && gap > -2*time.Second
	}) && slices.Equal(Affected(a.snap, &c[0]), Affected(a.snap, &d[0])) && (len(r.Alerts) > 0) == (len(q.Alerts) > 0)
}

// alerts are those that fire about the conditions of a row.
func (a *Assessment) alerts(r *Row) []*model.Alert {
	var list []*model.Alert
	for i := range a.snap.Alerts {
		if x := &a.snap.Alerts[i]; a.row(x, r) {
			list = append(list, x)
		}
	}
	return list
}

// row reports whether an alert is about a condition of a row.
func (a *Assessment) row(x *model.Alert, r *Row) bool {
	if x.Condition == "" || x.Silenced {
		return false
	}
	bus := ""
	if len(r.Devices) > 0 {
		bus = a.snap.Device(r.Devices[0]).BusID
	}
	return bus == x.BusID && slices.ContainsFunc(r.Conditions, func(c model.Condition) bool { return c.Kind == x.Condition })
}

// Alerts are those that fire about something that is in no row.
func (a *Assessment) Alerts() []*model.Alert {
	rows := a.Rows()
	var list []*model.Alert
	for i := range a.snap.Alerts {
		x := &a.snap.Alerts[i]
		if !x.Silenced && !slices.ContainsFunc(rows, func(r Row) bool { return slices.Contains(r.Alerts, x) }) {
			list = append(list, x)
		}
	}
	return list
}
