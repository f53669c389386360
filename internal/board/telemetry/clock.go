package telemetry

import (
	"fmt"

	"github.com/ttmon/ttmon/internal/model"
)

// Those that limit the clock, by number.
var clockLimits = []model.ClockLimit{
	model.LimitFMax, model.LimitPower, model.LimitFastCurrent, model.LimitCurrent, model.LimitThermal, model.LimitBoardPower,
	model.LimitVoltage, model.LimitMemoryThermal, model.LimitBoardAverage, model.LimitBoardCritical, model.LimitHost,
}

func clockLimit(n uint32) model.ClockLimit {
	if int(n) < len(clockLimits) {
		return clockLimits[n]
	}
	return model.LimitOther
}

func clockFloor(n uint32) model.ClockFloor {
	switch n {
	case 0:
		return model.FloorFMin
	case 1:
		return model.FloorBusy
	}
	return model.ClockFloor(fmt.Sprintf("arbiter_%d", n))
}

const maxMHz = 5000

// clock is who decides on the AI clock. The numbers of the arbiters are right
// from 19.7 on.
func (d *decoder) clock(c *model.ClockControl) {
	floor, ceiling := d.blackhole(tagClockFloor, "clock arbiters"), d.blackhole(tagClockCeiling, "clock arbiters")
	low := func(v uint32) uint32 { return v & 0xFFFF }
	c.FloorMHz, c.CeilingMHz = bounded(model.Map(floor, low), maxMHz), bounded(model.Map(ceiling, low), maxMHz)
	c.FloorArbiter = model.Missing[model.ClockFloor](model.Absent, "firmware before 19.7 does not tell which arbiter")
	c.CeilingArbiter = model.Missing[model.ClockLimit](model.Absent, "firmware before 19.7 does not tell which arbiter")
	if d.since(19, 7) || !floor.Known() {
		c.FloorArbiter = model.Map(floor, func(v uint32) model.ClockFloor { return clockFloor(v >> 16) })
		c.CeilingArbiter = model.Map(ceiling, func(v uint32) model.ClockLimit { return clockLimit(v >> 16) })
	}
	c.EnabledFloors, c.EnabledCeil = d.blackhole(tagEnabledFloors, "clock arbiters"), d.blackhole(tagEnabledCeilings, "clock arbiters")
	c.HostCap = bounded(d.blackhole(tagHostClockCap, "clock limit of the host"), maxMHz)
	d.clockReason(c)
}

func (d *decoder) clockReason(c *model.ClockControl) {
	c.Limit, c.Floor = model.LimitNone, ""
	w := d.blackhole(tagClockReason, "reason of the clock")
	if !w.Known() {
		c.Reason = model.As[model.ClockReason](w)
		return
	}
	arbiter := w.V & 0xFFFF
	switch reason := w.V >> 16; reason {
	case 0:
		c.Reason, c.Floor = model.Value(model.ClockAtFloor), clockFloor(arbiter)
	case 1:
		c.Reason, c.Limit = model.Value(model.ClockAtCeiling), clockLimit(arbiter)
	case 2:
		c.Reason = model.Value(model.ClockClamped)
	case 3:
		c.Reason = model.Value(model.ClockSweep)
	case 4:
		c.Reason = model.Value(model.ClockForced)
	default:
		c.Reason = model.Missing[model.ClockReason](model.Unsupported, fmt.Sprintf("the firmware gives reason %d, which this release does not know", reason))
	}
}
