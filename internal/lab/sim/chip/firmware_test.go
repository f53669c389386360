package chip

import (
	"fmt"
	"strings"
	"testing"
)

func TestFirmwareTags(t *testing.T) {
	for _, tt := range []struct {
		firmware, card string
		tag            Tag
		want           bool
	}{
		{"", "n150", AIClk, true},
		{"", "n150", FanRPM, false},
		{"", "n150", ThermTrips, false},
		{"", "n150", TTFlash, true},
		{"", "p150a", TTFlash, false},
		{"", "p150a", FanRPM, true},
		{"fanless", "p150a", FanRPM, false},
		{"no-telemetry", "p150a", AIClk, false},
		{"labels-only", "n150", AIClk, false},
		{"omit=14+15", "n150", AXIClk, false},
		{"omit=14+15", "n150", ARCClk, true},
		{"18.3", "n150", AIClk, false}, // the table came with 18.4
		{"18.4", "n150", AIClk, true},
		{"18.6", "n150", ASICIDHigh, false},
		{"18.7.0", "n150", ASICIDHigh, true},
		{"18.11", "n150", TDPLimit, false},
		{"19.0.0", "n150", TDPLimit, true},
		{"18.3.0", "p150a", AIClk, true},
		{"18.3.0", "p150a", ASICIDHigh, false},
		{"18.7", "p150a", TDPLimit, false},
		{"18.8.0.1", "p150a", TDPLimit, true},
	} {
		t.Run(fmt.Sprintf("%s %s %d", tt.firmware, tt.card, tt.tag), func(t *testing.T) {
			f, err := ParseFirmware(tt.firmware)
			if err != nil {
				t.Fatal(err)
			}
			s, err := SpecOf(tt.card)
			if err != nil {
				t.Fatal(err)
			}
			if got := f.Publishes(s, tt.tag); got != tt.want {
				t.Errorf("firmware %q on %s publishes tag %d: %v, want %v", tt.firmware, tt.card, tt.tag, got, tt.want)
			}
		})
	}
}

func TestParseBoards(t *testing.T) {
	specs, err := ParseBoards("n150, 2xn300,p300c,4xp150b")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, s := range specs {
		names = append(names, s.Card)
	}
	if got := strings.Join(names, " "); got != "n150 n300 n300 p300c p150b p150b p150b p150b" {
		t.Errorf("boards %s", got)
	}
	for _, bad := range []string{"", "x", "2x", "0xn150", "-1xn150", "n150,,n150", "e150", "2 xn150", "99999999999999999999xn150"} {
		if specs, err := ParseBoards(bad); err == nil {
			t.Errorf("%q gave %d boards", bad, len(specs))
		}
	}
	if len(Cards()) != 12 {
		t.Errorf("%d boards can be simulated, the driver names 12: %v", len(Cards()), Cards())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"n150", "2xn300,galaxy-wormhole", "19.4.0,fanless", "omit=14+15", "99.99", "1.2.3.4.5", ",,", "omit="} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if specs, err := ParseBoards(s); err == nil {
			n := 0
			for _, spec := range specs {
				n += spec.Endpoints
			}
			if n == 0 || n > maxDevices {
				t.Errorf("%q gives %d devices", s, n)
			}
		}
		if fw, err := ParseFirmware(s); err == nil {
			for _, tag := range fw.Omit {
				if tag == 0 {
					t.Errorf("%q omits tag 0", s)
				}
			}
		}
	})
}
