package board

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ttmon/ttmon/internal/model"
)

// host numbers endpoints as the driver does and gives them addresses that sort
// the other way round, so that no rule may confuse the two.
func host(t *testing.T, endpoints ...Endpoint) []Endpoint {
	t.Helper()
	for i := range endpoints {
		e := &endpoints[i]
		e.Index, e.Arch = i, card(t, e.Card).Arch
		if e.BusID == "" {
			e.BusID = fmt.Sprintf("0000:%02x:00.0", 0xF0-i)
		}
	}
	return endpoints
}

func resolver(endpoints []Endpoint) *Resolver {
	r := new(Resolver)
	r.Update(endpoints)
	return r
}

func (r *Resolver) one(s Sighting) Match { return r.Match([]Sighting{s})[0] }

func TestMatchBySysfs(t *testing.T) {
	r := resolver(host(t,
		Endpoint{Card: "n150", Serial: 0x010001861180B479},
		Endpoint{Card: "n300", Serial: 0x010001451170C0C4, ASICID: 0x1111},
		Endpoint{Card: "p150b", Serial: 0x000004123191110E, ASICID: 0x2222},
		Endpoint{Card: "p100a", Serial: 0x0000043000000001, ASICID: 0xF5DDD9F78D7E0BEE},
		Endpoint{Card: "galaxy-blackhole", Serial: 0x0000047000000001, ASICID: 0xF4D94A6F90A0C39B},
		Endpoint{Card: "galaxy-blackhole", Serial: 0x0000047000000001, ASICID: 0xF4D94A6F90A0C39C},
		Endpoint{Card: "p300a", Serial: 0x000004513190F006, ASICID: 0x3333},
		Endpoint{Card: "p300a", Serial: 0x000004513190F006, ASICID: 0x4444},
	))
	exact := func(device, slot int, name string, remote bool) Match {
		return Match{Certainty: Exact, Device: device, Slot: slot, Name: name, Remote: remote, Basis: model.BySysfs}
	}
	none := Match{Device: model.NoDevice}
	for _, c := range []struct {
		name string
		id   uint64
		want Match
	}{
		{"n150 alone", 72059269368820857, exact(0, 0, "", false)},
		{"n150 linked", 5930792057, exact(0, 0, "", false)},
		{"n300 L", 9956278468, exact(1, 0, "L", false)},
		{"n300 R", 14251245764, exact(1, 1, "R", true)},
		{"n300 without links", 0x010001451170C0C4, exact(1, 0, "L", false)},
		{"a Wormhole's ASIC id is not UMD's", 0x1111, none},
		{"p150b cabled", 143238000419264, exact(2, 0, "", false)},
		{"p150b alone", 0x2222, exact(2, 0, "", false)},
		{"p100a", 17716556166399396846, exact(3, 0, "", false)},
		{"p100a has no links", 0x0000043000000001 << 5, none},
		{"galaxy", 17643214858228908955, exact(4, 0, "", false)},
		{"next in the galaxy", 17643214858228908956, exact(5, 0, "", false)},
		{"p300 without links", 0x4444, exact(7, 0, "", false)},
		{"p300 right", 151896654217408, Match{Certainty: Ambiguous, Device: model.NoDevice, Name: "R", Candidates: []int{6, 7}}},
		{"p300 left", 151896654217409, Match{Certainty: Ambiguous, Device: model.NoDevice, Name: "L", Candidates: []int{6, 7}}},
		{"mock without ids", 0, none},
		{"mock without ids, chip 1", 1 << 32, none},
		{"another host's n300", 10226774059, none},
		{"a Wormhole galaxy that is not here", 87029889494954051, none},
	} {
		t.Run(c.name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, r.one(Sighting{ID: c.id})); diff != "" {
				t.Errorf("%s (%d):\n%s", c.name, c.id, diff)
			}
		})
	}
}

const right, left = 151896654217408, 151896654217409

func p300(t *testing.T) []Endpoint {
	return host(t, Endpoint{Card: "p300a", Serial: 0x000004513190F006}, Endpoint{Card: "p300a", Serial: 0x000004513190F006}, Endpoint{Card: "p150a", Serial: 0x0000040000000001, ASICID: 9})
}

