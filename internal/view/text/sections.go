package text

import (
	"fmt"
	"strconv"

	"github.com/ttmon/ttmon/internal/metric"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/tui/cells"
	"github.com/ttmon/ttmon/internal/words"
)

func (r *report) health(d *model.Device) {
	r.title(1, "Health")
	r.fact(2, "State", words.State(r.assessed, d))
	for _, c := range r.assessed.About(d.Index) {
		r.fact(2, "Condition", words.ConditionLine(r.snap, &c))
		r.fact(3, "To do", orNA(words.Remedy(r.snap, &c, []int{d.Index})))
	}
	if reason := words.StateReason(d); reason != "" {
		r.fact(2, "Reason", reason)
	}
	if !d.ReadAt.IsZero() {
		r.fact(2, "Last Read", d.ReadAt.In(r.o.zone()).Format("2006-01-02 15:04:05.000"))
	}
	r.fields(2, metric.Health, d)
}

// firmwareTelemetry is what only the chip's firmware knows.
func (r *report) firmwareTelemetry(d *model.Device) {
	t := &d.Telemetry
	if t.State == model.TelemetryOff {
		return
	}
	r.title(1, "Firmware Telemetry")
	if t.Way == model.ByExporter {
		r.fact(2, "Source", string(t.Way))
	}
	if !t.ReadAt.IsZero() {
		r.fact(2, "Last Read", t.ReadAt.In(r.o.zone()).Format("2006-01-02 15:04:05.000"))
	}
	r.fields(2, metric.Telemetry, d)
	r.title(2, string(metric.GDDR))
	r.fields(3, metric.GDDR, d)
	r.modules(t)
	r.links(d)
}

func (r *report) modules(t *model.Telemetry) {
	celsius := func(v float64) string { return metric.Celsius.Format(v) }
	for i := range t.Modules {
		m := &t.Modules[i]
		text := "trained"
		switch {
		case !m.Trained.Known():
			text = words.Missing(m.Trained.Status)
		case m.Failed.V:
			text = "failed"
		case !m.Trained.V:
			text = "not trained"
		}
		if m.Top.Known() && m.Bottom.Known() {
			text += ", top " + celsius(m.Top.V) + ", bottom " + celsius(m.Bottom.V)
		}
		if m.CorrectedReads.Known() {
			text += fmt.Sprintf(", corrected %s%d", words.Mark(m.CorrectedBound), m.CorrectedReads.V+m.CorrectedWrites.V)
		}
		if m.UncorrectedReads.V || m.UncorrectedWrite.V {
			text += ", uncorrected errors"
		}
		r.fact(3, "Module "+strconv.Itoa(m.Index), text)
	}
}

func (r *report) links(d *model.Device) {
	t := &d.Telemetry
	if len(t.Ports) == 0 {
		return
	}
	r.title(2, string(metric.Ethernet))
	r.fields(3, metric.Ethernet, d)
	for i := range t.Ports {
		p := &t.Ports[i]
		if !p.Expected() && !p.Up.V {
			continue // nothing is there
		}
		r.fact(3, "Channel "+strconv.Itoa(p.Channel), words.LinkState(p)+words.LinkCounts(p))
	}
}

func (r *report) memory(d *model.Device) {
	r.title(1, "Memory (allocated by buffers)")
	r.pools(2, &d.Memory)
	for i := range d.Chips {
		c := &d.Chips[i]
		name := strconv.Itoa(i)
		if c.Name != "" {
			name = words.Escape(c.Name)
		}
		r.title(2, "Chip "+name)
		r.fact(3, "Id", say(c.ID, func(v uint64) string { return strconv.FormatUint(v, 10) }))
		r.fact(3, "Remote", yesNo(c.Remote))
		if c.Remote {
			r.remoteSensors(c)
		}
		r.fact(3, "Region", orNA(words.Escape(c.Region)))
		if len(d.Chips) > 1 {
			r.pools(3, &c.Memory)
		}
	}
	for i := range r.snap.StaleSlots {
		if g := &r.snap.StaleSlots[i]; g.Device == d.Index {
			r.staleSlot(2, g)
		}
	}
}

// remoteSensors are the values of a chip behind Ethernet, with their source.
func (r *report) remoteSensors(c *model.Chip) {
	temperature, power := c.Temperature, c.Power
	if c.SensorsFrom == "" && temperature.Why == "" {
		temperature, power = model.Missing[float64](model.Absent, words.RemoteUnread), model.Missing[float64](model.Absent, words.RemoteUnread)
	}
	from := func(text string) string {
		if c.SensorsFrom != "" {
			text += " (" + words.Escape(string(c.SensorsFrom)) + ")"
		}
		return text
	}
	r.fact(3, "Temperature", say(temperature, func(v float64) string { return from(metric.Celsius.Format(v)) }))
	r.fact(3, "Power", say(power, func(v float64) string { return from(metric.Watts.Format(v)) }))
}

