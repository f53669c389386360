package board

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// Ids as UMD printed them on real hosts (and, for the p300a, in tt-metal's own
// mock descriptor).
var vectors = []struct {
	name, card string
	silicon    Silicon
	want       uint64
}{
	{"n300 L", "n300", Silicon{Serial: 0x010001451170C0C4, Location: n300Left, Linked: true}, 9956278468},
	{"n300 R", "n300", Silicon{Serial: 0x010001451170C0C4, Location: n300Right, Linked: true}, 14251245764},
	{"n300 L of a T3K", "n300", Silicon{Serial: 0x010001461190302B, Location: n300Left, Linked: true}, 10226774059},
	{"n300 R of a T3K", "n300", Silicon{Serial: 0x010001461190302B, Location: n300Right, Linked: true}, 14521741355},
	{"n150 alone", "n150", Silicon{Serial: 0x010001861180B479}, 72059269368820857},
	{"n150 linked", "n150", Silicon{Serial: 0x010001861180B479, Linked: true}, 5930792057},
	{"n150 as a Galaxy's gateway", "n150", Silicon{Serial: 0x0100018511805226, Linked: true}, 5662331430},
	{"p150b cabled", "p150b", Silicon{Serial: 0x000004123191110E, Linked: true}, 143238000419264},
	{"p150b without cables", "p150b", Silicon{Serial: 0x000004123191110E, ASIC: 0xF5DDD9F78D7E0BEE}, 17716556166399396846},
	{"p300a right", "p300a", Silicon{Serial: 0x000004513190F006, Location: p300Right, Linked: true}, 151896654217408},
	{"p300a left", "p300a", Silicon{Serial: 0x000004513190F006, Location: p300Left, Linked: true}, 151896654217409},
	{"p100a", "p100a", Silicon{ASIC: 0xF5DDD9F78D7E0BEE}, 17716556166399396846},
	{"galaxy blackhole", "galaxy-blackhole", Silicon{ASIC: 0xF4D94A6F90A0C39B, Linked: true, Location: 3}, 17643214858228908955},
	{"galaxy wormhole", "galaxy-wormhole", Silicon{Serial: 0x0100035100000000, Location: 1, TraySerial: "519000C", Linked: true}, 87029889494954051},
}

func TestChipID(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			if got := card(t, v.card).ChipID(v.silicon); got != v.want {
				t.Errorf("%d (%#x), want %d (%#x)", got, got, v.want, v.want)
			}
		})
	}
}

func TestTrayIDRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		serial := rapid.StringMatching(`[0-9A-Z]{7}`).Draw(t, "serial")
		location := rapid.IntRange(1, 8).Draw(t, "location")
		if s, l, ok := splitTrayID(trayID(serial, location)); !ok || s != serial || l != location {
			t.Fatalf("%q %d came back as %q %d, %v", serial, location, s, l, ok)
		}
	})
	for _, id := range []uint64{0, 1, 1 << 56, 9956278468, trayID("519000C", 0), trayID("519000C", 9), trayID("519000c", 1), trayID("51900", 1), ^uint64(0)} {
		t.Run(fmt.Sprintf("%#x", id), func(t *testing.T) {
			if s, l, ok := splitTrayID(id); ok {
				t.Errorf("%#x passes for tray %q slot %d", id, s, l)
			}
		})
	}
}

func TestParseID(t *testing.T) {
	if id, ok := ParseID("010001451170C0C4"); !ok || id != 0x010001451170C0C4 || CodeOf(id) != 0x14 {
		t.Errorf("%#x, %v, code %#x", id, ok, CodeOf(id))
	}
	for _, s := range []string{"", "0", "0000000000000000", "FFFFFFFFFFFFFFFF", "010001451170C0C", "0x0001451170C0C4", "unknown", "010001451170C0C4\n", "+10001451170C0C4", "1_0001451170C0C4"} {
		t.Run(s, func(t *testing.T) {
			if id, ok := ParseID(s); ok {
				t.Errorf("ParseID(%q) = %#x", s, id)
			}
		})
	}
}