func TestP300ByDescriptor(t *testing.T) {
	r := resolver(p300(t))
	r.Learn([]Placement{{ID: right, BusID: "0000:f0:00.0", Device: 1}}) // the address counts, not the number
	got := r.Match([]Sighting{{ID: right}, {ID: left}})
	want := []Match{
		{Certainty: Inferred, Device: 0, Name: "R", Basis: model.ByDescriptor},
		{Certainty: Inferred, Device: 1, Name: "L", Basis: model.BySibling},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	r = resolver(p300(t))
	r.Learn([]Placement{{ID: left, Device: 0}}) // an old descriptor without addresses
	if m := r.one(Sighting{ID: left}); m.Certainty != Inferred || m.Device != 0 {
		t.Errorf("by kernel index: %+v", m)
	}
}

func TestP300ForeignDescriptorsAreIgnored(t *testing.T) {
	for name, p := range map[string]Placement{
		"not one of the pair": {ID: left, BusID: "0000:ee:00.0", Device: 2},
		"no such address":     {ID: left, BusID: "0000:01:00.0", Device: 0},
		"no place at all":     {ID: left, Device: model.NoDevice},
		"not a chip of ours":  {ID: 4242, BusID: "0000:f0:00.0", Device: 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := resolver(p300(t))
			r.Learn([]Placement{p})
			if m := r.one(Sighting{ID: left}); m.Certainty != Ambiguous {
				t.Errorf("%s: %+v", name, m)
			}
			if m := r.one(Sighting{ID: 4242}); m.Device != model.NoDevice {
				t.Errorf("%s: a mock chip landed on device %d", name, m.Device)
			}
		})
	}
}