func (r *report) pools(depth int, m *model.Memory) {
	tracking := m.Tracking
	if tracking == "" {
		tracking = model.TrackAbsent
	}
	r.fact(depth, "Tracking", string(tracking))
	r.notes(depth, words.Reasons(m.Tracking, m.Doubts, r.snap.Source))
	for _, pool := range model.Pools() {
		p := &m.Pools[pool]
		name := words.PoolName(pool)
		value := words.FigureOr(p.Used, m.Tracking)
		if pool == model.L1 && p.Used.Known() {
			name += " (buffers)"
		}
		if t, ok := p.Total.Get(); ok {
			value += totalOf(pool, p) + words.Bytes(t)
			if p.Total.Nominal {
				value += " (nominal)"
			}
		}
		r.fact(depth, name, value)
		if pool == model.CB && m.CB != "" && p.Used.Known() {
			r.fact(depth+1, "Counts", words.CBMeaning(m.CB))
		}
		if p.Occupied.Known() {
			r.fact(depth+1, "Occupied", words.Figure(p.Occupied))
		}
		for _, f := range []struct {
			name string
			v    model.Reading[uint64]
		}{{"Free", p.Free}, {"Largest Free Block", p.LargestFree}, {"Largest Free on a Core, Least", p.CoreLeast}, {"Largest Free on a Core, Most", p.CoreMost}} {
			if f.v.Known() {
				r.fact(depth+1, f.name, words.Bytes(f.v.V))
			}
		}
	}
	if text := words.InferredL1(m.Inferred); text != "" {
		r.fact(depth, "CB and KERNEL", text)
	}
	r.fact(depth, "Stale (of dead processes)", words.FigureOr(m.Stale, m.Tracking))
}

// totalOf stands between what buffers asked for and how much there is. Of L1
// the two do not make a ratio.
func totalOf(pool model.Pool, p *model.PoolUse) string {
	switch _, _, ok := words.Ratio(pool, p); {
	case !p.Used.Known():
		return ", of "
	case pool == model.L1 && !ok:
		return ", allocator size "
	default:
		return " of "
	}
}

// notes say what memory figures leave out, a line for each thing.
func (r *report) notes(depth int, list []string) {
	for _, text := range list {
		r.fact(depth, "Note", text)
	}
}

func (r *report) staleSlot(depth int, g *model.StaleSlot) {
	r.title(depth, "Left by a Dead Process")
	r.fact(depth+1, "Process ID", strconv.Itoa(g.PID)+" (as it saw itself)")
	r.fact(depth+1, "Name", orNA(words.Escape(g.Name)))
	r.fact(depth+1, "Region", words.Escape(g.Region))
	for _, pool := range model.Pools() {
		if g.Bytes[pool].Positive() {
			r.fact(depth+1, words.PoolName(pool), words.Figure(g.Bytes[pool]))
		}
	}
	if !g.Updated.IsZero() {
		r.fact(depth+1, "Last Written", g.Updated.In(r.o.zone()).Format("2006-01-02 15:04:05"))
	}
	r.fact(depth+1, "Region Still in Use", yesNo(g.Mapped))
}

func (r *report) pids(d *model.Device) {
	r.title(1, "Processes")
	any := false
	if d.Lock.Held.Known() {
		r.fact(2, "Chip Locked (by UMD)", lock(d))
	}
	for i := range r.snap.Processes {
		p := &r.snap.Processes[i]
		for j := range p.Devices {
			if u := &p.Devices[j]; u.Device == d.Index && p.State != model.Hidden { // those are counted below
				r.process(2, p, u)
				any = true
			}
		}
	}
	for _, doubt := range d.Doubts {
		r.fact(2, "Note", words.DoubtAndCure(doubt, r.snap.Source))
	}
	if d.HiddenFDs > 0 {
		r.fact(2, "Outside this PID Namespace", strconv.Itoa(d.HiddenFDs)+" open descriptors")
		any = true
	}
	if !any {
		r.Line("        None", cells.Text)
	}
}

// lock says whether a program has started the chip, and which.
func lock(d *model.Device) string {
	if pid, ok := d.Lock.PID.Get(); ok && d.Lock.Held.V {
		return "yes, by process " + strconv.Itoa(pid) + " (as it numbers itself)"
	}
	return yesNo(d.Lock.Held.V)
}

func (r *report) process(depth int, p *model.Process, u *model.DeviceUse) {
	r.fact(depth, "Process ID", strconv.Itoa(p.PID))
	depth++
	r.fact(depth, "State", string(p.State))
	if p.State == model.Exited {
		r.fact(depth, "Open Descriptors", say(u.OpenFDs, strconv.Itoa)+", inherited by others")
		return
	}
	fields, values := metric.ReportProcess(r.snap, p)
	for i, f := range fields {
		r.fact(depth, f.Title, f.Full(values[i]))
	}
	r.fact(depth, "Open Descriptors", say(u.OpenFDs, strconv.Itoa))
	if u.Inherited {
		r.fact(depth, "Inherited", "yes: it did not open the device itself")
	}
	for _, pool := range model.Pools() {
		r.fact(depth, words.PoolName(pool), words.FigureOr(u.Memory[pool], u.Tracking))
	}
	r.fact(depth, "Memory Source", orNA(words.Escape(string(u.Source))))
	r.notes(depth, words.UseReasons(p, u, r.snap.Source))
}

// unmatchedChips lists accounted chips that belong to no device of this host,
// and what dead processes left on them.
func (r *report) unmatchedChips() {
	for i := range r.snap.Unmatched {
		c := &r.snap.Unmatched[i]
		r.Newline()
		if len(c.Candidates) > 0 {
			r.title(0, "Chip behind one of Several Devices")
			r.fact(1, "Devices", words.Ranges(c.Candidates))
		} else {
			r.title(0, "Chip behind none of this Host's Devices (a mock or simulator run)")
		}
		r.fact(1, "Id", say(c.ID, func(v uint64) string { return strconv.FormatUint(v, 10) }))
		r.fact(1, "Region", orNA(words.Escape(c.Region)))
		r.pools(1, &c.Memory)
	}
	for i := range r.snap.StaleSlots {
		if g := &r.snap.StaleSlots[i]; g.Device == model.NoDevice {
			r.Newline()
			r.staleSlot(0, g)
		}
	}
}
