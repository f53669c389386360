// Package mesh is how the chips of a host are joined over Ethernet, and which of
// the links work, as far as the firmware tells.
//
// It only reads snapshots. A link is known from the ports of the chips at its
// ends; what lies between two chips is one edge, however many channels it has.
package mesh

import (
	"cmp"
	"slices"

	"github.com/ttmon/ttmon/internal/base/sorted"
	"github.com/ttmon/ttmon/internal/model"
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
	PortsKnown bool // its own ports are known; of others only what is at the other end
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
	A, B        int // its number at each end
	Up          model.Reading[bool]
	LostInReset bool                  // it was up before a chip at one of its ends was reset
	Retrains    model.Reading[uint32] // of the end that has more
	// Codewords, of both ends together: each counts what it receives.
	Corrected, Uncorrected model.Reading[uint64]
	CodewordBound          model.Bound
	AToB, BToA             model.Reading[float64] // traffic in bytes per second
	Remote                 model.RemotePort       // the other end, of a link to another host
}

// channelOf is a port as a link, seen from its own end.
func channelOf(p *model.EthernetPort) Channel {
	return Channel{
		A: p.Channel, B: p.Peer.Channel, Up: p.Up, LostInReset: p.LostInReset(), Retrains: p.Retrains,
		Corrected: p.Corrected, Uncorrected: p.Uncorrected, CodewordBound: p.CodewordBound, AToB: p.Sent, BToA: p.Received, Remote: p.Remote,
	}
}

// turned is the link seen from its other end.
func (c Channel) turned() Channel {
	c.A, c.B, c.AToB, c.BToA = c.B, c.A, c.BToA, c.AToB
	return c
}

// merge adds what the other end says.
func (c *Channel) merge(o Channel) {
	if !c.Up.Known() || o.Up.Known() && !o.Up.V {
		c.Up = o.Up
	}
	c.LostInReset = c.LostInReset || o.LostInReset
	if !c.Retrains.Known() || o.Retrains.Known() && o.Retrains.V > c.Retrains.V {
		c.Retrains = o.Retrains
	}
	c.CodewordBound = max(c.CodewordBound, o.CodewordBound)
	if c.Corrected.Known() != o.Corrected.Known() || c.Uncorrected.Known() != o.Uncorrected.Known() {
		c.CodewordBound = max(c.CodewordBound, model.AtLeast) // those of one direction are missing
	}
	c.Corrected, c.Uncorrected = plus(c.Corrected, o.Corrected), plus(c.Uncorrected, o.Uncorrected)
	if !c.AToB.Known() {
		c.AToB = o.AToB
	}
	if !c.BToA.Known() {
		c.BToA = o.BToA
	}
}

func plus(a, b model.Reading[uint64]) model.Reading[uint64] {
	switch {
	case !a.Known():
		return b
	case !b.Known():
		return a
	}
	return model.Value(a.V + b.V)
}

