package event

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/assess"
	"github.com/ttmon/ttmon/internal/mesh"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/view/words"
)

// links notes Ethernet links that went down or came up.
func (c *comparison) links() {
	was, is := mesh.Of(c.old), mesh.Of(c.now)
	for i := range is.Edges {
		e := &is.Edges[i]
		old := same(was, e)
		if old == nil {
			old = &mesh.Edge{}
		}
		before, after := len(old.Down()), len(e.Down())
		level, short, text := assess.LevelOf(assess.LinkKind(e)), "link down", words.EdgeDown(e)
		switch {
		case after > before:
		case after < before && after == 0:
			level, short, text = words.Info, "link up", "all channels are up again"
		default:
			continue
		}
		d := c.now.Device(e.A.Device)
		if d == nil {
			continue
		}
		buses := []string{d.BusID}
		if other := c.now.Device(e.B.Device); other != nil && other != d {
			buses = append(buses, other.BusID)
		}
		c.add(Ethernet, level, buses, fmt.Sprintf("%s %s", words.Edge(e), short), "Ethernet link "+words.Edge(e)+": "+text)
	}
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
		c.add(Log, logLevel(l.Level), buses, name+" log", name+from+": "+words.Escape(l.Text))
	}
}

// logLevel is how much a line of the kernel's log matters.
func logLevel(kernel int) words.Level {
	switch {
	case kernel <= 3: // errors
		return words.Critical
	case kernel == 4:
		return words.Warning
	}
	return words.Info
}
