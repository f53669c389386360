package collect

import (
	"strings"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
	"github.com/ttmon/ttmon/internal/source/kmd"
)

// complete adds to what the driver said what the chip's own table and the catalogue
// know.
func (c *Collector) complete(d *model.Device) {
	c.telemetry.Fill(d)
	b := identify(d)
	b.Complete(d, d.Firmware.Bundle.V)
	measure(d, b)
	d.AllocationFailures = model.Missing[uint64](model.Absent, "only a ttmond counts them")
	if tray, slot, ok := b.GalaxyPosition(d.BusID, c.inVM()); ok {
		d.Tray, d.Slot = tray, slot
	}
	if b.Galaxy() {
		setLanes(d)
	}
}

// wideSlot is the chip of a Galaxy's tray that has eight lanes.
const wideSlot = 6

// setLanes says of a Galaxy's chip with one lane that there is no other: seven of
// the eight chips of a tray have one by design, though both ends could do more.
// Where the place of the chip is not known, in a virtual machine, it may be one of them.
func setLanes(d *model.Device) {
	if width, ok := d.PCIe.Width.Get(); ok && width == 1 && d.Slot != wideSlot {
		d.PCIe.SlotWidthMax = model.Value(1)
		d.PCIe.Degraded = kmd.Degraded(&d.PCIe)
	}
}

func identify(d *model.Device) board.Board {
	b, _ := board.Identify(d.Board.V, d.Serial.V, d.PCIID.SubDevice, d.Arch)
	return b
}

// inVM reports whether bus numbers are made up by a hypervisor. It is asked
// once, and only where it matters: /proc/cpuinfo is long. A simulated host
// has the bus numbers that its boards have.
func (c *Collector) inVM() bool {
	if c.simulated {
		return false
	}
	if c.virtual == nil {
		text, _ := c.root.Read("/proc/cpuinfo", 4096)
		virtual := strings.Contains(string(text), " hypervisor")
		c.virtual = &virtual
	}
	return *c.virtual
}
