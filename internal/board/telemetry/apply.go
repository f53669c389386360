package telemetry

import (
	"math/bits"

	"github.com/ttmon/ttmon/internal/model"
)

// Apply fills in what the driver does not report from the firmware's table: limits,
// cores, versions. A measured value takes precedence over the catalogue's nominal
// one, and never over the driver's.
func Apply(d *model.Device, w Words) {
	x := newDecoder(d.Arch, w)
	fill(&d.ShutdownTemperature, x.number(tagShutdown, "shutdown temperature", 200))
	fill(&d.PowerLimit, x.number(tagPowerLimit, "power limit", 3000))
	fill(&d.BoardPowerLimit, x.number(tagBoardPowerLimit, "board power limit", 10_000))
	fill(&d.CurrentLimit, x.number(tagCurrentLimit, "current limit", 3000))
	fill(&d.AICLKMax, x.number(tagMaxAIClk, "highest AI clock", maxMHz))
	if fans := x.fans(); len(fans) > 0 {
		fill(&d.Fan, model.Value(fans[0]))
	}
	if c := x.cores(); c.Known() {
		d.Cores = c
	}
	fill(&d.Firmware.ETH, x.ethernetVersion())
	fill(&d.Firmware.ARC, x.version(tagARCFW, "ARC firmware version"))
	fill(&d.Firmware.M3App, x.version(tagM3App, "M3 application version"))
	fill(&d.Firmware.M3Bootloader, x.version(tagM3Boot, "M3 bootloader version"))
	fill(&d.Firmware.TTFlash, x.version(tagTTFlash, "tt-flash version"))
}

// fill sets a reading that the driver does not offer. A limit of 0
// means that there is none.
func fill[T comparable](to *model.Reading[T], from model.Reading[T]) {
	var zero T
	if to.Status == model.Absent && from.Known() && from.V != zero {
		*to = from
	}
}

// MemoryChannels counts the GDDR channels that are enabled on a chip.
func MemoryChannels(t *model.Telemetry) (n int, ok bool) {
	m, ok := t.Enabled.Memory.Get()
	return bits.OnesCount32(m), ok && m != 0
}
