package assess

import (
	"strings"

	"github.com/ttmon/ttmon/internal/model"
)

// SlowLink reports whether the PCIe link is slower or narrower than both ends
// can do, by fault. Wormhole firmware 19.8 drops an idle link to Gen1 by
// design (19.9 does not any more): that is no fault.
func SlowLink(d *model.Device) bool {
	if !d.PCIe.Degraded.Known() || !d.PCIe.Degraded.V {
		return false
	}
	_, width := linkMax(d)
	idleGen1 := d.Arch == model.Wormhole && d.PCIe.Gen.Known() && d.PCIe.Gen.V == 1 &&
		d.PCIe.Width.Known() && d.PCIe.Width.V == width.V && strings.HasPrefix(d.Firmware.Bundle.V, "19.8.")
	return !idleGen1
}

// IdleLink reports whether the PCIe link is slow only because firmware drops an
// idle one.
func IdleLink(d *model.Device) bool {
	return d.PCIe.Degraded.Known() && d.PCIe.Degraded.V && !SlowLink(d)
}

// linkMax is the most that both the slot and the board can do. What only one
// of them tells is taken from that one.
func linkMax(d *model.Device) (gen, width model.Reading[int]) {
	return lower(d.PCIe.GenMax, d.PCIe.SlotGenMax), lower(d.PCIe.WidthMax, d.PCIe.SlotWidthMax)
}

func lower(a, b model.Reading[int]) model.Reading[int] {
	if !a.Known() || b.Known() && b.V < a.V {
		return b
	}
	return a
}
