// Package mesh is how the chips of a host are joined over Ethernet, and which of
// the links work, as far as the firmware tells.
//
// It only reads snapshots. A link is known from the ports of the chips at its
// ends; what lies between two chips is one edge, however many channels it has.
package mesh

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/sorted"
)

// Mesh is the chips of a host and what joins them.
type Mesh struct {
	Chips []Chip
	Edges []Edge // by their ends
}

// Chip is a place for a chip.
type Chip struct {
	model.ChipPlace
	Tray, Slot int // of a Galaxy; 0 elsewhere
	State      model.State
	Told       bool // its own ports are known; of others only what is at the other end
}

// Edge is all that joins two chips, or a chip and another host.
type Edge struct {
	A, B    model.ChipPlace
	Outside bool // B is on another host
	// Unread: neither end is read, as between chips that are both behind
	// Ethernet. UMD has found the links; whether they are up is not known.
	Unread bool
	// Channels are those of A, in order.
	Channels []Channel
}

// Channel is one link of an edge.
type Channel struct {
	A, B     int // its number at each end
	Up       model.Reading[bool]
	Retrains model.Reading[uint32]
}

// Of makes the mesh of a snapshot from the ports whose other end is known.
func Of(s *model.Snapshot) *Mesh {
	m := &Mesh{}
	for i := range s.Devices {
		d := &s.Devices[i]
		for k := range d.Chips {
			m.Chips = append(m.Chips, Chip{ChipPlace: model.ChipPlace{Device: d.Index, Name: d.Chips[k].Name}, Tray: d.Tray, Slot: d.Slot, State: d.State, Told: !d.Chips[k].Remote && len(d.Telemetry.Ports) > 0})
		}
	}
	for i := range s.Devices {
		d := &s.Devices[i]
		own := model.ChipPlace{Device: d.Index, Name: ownName(d)}
		for k := range d.Telemetry.Ports {
			m.add(own, &d.Telemetry.Ports[k])
		}
	}
	m.sort()
	return m
}

func (m *Mesh) sort() {
	for i := range m.Edges {
		e := &m.Edges[i]
		sorted.By(e.Channels, func(a, b *Channel) int { return cmp.Compare(a.A, b.A) })
	}
	sorted.By(m.Edges, func(a, b *Edge) int {
		return cmp.Or(cmp.Compare(a.A.Device, b.A.Device), cmp.Compare(a.A.Name, b.A.Name), cmp.Compare(a.B.Device, b.B.Device), cmp.Compare(a.B.Name, b.B.Name))
	})
}

// ownName is the name of the chip whose ports a device tells of.
func ownName(d *model.Device) string {
	for i := range d.Chips {
		if !d.Chips[i].Remote {
			return d.Chips[i].Name
		}
	}
	return ""
}

func less(a, b model.ChipPlace) bool {
	return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Name, b.Name)) < 0
}

// add adds a port. A link whose ends both tell of it is down if either says so.
func (m *Mesh) add(own model.ChipPlace, p *model.EthernetPort) {
	if !p.Expected() {
		return
	}
	e := Edge{A: own, B: p.Peer.ChipPlace, Outside: p.Link == model.LinkOutside}
	c := Channel{A: p.Channel, B: p.Peer.Channel, Up: p.Up, Retrains: p.Retrains}
	if e.Outside {
		e.B = model.ChipPlace{Device: model.NoDevice}
	} else if less(e.B, e.A) {
		e.A, e.B, c.A, c.B = e.B, e.A, c.B, c.A
	}
	i := slices.IndexFunc(m.Edges, func(o Edge) bool { return o.A == e.A && o.B == e.B })
	if i < 0 {
		i = len(m.Edges)
		m.Edges = append(m.Edges, e)
	}
	edge := &m.Edges[i]
	k := slices.IndexFunc(edge.Channels, func(o Channel) bool { return o.A == c.A && (o.B == c.B || e.Outside) })
	if k < 0 {
		edge.Channels = append(edge.Channels, c)
		return
	}
	if old := &edge.Channels[k]; !old.Up.Known() || c.Up.Known() && !c.Up.V {
		old.Up = c.Up
	}
}

