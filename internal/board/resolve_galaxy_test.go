package board

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

var traySerials = []string{"519000C", "519000Q", "519000V", "5190A0K"}

// wormholeGalaxy is a Galaxy of 32 chips as the driver numbers them; without
// places it is one in a virtual machine.
func wormholeGalaxy(t *testing.T, places bool) (endpoints []Endpoint, ids []uint64) {
	b := card(t, "galaxy-wormhole")
	for tray := 1; tray <= 4; tray++ {
		for slot := 1; slot <= 8; slot++ {
			e := Endpoint{
				Index: GalaxyIndex(tray, slot), BusID: fmt.Sprintf("0000:%02x:00.0", b.GalaxyBus(tray, slot)),
				Card: b.Card, Arch: b.Arch, Serial: 0x0100035100000000,
			}
			if places {
				e.Tray, e.Slot = tray, slot
			}
			endpoints = append(endpoints, e)
			ids = append(ids, b.ChipID(Silicon{Location: slot, TraySerial: traySerials[tray-1], Linked: true}))
		}
	}
	return endpoints, ids
}

func TestWormholeGalaxyTray(t *testing.T) {
	endpoints, ids := wormholeGalaxy(t, true)
	r := resolver(endpoints)
	m := r.one(Sighting{ID: ids[0]})
	if m.Certainty != Ambiguous || fmt.Sprint(m.Candidates) != "[0 8 16 24]" {
		t.Errorf("a slot without its tray: %+v", m)
	}

	// One process that sees everything: addresses 01…08 come first, which is tray 3.
	all := make([]int, 32)
	for i := range all {
		all[i] = i
	}
	if m := r.one(Sighting{ID: ids[17], DeviceID: 1, Open: all}); m.Certainty != Inferred || m.Device != 17 {
		t.Errorf("by order: %+v", m)
	}
	for i, id := range ids {
		m := r.one(Sighting{ID: id})
		if tray3 := i/8 == 2; tray3 && (m.Device != i || m.Basis != model.ByTray) || !tray3 && m.Certainty != Ambiguous {
			t.Errorf("chip %d after one chip of tray 3 was placed: %+v", i, m)
		}
	}

	// A second serial number for a tray that has one is a mock run.
	if m := r.one(Sighting{ID: ids[1], DeviceID: 1, Open: all}); m.Certainty != Ambiguous {
		t.Errorf("tray 3 has two serial numbers: %+v", m)
	}
	// Of two orders that contradict each other the later one is believed: the
	// earlier may have been of a mesh that was half opened.
	if m := r.one(Sighting{ID: ids[18], DeviceID: 8 + 2, Open: all}); m.Device != 26 {
		t.Errorf("another order for tray 3: %+v", m)
	}
	r.Learn([]Placement{{ID: ids[18], BusID: endpoints[2].BusID}, {ID: ids[2], BusID: endpoints[18].BusID}})
	if got := r.Match([]Sighting{{ID: ids[20]}, {ID: ids[4]}}); got[0].Device != 4 || got[1].Device != 20 {
		t.Errorf("a descriptor must outrank the order: %+v", got)
	}
}

func TestWormholeGalaxySlotMustFit(t *testing.T) {
	endpoints, ids := wormholeGalaxy(t, true)
	r := resolver(endpoints)
	r.Learn([]Placement{{ID: ids[0], BusID: endpoints[1].BusID}})
	if m := r.one(Sighting{ID: ids[0], DeviceID: 0, Open: []int{1}}); m.Certainty != Ambiguous {
		t.Errorf("slot 1 was put into slot 2: %+v", m)
	}
}

func TestWormholeGalaxyInAVirtualMachine(t *testing.T) {
	endpoints, ids := wormholeGalaxy(t, false)
	r := resolver(endpoints)
	if m := r.one(Sighting{ID: ids[5]}); m.Certainty != Ambiguous || len(m.Candidates) != 32 {
		t.Errorf("%+v", m)
	}
	if m := r.one(Sighting{ID: ids[5], DeviceID: 0, Open: []int{5}}); m.Certainty != Inferred || m.Device != 5 {
		t.Errorf("%+v", m)
	}
	if m := r.one(Sighting{ID: ids[6]}); m.Certainty != Ambiguous {
		t.Errorf("nothing follows for the next chip, bus numbers mean nothing here: %+v", m)
	}
}

func BenchmarkMatchGalaxy(b *testing.B) {
	var t testing.T
	endpoints, ids := wormholeGalaxy(&t, true)
	sightings := make([]Sighting, len(ids))
	for i, id := range ids {
		sightings[i].ID = id
	}
	r := resolver(endpoints)
	for _, i := range []int{0, 8, 16, 24} {
		r.Learn([]Placement{{ID: ids[i], BusID: endpoints[i].BusID}})
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Update(endpoints)
		r.Match(sightings)
	}
}
