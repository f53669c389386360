package vendor

import (
	"math"
	"strconv"

	"github.com/ttmon/ttmon/internal/model"
)

// buses are the PCI bus numbers of boards on mainboards that the exporter numbers
// trays of, in its order. On any other mainboard every board is in tray 0.
var buses = [][]uint64{
	{0xC1, 0x01, 0x41, 0x42},
	{0xB1, 0xCA, 0x31, 0x4B},
	{0x01, 0x21, 0x41, 0x61, 0x81, 0xA1, 0xC1, 0xE1},
}

// apart is how far two readings of one temperature may be from each other before
// they are those of two chips.
const apart = 15 // °C

// places finds out which device is where for the exporter; why says why that is not
// known. A wrong guess would show values of one chip as those of another, so a guess
// is none where two are possible, and one that the temperatures contradict is not
// believed.
func (s *sample) places(snap *model.Snapshot) (at []place, why string) {
	at = make([]place, len(snap.Devices))
	taken := map[place]bool{}
	for i := range snap.Devices {
		p, ok := s.placeOf(snap, &snap.Devices[i])
		if !ok {
			return nil, "tt-telemetry does not say which board is which on this mainboard"
		}
		c := s.chips[p]
		if c == nil {
			return nil, "tt-telemetry does not have all boards of this host"
		}
		theirs, known := c.values[asicTemperature]
		if ours, ok := snap.Devices[i].Temperature.Get(); ok && known && math.Abs(ours-theirs) > apart {
			return nil, "the temperatures of tt-telemetry are not those of this host's boards"
		}
		if taken[p] {
			return nil, "tt-telemetry does not say which board is which on this mainboard"
		}
		taken[p], at[i] = true, p
	}
	return at, ""
}

// placeOf is the place of a device's own chip.
func (s *sample) placeOf(snap *model.Snapshot, d *model.Device) (place, bool) {
	if d.Tray > 0 && d.Slot > 0 {
		return place{d.Tray, d.Slot}, true
	}
	if s.trays() == 1 {
		if _, ok := s.chips[place{0, 0}]; ok {
			return place{0, 0}, len(snap.Devices) == 1
		}
	}
	for _, list := range buses {
		if tray, ok := trayIn(list, snap, d); ok {
			return place{tray, 0}, true
		}
	}
	return place{}, false
}

// trays counts them.
func (s *sample) trays() int {
	seen := map[int]bool{}
	for p := range s.chips {
		seen[p.tray] = true
	}
	return len(seen)
}

// trayIn is the tray of a device on a mainboard, if all devices of the host fit it.
func trayIn(list []uint64, snap *model.Snapshot, d *model.Device) (tray int, ok bool) {
	for i := range snap.Devices {
		n := 0
		bus, known := busNumber(snap.Devices[i].BusID)
		for k, b := range list {
			if known && b == bus {
				n = k + 1
			}
		}
		if n == 0 {
			return 0, false
		}
		if snap.Devices[i].Index == d.Index {
			tray = n
		}
	}
	return tray, tray > 0
}

// busNumber is the bus of a PCI address: "0000:c1:00.0".
func busNumber(id string) (uint64, bool) {
	if len(id) < len("0000:c1:00.0") {
		return 0, false
	}
	n, err := strconv.ParseUint(id[len(id)-len("c1:00.0"):len(id)-len(":00.0")], 16, 8)
	return n, err == nil
}
