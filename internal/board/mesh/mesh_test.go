package mesh_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/board/mesh"
	"github.com/ttmon/ttmon/internal/model"
)

// chain is a host of n devices in a row, two channels between neighbours.
func chain(n int) *model.Snapshot {
	s := &model.Snapshot{}
	for i := range n {
		d := model.Device{Index: i, BusID: string(rune('a' + i)), State: model.StateOK, Chips: make([]model.Chip, 1)}
		link := func(channel, to, far int) {
			d.Telemetry.Ports = append(d.Telemetry.Ports, model.EthernetPort{
				Channel: channel, Up: model.Value(true), Link: model.LinkHere, Peer: model.Port{ChipPlace: model.ChipPlace{Device: to}, Channel: far},
			})
		}
		for c := range 2 {
			if i > 0 {
				link(c, i-1, 2+c)
			}
			if i < n-1 {
				link(2+c, i+1, c)
			}
		}
		s.Devices = append(s.Devices, d)
	}
	return s
}

// down takes a port down at one end.
func down(s *model.Snapshot, device, channel int) {
	for i := range s.Devices[device].Telemetry.Ports {
		if p := &s.Devices[device].Telemetry.Ports[i]; p.Channel == channel {
			p.Up = model.Value(false)
		}
	}
}

func TestMesh(t *testing.T) {
	for _, tt := range []struct {
		name         string
		cut          [][2]int // device, channel
		expected, up int
		lost         []model.ChipPlace
	}{
		{"whole", nil, 6, 6, nil},
		{"one channel, as one end says", [][2]int{{1, 2}}, 6, 5, nil},
		{"one channel, as both ends say", [][2]int{{1, 2}, {2, 0}}, 6, 5, nil},
		{"the last device", [][2]int{{3, 0}, {3, 1}}, 6, 4, []model.ChipPlace{{Device: 3}}},
		{"in the middle", [][2]int{{1, 2}, {1, 3}}, 6, 4, []model.ChipPlace{{Device: 2}, {Device: 3}}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := chain(4)
			for _, c := range tt.cut {
				down(s, c[0], c[1])
			}
			m := mesh.Of(s)
			if expected, up := m.Links(); expected != tt.expected || up != tt.up {
				t.Errorf("%d of %d links up, want %d of %d", up, expected, tt.up, tt.expected)
			}
			if diff := cmp.Diff(tt.lost, m.CutOff()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestOutside(t *testing.T) {
	s := chain(2)
	s.Devices[0].Telemetry.Ports = append(s.Devices[0].Telemetry.Ports, model.EthernetPort{Channel: 9, Up: model.Value(false), Link: model.LinkOutside})
	m := mesh.Of(s)
	if expected, up := m.Links(); expected != 3 || up != 2 {
		t.Errorf("%d of %d links up", up, expected)
	}
	if lost := m.CutOff(); len(lost) != 0 {
		t.Errorf("cut off: %v", lost)
	}
}

// Links between chips that are both behind Ethernet are there, not known, and
// neither counted nor a way to anything.
func TestUnread(t *testing.T) {
	place := func(device int, name string) model.ChipPlace { return model.ChipPlace{Device: device, Name: name} }
	s := &model.Snapshot{}
	for i := range 2 {
		s.Devices = append(s.Devices, model.Device{
			Index: i, State: model.StateOK, Chips: []model.Chip{{Name: "L"}, {Name: "R", Remote: true}},
			Telemetry: model.Telemetry{Ports: []model.EthernetPort{
				{Channel: 8, Up: model.Value(i != 0), Link: model.LinkHere, Peer: model.Port{ChipPlace: place(i, "R"), Channel: 0}},
				{Channel: 14, Up: model.Value(true), Link: model.LinkHere, Peer: model.Port{ChipPlace: place(1-i, "L"), Channel: 14}},
			}},
		})
	}
	top := &model.Topology{Links: []model.Ethernet{
		{From: model.Port{ChipPlace: place(0, "R"), Channel: 6}, To: model.Port{ChipPlace: place(1, "R"), Channel: 6}},
		{From: model.Port{ChipPlace: place(0, "L"), Channel: 14}, To: model.Port{ChipPlace: place(1, "L"), Channel: 14}}, // read
	}}
	m := mesh.Of(s)
	m.AddUnread(top)
	if expected, up := m.Links(); expected != 3 || up != 2 || m.Unread() != 1 {
		t.Errorf("%d of %d up, %d not read", up, expected, m.Unread())
	}
	if e := m.Edge(place(0, "R"), place(1, "R")); e == nil || !e.Unread {
		t.Errorf("%+v", e)
	}
	if lost := m.CutOff(); len(lost) != 1 || lost[0] != place(0, "R") {
		t.Errorf("cut off: %v", lost)
	}
	var nothing mesh.Mesh
	if nothing.AddUnread(top); len(nothing.Edges) > 0 {
		t.Errorf("%+v", nothing.Edges)
	}
}

// A link has what both of its ends have counted; what each sends the other receives.
func TestLinkCounts(t *testing.T) {
	s := chain(2)
	near, far := &s.Devices[0].Telemetry.Ports[0], &s.Devices[1].Telemetry.Ports[0]
	near.Retrains, far.Retrains = model.Value[uint32](1), model.Value[uint32](4)
	near.Corrected, far.Corrected = model.Value[uint64](10), model.Value[uint64](5)
	near.Uncorrected, near.CodewordBound = model.Value[uint64](2), model.Exact
	far.Sent, far.Received = model.Value(3.0), model.Value(7.0)
	far.UpBefore, far.Up = model.Value(true), model.Value(false)
	m := mesh.Of(s)
	got := m.Edges[0].Channels[0]
	want := mesh.Channel{
		A: 2, B: 0, Up: model.Value(false), LostInReset: true, Retrains: model.Value[uint32](4),
		Corrected: model.Value[uint64](15), Uncorrected: model.Value[uint64](2), CodewordBound: model.AtLeast, // far's are missing
		AToB: model.Value(7.0), BToA: model.Value(3.0),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	sum := m.Edges[0].Counts()
	if sum.Retrains.V != 4 || !sum.LostInReset || sum.AToB.V != 7 || m.Edges[0].Channels[1].Retrains.Known() {
		t.Errorf("counts %+v of %+v", sum, m.Edges[0].Channels)
	}
}

// Every link is listed once: those whose ends are read, those that the newest
// description of the host no longer has, and those of which no end is read.
func TestAllLinks(t *testing.T) {
	link := func(a, channel, b, far int) model.Ethernet {
		at := func(device, channel int) model.Port {
			return model.Port{ChipPlace: model.ChipPlace{Device: device}, Channel: channel}
		}
		return model.Ethernet{From: at(a, channel), To: at(b, far)}
	}
	for _, tt := range []struct {
		name           string
		s              *model.Snapshot
		described      []model.Ethernet
		links, unknown int
	}{
		{"one of two is described", chain(2), []model.Ethernet{link(0, 2, 1, 0)}, 2, 0},
		{"from the other end", chain(2), []model.Ethernet{link(1, 0, 0, 2)}, 2, 0},
		{"one more is described", chain(2), []model.Ethernet{link(0, 2, 1, 0), link(0, 9, 1, 9)}, 3, 1},
		{"nothing is read", &model.Snapshot{}, []model.Ethernet{link(0, 2, 1, 0)}, 1, 1},
		{"nothing at all", &model.Snapshot{}, nil, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			list := mesh.AllLinks(tt.s, &model.Topology{Links: tt.described})
			unknown := 0
			for _, l := range list {
				if !l.Up.Known() {
					unknown++
				}
			}
			if len(list) != tt.links || unknown != tt.unknown {
				t.Errorf("%d links, %d of them unknown; want %d and %d: %+v", len(list), unknown, tt.links, tt.unknown, list)
			}
		})
	}
}

// A link to another host has its state from the port and its other end from either;
// one that is not read is there, and not known.
func TestAllOutsideLinks(t *testing.T) {
	s := chain(2)
	own := model.ChipPlace{Device: 0}
	remote := model.RemotePort{Own: 7, Chip: 9, Channel: 1}
	s.Devices[0].Telemetry.Ports = append(s.Devices[0].Telemetry.Ports, model.EthernetPort{Channel: 9, Up: model.Value(false), Link: model.LinkOutside})
	top := &model.Topology{Outside: []model.OutsideLink{
		{From: model.Port{ChipPlace: own, Channel: 9}, Remote: remote},
		{From: model.Port{ChipPlace: own, Channel: 10}, Remote: model.RemotePort{Own: 7, Chip: 9, Channel: 2}},
	}}
	var got []mesh.Link
	for _, l := range mesh.AllLinks(s, top) {
		if l.Outside {
			got = append(got, l)
		}
	}
	if len(got) != 2 || got[0].Remote != remote || !got[0].Up.Known() || got[0].Up.V || got[1].Up.Known() || got[1].Remote.Channel != 2 {
		t.Errorf("links to other hosts: %+v", got)
	}
}