func TestP300ByOrder(t *testing.T) {
	for _, c := range []struct {
		name   string
		id     uint64
		number uint32
		open   []int
		want   Match
	}{
		// addresses fall as indexes rise: device 2 is first, then 1, then 0
		{"all open", left, 2, []int{0, 1, 2}, Match{Certainty: Inferred, Device: 0, Name: "L", Basis: model.ByOrder}},
		{"only the pair", left, 0, []int{1, 0}, Match{Certainty: Inferred, Device: 1, Name: "L", Basis: model.ByOrder}},
		{"only one visible", right, 0, []int{0}, Match{Certainty: Inferred, Device: 0, Name: "R", Basis: model.ByOrder}},
		{"number leads to another board", left, 0, []int{0, 1, 2}, Match{Certainty: Ambiguous, Device: model.NoDevice, Name: "L", Candidates: []int{0, 1}}},
		{"number out of range", left, 3, []int{0, 1, 2}, Match{Certainty: Ambiguous, Device: model.NoDevice, Name: "L", Candidates: []int{0, 1}}},
		{"no live process", left, 0, nil, Match{Certainty: Ambiguous, Device: model.NoDevice, Name: "L", Candidates: []int{0, 1}}},
		{"devices that are gone", left, 0, []int{17}, Match{Certainty: Ambiguous, Device: model.NoDevice, Name: "L", Candidates: []int{0, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := resolver(p300(t))
			if diff := cmp.Diff(c.want, r.one(Sighting{ID: c.id, DeviceID: c.number, Open: c.open})); diff != "" {
				t.Errorf("%s:\n%s", c.name, diff)
			}
		})
	}
}

func TestWhatWasLearnedStays(t *testing.T) {
	r := resolver(p300(t))
	r.one(Sighting{ID: left, DeviceID: 0, Open: []int{0, 1}}) // device 1
	if m := r.one(Sighting{ID: left}); m.Device != 1 {
		t.Errorf("after its process died: %+v", m)
	}
	if m := r.one(Sighting{ID: right, DeviceID: 0, Open: []int{1}}); m.Device != 0 || m.Basis != model.BySibling {
		t.Errorf("two chips at one address: %+v", m)
	}
	r.Learn([]Placement{{ID: left, BusID: "0000:f0:00.0"}})
	if m := r.one(Sighting{ID: left}); m.Device != 0 || m.Basis != model.ByDescriptor {
		t.Errorf("a descriptor must outrank the order: %+v", m)
	}
	if m := r.one(Sighting{ID: right}); m.Device != 1 {
		t.Errorf("and the sibling follow: %+v", m)
	}

	moved := p300(t)
	slices.Reverse(moved[:2])
	for i := range moved {
		moved[i].Index = i + 10 // plugged again, other numbers
	}
	r.Update(moved)
	if m := r.one(Sighting{ID: left}); m.Device != 11 {
		t.Errorf("at another number: %+v", m)
	}
	r.Update(moved[:1]) // the one that had it is gone
	if m := r.one(Sighting{ID: left}); m.Certainty != Ambiguous || !slices.Equal(m.Candidates, []int{10}) {
		t.Errorf("with its device gone: %+v", m)
	}
}

func TestEqualSerialNumbersAreNeverGuessed(t *testing.T) {
	r := resolver(host(t, Endpoint{Card: "n150", Serial: 0x0100018000000001}, Endpoint{Card: "n150", Serial: 0x0100018000000001}))
	r.Learn([]Placement{{ID: 0x0100018000000001, BusID: "0000:f0:00.0"}})
	m := r.one(Sighting{ID: 0x0100018000000001, DeviceID: 0, Open: []int{0}})
	if m.Certainty != Ambiguous || !slices.Equal(m.Candidates, []int{0, 1}) {
		t.Errorf("two boards write into one region, and it was put on one of them: %+v", m)
	}

	four := host(t, p300(t)[0], p300(t)[0], p300(t)[0], p300(t)[0])
	for i := range four {
		four[i].BusID = fmt.Sprintf("0000:0%d:00.0", i)
	}
	r = resolver(four)
	if m := r.one(Sighting{ID: left, DeviceID: 0, Open: []int{0}}); m.Certainty != Ambiguous || len(m.Candidates) != 4 {
		t.Errorf("two p300 of one serial number: %+v", m)
	}
}

func TestMixedGenerations(t *testing.T) {
	endpoints := append(p300(t), Endpoint{Card: "n150", Serial: 0x010001861180B479, BusID: "0000:01:00.0"})
	r := resolver(host(t, endpoints...))
	// UMD leaves the Wormhole out although it opened it to look.
	if m := r.one(Sighting{ID: left, DeviceID: 1, Open: []int{0, 1, 2, 3}}); m.Device != 1 {
		t.Errorf("%+v", m)
	}
}

func TestOldDriverWithoutASICID(t *testing.T) {
	r := resolver(host(t, Endpoint{Card: "p100a", Serial: 0x0000043000000001}, Endpoint{Card: "p150a", Serial: 0x0000040000000001, ASICID: 77}))
	const asic = 17716556166399396846
	if m := r.one(Sighting{ID: asic}); m.Certainty != Ambiguous || len(m.Candidates) != 1 || m.Candidates[0] != 0 {
		t.Errorf("it may be the one that does not tell its ASIC id, and is called %+v", m)
	}
	if m := r.one(Sighting{ID: asic, DeviceID: 0, Open: []int{0, 1}}); m.Device != model.NoDevice {
		t.Errorf("the order leads to a device whose ids are all known: %+v", m)
	}
	if m := r.one(Sighting{ID: asic, DeviceID: 1, Open: []int{0, 1}}); m.Certainty != Inferred || m.Device != 0 {
		t.Errorf("by order: %+v", m)
	}
	if m := r.one(Sighting{ID: asic}); m.Certainty != Inferred || m.Device != 0 {
		t.Errorf("remembered: %+v", m)
	}
}

func TestMetalsOwnNumbers(t *testing.T) {
	r := resolver(host(t, Endpoint{Card: "p150a", Serial: 0x0000040000000001, ASICID: 77}, Endpoint{Card: "p150a", Serial: 0x0000040000000002, ASICID: 78}))
	if m := r.one(Sighting{ID: 1, DeviceID: 1, Open: []int{0, 1}}); m.Certainty != Inferred || m.Device != 0 {
		t.Errorf("a process that has devices open: %+v", m)
	}
	if m := r.one(Sighting{ID: 1, DeviceID: 1}); m.Certainty != Unmatched {
		t.Errorf("a mock run: %+v", m)
	}
	if m := r.one(Sighting{ID: 1, DeviceID: 0, Open: []int{0, 1}}); m.Certainty != Unmatched {
		t.Errorf("name and number differ: %+v", m)
	}
}

func TestSoleID(t *testing.T) {
	for _, c := range []struct {
		e    Endpoint
		slot int
		want uint64
	}{
		{Endpoint{Card: "n300", Serial: 0x010001451170C0C4}, 1, 14251245764},
		{Endpoint{Card: "n300", Serial: 0x010001451170C0C4}, 0, 0}, // depends on its links
		{Endpoint{Card: "n150", Serial: 0x010001861180B479}, 0, 0},
		{Endpoint{Card: "p100a", ASICID: 5}, 0, 5},
		{Endpoint{Card: "p100a"}, 0, 0},
		{Endpoint{Card: "galaxy-blackhole", Serial: 1, ASICID: 6}, 0, 6},
		{Endpoint{Card: "galaxy-wormhole", Serial: 0x0100035100000000, Slot: 1}, 0, 0},
		{Endpoint{Card: "p150a", Serial: 3, ASICID: 4}, 0, 0},
		{Endpoint{Card: "p150a", ASICID: 4}, 0, 0}, // it would have another one with its serial number
	} {
		t.Run(fmt.Sprintf("%s slot %d, serial %#x", c.e.Card, c.slot, c.e.Serial), func(t *testing.T) {
			e := host(t, c.e)[0]
			if got, ok := e.SoleID(c.slot); ok != (c.want != 0) || ok && got != c.want {
				t.Errorf("%s slot %d: %d, %v, want %d", e.Card, c.slot, got, ok, c.want)
			}
		})
	}
}

func TestEndpointOf(t *testing.T) {
	d := model.Device{
		Index: 3, BusID: "0000:c1:00.0", Arch: model.Wormhole, Board: model.Value("unknown"),
		Serial: model.Value("0100035100000000"), ASICID: model.Missing[string](model.Absent, ""), Tray: 1, Slot: 1,
	}
	want := Endpoint{Index: 3, BusID: "0000:c1:00.0", Card: "galaxy-wormhole", Arch: model.Wormhole, Serial: 0x0100035100000000, Tray: 1, Slot: 1}
	if got := EndpointOf(&d); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestContradicted: what was learned goes when the process that accounts for
// the chip turns out not to have the device open.
func TestContradicted(t *testing.T) {
	endpoints, ids := wormholeGalaxy(t, true)
	r := resolver(endpoints)
	first := []int{0, 1, 2, 3, 4, 5, 6, 7}
	if m := r.one(Sighting{ID: ids[8], DeviceID: 0, Open: first}); m.Device != 0 {
		t.Fatalf("something else was learned from half of a mesh: %+v", m)
	}
	second := []int{8, 9, 10, 11, 12, 13, 14, 15}
	if m := r.one(Sighting{ID: ids[8], DeviceID: 0, Open: second}); m.Device != 8 || m.Basis != model.ByTray {
		t.Errorf("the contradicted tray was kept: %+v", m)
	}
	if m := r.one(Sighting{ID: ids[9]}); m.Device != 9 {
		t.Errorf("its neighbour: %+v", m)
	}
}

// TestOrderContradicted: the same process opens the rest of its devices, and
// its numbers then say something else. While they disagree among themselves,
// nothing is believed.
func TestOrderContradicted(t *testing.T) {
	endpoints, ids := wormholeGalaxy(t, true)
	r := resolver(endpoints)
	var all []int
	for i := range endpoints {
		all = append(all, i)
	}
	number := func(index int) (n uint32) { // in the order of addresses
		for i := range endpoints {
			if endpoints[i].BusID < endpoints[index].BusID {
				n++
			}
		}
		return n
	}
	half := Sighting{ID: ids[8], DeviceID: 0, Open: all[:8]}
	if m := r.one(half); m.Device != 0 {
		t.Fatalf("something else was learned from half of a mesh: %+v", m)
	}
	// It has opened all, and its first region still has the old number.
	both := []Sighting{{ID: ids[8], DeviceID: number(0), Open: all}, {ID: ids[9], DeviceID: number(9), Open: all}}
	for _, m := range r.Match(both) {
		if m.Certainty != Ambiguous {
			t.Errorf("two numbers that contradict each other: %+v", m)
		}
	}
	both[0].DeviceID = number(8)
	for i, m := range r.Match(both) {
		if m.Device != 8+i {
			t.Errorf("chip %d: %+v", 8+i, m)
		}
	}
	// A descriptor stands against any order.
	r.Learn([]Placement{{ID: ids[8], BusID: endpoints[8].BusID}})
	if m := r.one(Sighting{ID: ids[8], DeviceID: number(0), Open: all}); m.Device != 8 {
		t.Errorf("against the descriptor: %+v", m)
	}
}

func TestStateIsHandedOn(t *testing.T) {
	galaxy, ids := wormholeGalaxy(t, true)
	r := resolver(galaxy)
	r.Learn([]Placement{{ID: ids[3], BusID: galaxy[3].BusID}})
	next := resolver(galaxy)
	next.Restore(r.Export())
	if m := next.one(Sighting{ID: ids[4]}); m.Device != 4 {
		t.Errorf("a tray: %+v", m)
	}
	pair := resolver(p300(t))
	pair.Learn([]Placement{{ID: left, Device: 0}})
	successor := resolver(p300(t))
	successor.Restore(pair.Export())
	if m := successor.one(Sighting{ID: left}); m.Device != 0 || m.Basis != model.ByDescriptor {
		t.Errorf("a chip: %+v", m)
	}
}

// Who has a device open whose ids the driver does not tell can account for ever
// other chips: they do not add up.
func TestWhatWasLearnedIsBounded(t *testing.T) {
	var r Resolver
	r.Update([]Endpoint{{Index: 0, BusID: "0000:01:00.0", Card: "p100a", Arch: model.Blackhole, Serial: 0x0000043000000001}})
	for id := range uint64(3 * maxPins) {
		m := r.Match([]Sighting{{ID: 1<<40 + id, Open: []int{0}}})[0]
		if m.Device != 0 || m.Certainty != Inferred {
			t.Fatalf("chip %d: %+v", id, m)
		}
	}
	if n := len(r.Export()); n > maxPins {
		t.Errorf("%d chips are remembered, more than %d", n, maxPins)
	}
}
