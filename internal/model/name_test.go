package model

import "testing"

func TestAmongNamed(t *testing.T) {
	d := &Device{
		Index: 3, Path: "/dev/tenstorrent/3", BusID: "0000:c1:00.0",
		Serial: Value("0100011111700003"), ASICID: Value("9D4A0000000000AB"),
	}
	for _, name := range []string{"3", "0000:c1:00.0", "0000:C1:00.0", "c1:00.0", "c1:00", "0000:c1:00", "/dev/tenstorrent/3", "0100011111700003", "9d4a0000000000ab", "0x9D4A0000000000AB"} {
		if !d.AmongNamed([]string{"99", name}) {
			t.Errorf("%q does not mean the device", name)
		}
	}
	for _, name := range []string{"", "0", "33", "c2:00.0", "0000", "9d4a"} {
		if d.AmongNamed([]string{name}) {
			t.Errorf("%q means the device", name)
		}
	}
	if !d.AmongNamed(nil) {
		t.Error("no names do not mean all")
	}
}