// AddUnread adds the links that UMD has found between chips of which neither tells
// of its ports. Where nothing is read at all, nothing is added: UMD's description
// does not say which links are up.
func (m *Mesh) AddUnread(t *model.Topology) {
	known := len(m.Edges)
	if known == 0 {
		return
	}
	for i := range t.Links {
		l := &t.Links[i]
		if m.Told(l.From.ChipPlace) || m.Told(l.To.ChipPlace) {
			continue
		}
		m.add(l.From.ChipPlace, &model.EthernetPort{
			Channel: l.From.Channel, Link: model.LinkHere, Peer: l.To,
			Up: model.Missing[bool](model.Absent, "neither of the two chips is read"),
		})
	}
	for i := known; i < len(m.Edges); i++ {
		m.Edges[i].Unread = true
	}
	m.sort()
}

// Up counts the channels of an edge that are up, and those whose state is not
// known.
func (e *Edge) Up() (up, unknown int) {
	for _, c := range e.Channels {
		switch {
		case !c.Up.Known():
			unknown++
		case c.Up.V:
			up++
		}
	}
	return up, unknown
}

// Down are the channels that are down.
func (e *Edge) Down() (list []Channel) {
	for _, c := range e.Channels {
		if c.Up.Known() && !c.Up.V {
			list = append(list, c)
		}
	}
	return list
}

// Links counts the links of all edges that are read: how many are expected, and
// how many are up.
func (m *Mesh) Links() (expected, up int) {
	for i := range m.Edges {
		if m.Edges[i].Unread {
			continue
		}
		n, _ := m.Edges[i].Up()
		expected, up = expected+len(m.Edges[i].Channels), up+n
	}
	return expected, up
}

// Unread counts the links of which neither end is read.
func (m *Mesh) Unread() (n int) {
	for i := range m.Edges {
		if m.Edges[i].Unread {
			n += len(m.Edges[i].Channels)
		}
	}
	return n
}

// Edge is what joins two chips; nil: nothing does.
func (m *Mesh) Edge(a, b model.ChipPlace) *Edge {
	if less(b, a) {
		a, b = b, a
	}
	if i := slices.IndexFunc(m.Edges, func(e Edge) bool { return !e.Outside && e.A == a && e.B == b }); i >= 0 {
		return &m.Edges[i]
	}
	return nil
}

// CutOff are the chips that cannot be reached any more from the rest, because all
// ways to them are down: the smaller part of every part of the mesh that fell
// apart. Links that are not read join nothing.
func (m *Mesh) CutOff() (lost []model.ChipPlace) {
	whole := m.parts(func(e *Edge) bool { return !e.Unread })
	now := m.parts(func(e *Edge) bool { up, unknown := e.Up(); return !e.Unread && up+unknown > 0 })
	for _, part := range whole {
		var pieces [][]model.ChipPlace
		for _, piece := range now {
			if slices.Contains(part, piece[0]) {
				pieces = append(pieces, piece)
			}
		}
		slices.SortStableFunc(pieces, func(a, b []model.ChipPlace) int { return cmp.Compare(len(b), len(a)) })
		for _, piece := range pieces[min(1, len(pieces)):] {
			lost = append(lost, piece...)
		}
	}
	sorted.By(lost, func(a, b *model.ChipPlace) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Name, b.Name))
	})
	return lost
}

// Told reports whether a chip's own ports are known.
func (m *Mesh) Told(p model.ChipPlace) bool {
	return slices.ContainsFunc(m.Chips, func(c Chip) bool { return c.ChipPlace == p && c.Told })
}

// parts are the sets of chips that edges join.
func (m *Mesh) parts(joins func(*Edge) bool) (parts [][]model.ChipPlace) {
	seen := map[model.ChipPlace]bool{}
	for _, c := range m.Chips {
		if seen[c.ChipPlace] {
			continue
		}
		seen[c.ChipPlace] = true
		part := []model.ChipPlace{c.ChipPlace}
		for i := 0; i < len(part); i++ {
			for k := range m.Edges {
				e := &m.Edges[k]
				other := e.B
				if e.B == part[i] {
					other = e.A
				}
				if !e.Outside && (e.A == part[i] || e.B == part[i]) && !seen[other] && joins(e) {
					seen[other] = true
					part = append(part, other)
				}
			}
		}
		parts = append(parts, part)
	}
	return parts
}