// Of makes the mesh of a snapshot from the ports whose other end is known.
func Of(s *model.Snapshot) *Mesh {
	m := &Mesh{}
	for i := range s.Devices {
		d := &s.Devices[i]
		for k := range d.Chips {
			m.Chips = append(m.Chips, Chip{ChipPlace: model.ChipPlace{Device: d.Index, Name: d.Chips[k].Name}, Tray: d.Tray, Slot: d.Slot, State: d.State, PortsKnown: !d.Chips[k].Remote && len(d.Telemetry.Ports) > 0})
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

// ownName is the name of the chip whose ports a device reports.
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

// add adds a port. A link that both ends report is down if either reports it down.
func (m *Mesh) add(own model.ChipPlace, p *model.EthernetPort) {
	if !p.Expected() {
		return
	}
	e := Edge{A: own, B: p.Peer.ChipPlace, Outside: p.Link == model.LinkOutside}
	c := channelOf(p)
	if e.Outside {
		e.B = model.ChipPlace{Device: model.NoDevice}
	} else if less(e.B, e.A) {
		e.A, e.B, c = e.B, e.A, c.turned()
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
	edge.Channels[k].merge(c)
}

// AddUnread adds the links that UMD has found between chips of which neither reports
// its ports. Where nothing is read at all, nothing is added: UMD's description
// does not say which links are up.
func (m *Mesh) AddUnread(t *model.Topology) {
	if len(m.Edges) > 0 {
		m.addUnread(t)
	}
}

// unread is a link that UMD has found as a port of which no more is known.
func unread(l *model.Ethernet) *model.EthernetPort {
	return &model.EthernetPort{
		Channel: l.From.Channel, Link: model.LinkHere, Peer: l.To,
		Up: model.Missing[bool](model.Absent, "neither of the two chips is read"),
	}
}

// has reports whether a link that UMD has found is among the edges.
func (m *Mesh) has(l *model.Ethernet) bool {
	from, to := l.From, l.To
	if less(to.ChipPlace, from.ChipPlace) {
		from, to = to, from
	}
	e := m.Edge(from.ChipPlace, to.ChipPlace)
	return e != nil && slices.ContainsFunc(e.Channels, func(c Channel) bool { return c.A == from.Channel && c.B == to.Channel })
}

func (m *Mesh) addUnread(t *model.Topology) {
	known := len(m.Edges)
	for i := range t.Links {
		l := &t.Links[i]
		if m.PortsKnown(l.From.ChipPlace) || m.PortsKnown(l.To.ChipPlace) {
			continue
		}
		m.add(l.From.ChipPlace, unread(l))
	}
	for i := known; i < len(m.Edges); i++ {
		m.Edges[i].Unread = true
	}
	m.sort()
}

// Link is one link with both of its ends.
type Link struct {
	From, To model.ChipPlace
	Outside  bool // To is on another host
	Unread   bool
	Channel
}

// AllLinks lists every link: those that are expected, and those that UMD has found
// between chips that are not read, in order of their ends.
func AllLinks(s *model.Snapshot, t *model.Topology) (list []Link) {
	m := Of(s)
	m.addUnread(t)
	for i := range t.Links { // a chip's ports may be known, and not what they lead to
		l := &t.Links[i]
		if !m.has(l) {
			m.add(l.From.ChipPlace, unread(l))
		}
	}
	m.addOutside(t)
	m.sort()
	for i := range m.Edges {
		e := &m.Edges[i]
		for _, c := range e.Channels {
			list = append(list, Link{From: e.A, To: e.B, Outside: e.Outside, Unread: e.Unread, Channel: c})
		}
	}
	return list
}

// addOutside adds the links to other hosts that UMD has found and of which no state
// is known. What a description names of one that is there is added to it.
func (m *Mesh) addOutside(t *model.Topology) {
	for i := range t.Outside {
		l := &t.Outside[i]
		at := slices.IndexFunc(m.Edges, func(e Edge) bool { return e.Outside && e.A == l.From.ChipPlace })
		k := -1
		if at >= 0 {
			k = slices.IndexFunc(m.Edges[at].Channels, func(c Channel) bool { return c.A == l.From.Channel })
		}
		if k < 0 {
			m.add(l.From.ChipPlace, &model.EthernetPort{
				Channel: l.From.Channel, Link: model.LinkOutside, Remote: l.Remote,
				Up: model.Missing[bool](model.Absent, "the chip is not read"),
			})
		} else if c := &m.Edges[at].Channels[k]; !c.Remote.Known() {
			c.Remote = l.Remote
		}
	}
}

// Counts are the sums over the channels of an edge. A counter that is not known of
// any is absent.
func (e *Edge) Counts() (sum Channel) {
	retrains := model.Reading[uint32]{}
	for i := range e.Channels {
		c := &e.Channels[i]
		if c.Retrains.Known() {
			retrains = model.Value(retrains.V + c.Retrains.V)
		}
		sum.LostInReset = sum.LostInReset || c.LostInReset
		sum.Corrected, sum.Uncorrected = plus(sum.Corrected, c.Corrected), plus(sum.Uncorrected, c.Uncorrected)
		sum.CodewordBound = max(sum.CodewordBound, c.CodewordBound)
		sum.AToB, sum.BToA = plusRate(sum.AToB, c.AToB), plusRate(sum.BToA, c.BToA)
	}
	sum.Retrains = retrains
	return sum
}

func plusRate(a, b model.Reading[float64]) model.Reading[float64] {
	switch {
	case !a.Known():
		return b
	case !b.Known():
		return a
	}
	return model.Value(a.V + b.V)
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

// CutOffBy lists those of CutOff that are at an end of an edge, or behind it: that the
// edge is down is why, or part of why, they cannot be reached.
func (m *Mesh) CutOffBy(e *Edge) []model.ChipPlace {
	lost := m.CutOff()
	for _, piece := range m.parts(func(e *Edge) bool { up, unknown := e.Up(); return !e.Unread && up+unknown > 0 }) {
		if !slices.Contains(piece, e.A) && (e.Outside || !slices.Contains(piece, e.B)) {
			lost = slices.DeleteFunc(lost, func(p model.ChipPlace) bool { return slices.Contains(piece, p) })
		}
	}
	return lost
}

// PortsKnown reports whether a chip's own ports are known.
func (m *Mesh) PortsKnown(p model.ChipPlace) bool {
	return slices.ContainsFunc(m.Chips, func(c Chip) bool { return c.ChipPlace == p && c.PortsKnown })
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
