package event

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/collect/assess"
	"github.com/ttmon/ttmon/internal/field/words"
	"github.com/ttmon/ttmon/internal/model"
)

// links notes model.EventEthernet links that went down, came up, or trained again, and how the
// links of a chip are after its reset.
func (c *comparison) links() {
	was, is := mesh.Of(c.old), mesh.Of(c.now)
	for i := range c.now.Devices {
		c.afterReset(&c.now.Devices[i])
	}
	for i := range is.Edges {
		e := &is.Edges[i]
		old := same(was, e)
		if old == nil {
			old = &mesh.Edge{}
		}
		c.retrained(old, e)
		before, after := len(old.Down()), len(e.Down())
		level, short, text := assess.LevelOf(assess.LinkKind(e)), "link down", words.EdgeDown(e)
		switch {
		case after > before:
		case after < before && after == 0:
			level, short, text = model.Info, "link up", "all channels are up again"
		default:
			continue
		}
		buses := c.buses(e)
		if buses == nil {
			continue
		}
		c.add(model.EventEthernet, level, buses, fmt.Sprintf("%s %s", words.Edge(e), short), "Ethernet link "+words.Edge(e)+": "+text)
	}
}

// buses are the devices at the ends of an edge.
func (c *comparison) buses(e *mesh.Edge) (list []string) {
	d := c.now.Device(e.A.Device)
	if d == nil {
		return nil
	}
	list = []string{d.BusID}
	if other := c.now.Device(e.B.Device); other != nil && other != d {
		list = append(list, other.BusID)
	}
	return list
}

// retrained notes that links of an edge have trained again. Counters that begin at 0
// were reset.
func (c *comparison) retrained(old, e *mesh.Edge) {
	before, ok1 := old.Counts().Retrains.Get()
	after, ok2 := e.Counts().Retrains.Get()
	buses := c.buses(e)
	if !ok1 || !ok2 || after <= before || buses == nil {
		return
	}
	c.add(model.EventEthernet, model.Warning, buses, words.Edge(e)+" retrained",
		fmt.Sprintf("Ethernet link %s has trained again: %s since the reset", words.Edge(e), words.Count(int(after), "retrain")))
}

// afterReset notes how the links of a chip are when they are read for the first time
// after its reset, against before it.
func (c *comparison) afterReset(d *model.Device) {
	if old := c.old.Device(d.Index); old == nil || old.BusID != d.BusID || len(old.Telemetry.Ports) > 0 {
		return
	}
	before, again := 0, 0
	var lost []int
	for i := range d.Telemetry.Ports {
		p := &d.Telemetry.Ports[i]
		if !p.UpBefore.Known() || !p.UpBefore.V {
			continue
		}
		before++
		switch {
		case p.LostInReset():
			lost = append(lost, p.Channel)
		case p.Up.Known():
			again++
		}
	}
	if before == 0 {
		return
	}
	level, short := model.Info, "links back"
	text := fmt.Sprintf("device %d after its reset: %d of %s up as before", d.Index, again, words.Count(before, "Ethernet link"))
	if len(lost) > 0 {
		level, short = model.Critical, "links lost"
		text += ", lost channel " + words.Ranges(lost)
	}
	c.add(model.EventEthernet, level, []string{d.BusID}, fmt.Sprintf("%d %s", d.Index, short), text)
}

// same is an edge of another moment.
func same(m *mesh.Mesh, e *mesh.Edge) *mesh.Edge {
	for i := range m.Edges {
		if o := &m.Edges[i]; o.A == e.A && o.B == e.B {
			return o
		}
	}
	return nil
}

// kernelLog passes on the lines that are new in the kernel's log.
func (c *comparison) kernelLog() {
	last := uint64(0)
	if n := len(c.old.Log); n > 0 {
		last = c.old.Log[n-1].Sequence
	}
	for i := range c.now.Log {
		l := &c.now.Log[i]
		if l.Sequence <= last || len(c.old.Log) == 0 && l.Time.Before(c.old.Time) {
			continue
		}
		var buses []string
		name := "driver"
		if l.BusID != "" {
			buses = []string{l.BusID}
			name = words.Escape(l.BusID)
		}
		for k := range c.now.Devices {
			if d := &c.now.Devices[k]; d.BusID == l.BusID {
				name = fmt.Sprintf("device %d", d.Index)
			}
		}
		from := map[model.LogSource]string{model.LogSMC: " firmware", model.LogDMC: " board controller"}[l.From]
		c.add(model.EventLog, logLevel(l.Level), buses, name+" log", name+from+": "+words.Escape(l.Text))
	}
}

// logLevel is how much a line of the kernel's log matters.
func logLevel(kernel int) model.Level {
	switch {
	case kernel <= 3: // errors
		return model.Critical
	case kernel == 4:
		return model.Warning
	}
	return model.Info
}
