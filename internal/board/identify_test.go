package board

import (
	"fmt"
	"testing"

	"github.com/ttmon/ttmon/internal/model"
)

func TestIdentify(t *testing.T) {
	for _, c := range []struct {
		name, card, serial string
		sub                uint16
		arch               model.Arch
		want               string
		how                How
	}{
		{"card type wins", "n300", "0100018611905001", 0x18, model.Wormhole, "n300", ByCardType},
		{"unknown card, serial", "unknown", "0100018611905001", 0, model.Wormhole, "n150", BySerial},
		{"a board the driver does not list", "unknown", "0000008000000001", 0, model.Wormhole, "nb_cb", BySerial},
		{"no telemetry, PCI", "", "", 0x45, model.Blackhole, "p300a", BySubsystem},
		{"galaxy by PCI", "", "", 0x35, model.Wormhole, "galaxy-wormhole", BySubsystem},
		{"zero serial is none", "", "0000000000000000", 0x43, model.Blackhole, "p100a", BySubsystem},
		{"dead chip's serial is none", "unknown", "FFFFFFFFFFFFFFFF", 0, model.Blackhole, "", ByArch},
		{"code beyond 16 bits", "", "00F0014000000001", 0, model.Blackhole, "", ByArch},
		{"card of another generation", "n300", "", 0x40, model.Blackhole, "p150a", BySubsystem},
		{"serial of another generation", "", "0100018611905001", 0, model.Blackhole, "", ByArch},
		{"arch only", "", "", 0, model.Wormhole, "", ByArch},
		{"arch not told", "p150b", "", 0, model.UnknownArch, "p150b", ByCardType},
		{"nothing at all", "", "", 0, model.UnknownArch, "", Unknown},
		{"a card of the future", "p900x", "0000099900000001", 0x99, model.Blackhole, "", ByArch},
		{"grayskull, old driver", "", "0000003100000001", 0, Grayskull, "e150", BySerial},
		{"short serial", "", "14", 0, model.Wormhole, "", ByArch},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, how := Identify(c.card, c.serial, c.sub, c.arch)
			if b.Card != c.want || how != c.how {
				t.Errorf("%s: %q %s, want %q %s", c.name, b.Card, how, c.want, c.how)
			}
			if b.Identified() != (c.want != "") {
				t.Errorf("%s: identified %v", c.name, b.Identified())
			}
			if !b.Identified() && (b.Cores != Figure[int]{} || b.PowerLimit != noNumber || b.Chips != 0) {
				t.Errorf("%s: a board that is not known has figures of its own: %+v", c.name, b)
			}
		})
	}
}

func TestArchOfPCI(t *testing.T) {
	for id, want := range map[uint16]model.Arch{
		0x401E: model.Wormhole, 0xB140: model.Blackhole, 0xFACA: Grayskull, 0: model.UnknownArch, 0xFFFF: model.UnknownArch,
	} {
		t.Run(fmt.Sprintf("%#x", id), func(t *testing.T) {
			if got := ArchOfPCI(id); got != want {
				t.Errorf("%#x is %s, want %s", id, got, want)
			}
		})
	}
}
