package board

import (
	"fmt"
	"testing"
)

func TestGalaxyPosition(t *testing.T) {
	for _, c := range []struct {
		card, bus  string
		tray, slot int
		index      int
	}{
		{"galaxy-wormhole", "0000:c1:00.0", 1, 1, 0},
		{"galaxy-wormhole", "0000:C8:00.0", 1, 8, 7},
		{"galaxy-wormhole", "0000:81:00.0", 2, 1, 8},
		{"galaxy-wormhole", "0000:05:00.0", 3, 5, 20},
		{"galaxy-wormhole", "0000:48:00.0", 4, 8, 31},
		{"galaxy-blackhole", "0000:01:00.0", 1, 1, 0},
		{"galaxy-blackhole", "0001:48:00.0", 2, 8, 15},
		{"galaxy-blackhole", "0000:c3:00.0", 3, 3, 18},
		{"galaxy-blackhole", "0000:88:00.0", 4, 8, 31},
	} {
		t.Run(c.card+" "+c.bus, func(t *testing.T) {
			b := card(t, c.card)
			tray, slot, ok := b.GalaxyPosition(c.bus, false)
			if !ok || tray != c.tray || slot != c.slot || GalaxyIndex(tray, slot) != c.index {
				t.Errorf("%s at %s: tray %d slot %d index %d, %v", c.card, c.bus, tray, slot, GalaxyIndex(tray, slot), ok)
			}
			if _, _, ok := b.GalaxyPosition(c.bus, true); ok {
				t.Errorf("%s at %s: a position in a virtual machine, where bus numbers mean nothing", c.card, c.bus)
			}
		})
	}
	for _, bus := range []string{"0000:c0:00.0", "0000:c9:00.0", "0000:11:00.0", "0000:f1:00.0", "", "c1:00.0", "0000:zz:00.0", "0000-c1:00.0"} {
		t.Run(bus, func(t *testing.T) {
			if tray, slot, ok := card(t, "galaxy-wormhole").GalaxyPosition(bus, false); ok || tray != 0 || slot != 0 {
				t.Errorf("%q is at tray %d slot %d", bus, tray, slot)
			}
		})
	}
	if _, _, ok := card(t, "n150").GalaxyPosition("0000:c1:00.0", false); ok {
		t.Error("an n150 has a place in a Galaxy")
	}
}

func TestGalaxyBusIsTheInverse(t *testing.T) {
	for _, name := range []string{"galaxy-wormhole", "galaxy-blackhole"} {
		t.Run(name, func(t *testing.T) {
			b, seen := card(t, name), map[int]bool{}
			for tray := 1; tray <= 4; tray++ {
				for slot := 1; slot <= 8; slot++ {
					bus := fmt.Sprintf("0000:%02x:00.0", b.GalaxyBus(tray, slot))
					if gotTray, gotSlot, ok := b.GalaxyPosition(bus, false); !ok || gotTray != tray || gotSlot != slot {
						t.Errorf("%s tray %d slot %d is on bus %s, which is tray %d slot %d", name, tray, slot, bus, gotTray, gotSlot)
					}
					seen[GalaxyIndex(tray, slot)] = true
				}
			}
			if len(seen) != b.Chips || !seen[0] || !seen[31] {
				t.Errorf("%s: indexes %v", name, seen)
			}
		})
	}
}
