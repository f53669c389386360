package board

import (
	"slices"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// Trays of a Galaxy by the high nibble of the PCI bus number.
var (
	wormholeTrays  = []uint8{0xC0, 0x80, 0x00, 0x40}
	blackholeTrays = []uint8{0x00, 0x40, 0xC0, 0x80}
)

const slotsPerTray = 8

// GalaxyPosition is the tray (1…4) and the slot in it (1…8, UMD's ASIC
// location) of a Galaxy's chip, from its PCI address. ok is false for boards
// that are no Galaxy, for addresses outside its plan, and in virtual machines
// (the caller knows: /proc/cpuinfo has the flag "hypervisor"), where bus
// numbers are made up.
func (b Board) GalaxyPosition(busID string, hypervisor bool) (tray, slot int, ok bool) {
	trays := blackholeTrays
	if b.Arch == model.Wormhole {
		trays = wormholeTrays
	}
	bus, ok := busNumber(busID)
	if !ok || !b.Galaxy() || hypervisor {
		return 0, 0, false
	}
	tray, slot = slices.Index(trays, bus&0xF0)+1, int(bus&0x0F)
	if tray < 1 || slot < 1 || slot > slotsPerTray {
		return 0, 0, false
	}
	return tray, slot, true
}

// GalaxyBus is the PCI bus number of a place in a Galaxy, the inverse of
// GalaxyPosition. It panics on a place that does not exist.
func (b Board) GalaxyBus(tray, slot int) uint8 {
	if slot < 1 || slot > slotsPerTray {
		panic("BUG: no such slot in a Galaxy tray: " + strconv.Itoa(slot))
	}
	if b.Arch == model.Wormhole {
		return wormholeTrays[tray-1] | uint8(slot)
	}
	return blackholeTrays[tray-1] | uint8(slot)
}

// GalaxyIndex is the kernel index that drivers since 2.8 give a place in a
// Galaxy. An earlier driver, or one that found the number taken, gives another.
func GalaxyIndex(tray, slot int) int { return slotsPerTray*(tray-1) + slot - 1 }

// busNumber is the bus of "0000:c1:00.0".
func busNumber(busID string) (bus uint8, ok bool) {
	if len(busID) != len("0000:00:00.0") || busID[4] != ':' || busID[7] != ':' {
		return 0, false
	}
	n, err := strconv.ParseUint(busID[5:7], 16, 8)
	return uint8(n), err == nil
}
