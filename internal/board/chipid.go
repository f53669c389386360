package board

import "github.com/ttmon/ttmon/internal/model"

// ASIC locations, which the driver does not publish: an n300's chips are 0 (L)
// and 1 (R), a p300's 1 (L) and 0 (R), a Galaxy's are the slots 1…8 of a tray.
const (
	n300Left, n300Right = 0, 1
	p300Left, p300Right = 1, 0
)

// Silicon is what a chip's firmware knows about the chip.
type Silicon struct {
	Serial     uint64 // of the board, shared by its chips
	ASIC       uint64 // fused into the die
	Location   int    // ASIC location, see above
	TraySerial string // Wormhole Galaxy: seven characters, not in sysfs
	Linked     bool   // an Ethernet link of the chip is trained
}

// ChipID is UMD's chip_unique_id of a chip on this board: the number in the
// name of its accounting region. UMD 0.3 to 0.9 agree on it. It changes when a
// chip's first link comes up or its last one goes down.
func (b Board) ChipID(s Silicon) uint64 {
	switch {
	case b.Arch == model.Blackhole && (b.Galaxy() || !s.Linked):
		return s.ASIC
	case b.Arch == model.Blackhole:
		return blackholeID(s.Serial, s.Location)
	case !s.Linked:
		return s.Serial
	case b.Galaxy():
		return trayID(s.TraySerial, s.Location)
	case b.UMDType == "n300":
		return wormholeID(s.Serial, kindN300+uint64(s.Location))
	default:
		return wormholeID(s.Serial, kindN150)
	}
}

// What Ethernet firmware of Wormhole calls the board type; an n300's R has the
// number after its L.
const kindN150, kindN300 = 1, 2

// wormholeID is how Ethernet firmware of Wormhole squeezes the serial number
// into 32 bits: the low 28, and the revision nibble (bits 32…35) on top.
func wormholeID(serial, kind uint64) uint64 {
	return kind<<32 | serial>>4&0xF000_0000 | serial&0x0FFF_FFFF
}

// blackholeID loses the top bits of the serial number, as UMD does.
func blackholeID(serial uint64, location int) uint64 {
	return serial<<5 | uint64(location)&0x1F
}

const traySerialLen = 7

// trayID is the location, then the tray's serial number as text.
func trayID(serial string, location int) uint64 {
	id := uint64(location)
	for i := range traySerialLen {
		id <<= 8
		if i < len(serial) {
			id |= uint64(serial[i])
		}
	}
	return id
}

// splitTrayID is the inverse of trayID; ok is false where id cannot be one.
func splitTrayID(id uint64) (serial string, location int, ok bool) {
	location = int(id >> 56)
	if location < 1 || location > slotsPerTray {
		return "", 0, false
	}
	var text [traySerialLen]byte
	for i := range text {
		c := byte(id >> (8 * (traySerialLen - 1 - i)))
		if (c < '0' || c > '9') && (c < 'A' || c > 'Z') {
			return "", 0, false
		}
		text[i] = c
	}
	return string(text[:]), location, true
}
