package assess

import (
	"slices"
	"time"

	"github.com/ttmon/ttmon/internal/model"
)

// rules find the conditions of a snapshot, each those of one kind or of a few
// that exclude each other.
var rules = []func(*finder){unbound, states, throttled, hot, slowLinks, meshLinks, modules, stalledReads, trips, fullMemory, staleMemory}

// finder collects the conditions of one snapshot.
type finder struct {
	snap   *model.Snapshot
	limits Thresholds
	// held reports whether a device was in a condition in the snapshot before:
	// it takes more to leave some of them than not to enter.
	held  func(d *model.Device, k model.ConditionKind) bool
	found []model.Condition
}

// find assesses one snapshot.
func find(s *model.Snapshot, t Thresholds, held func(*model.Device, model.ConditionKind) bool) []model.Condition {
	f := &finder{snap: s, limits: t, held: held}
	for _, rule := range rules {
		rule(f)
	}
	return f.found
}

// add adds a condition of a device.
func (f *finder) add(d *model.Device, c model.Condition) {
	c.Device, c.Level = d.Index, LevelOf(c.Kind)
	f.found = append(f.found, c)
}

// present calls each with every device that is on the bus: what the PCI core
// says of it is known without its firmware.
func (f *finder) present(each func(*model.Device)) {
	for i := range f.snap.Devices {
		if d := &f.snap.Devices[i]; d.State != model.StateLost {
			each(d)
		}
	}
}

// working calls each with every device that works.
func (f *finder) working(each func(*model.Device)) {
	for i := range f.snap.Devices {
		if d := &f.snap.Devices[i]; d.State == model.StateOK {
			each(d)
		}
	}
}

func unbound(f *finder) {
	h := &f.snap.Host
	if len(h.Unbound) == 0 {
		return
	}
	c := model.Condition{
		Kind: model.ConditionUnbound, Level: LevelOf(model.ConditionUnbound), Device: model.NoDevice,
		Facts: []model.Fact{{Kind: model.FactCount, Value: float64(len(h.Unbound))}}, Remedy: model.RemedyKernelLog,
	}
	if !h.DriverLoaded {
		c.Cause, c.Remedy = model.DriverUnloaded, model.RemedyLoadDriver
	}
	f.found = append(f.found, c)
}

type stateKind struct {
	kind   model.ConditionKind
	remedy model.Remedy
}

// stateKinds are the conditions that the driver's files state.
var stateKinds = map[model.State]stateKind{
	model.StateLost:      {model.ConditionLost, model.RemedyPower},
	model.StateHung:      {model.ConditionHung, model.RemedyReset},
	model.StateUnknown:   {model.ConditionUnknown, model.RemedyReset},
	model.StateResetting: {model.ConditionResetting, model.RemedyResetAgain},
}

func states(f *finder) {
	for i := range f.snap.Devices {
		d := &f.snap.Devices[i]
		is, bad := stateKinds[d.State]
		if !bad {
			continue
		}
		c := model.Condition{Kind: is.kind, Cause: d.StateReason.Cause, Since: d.StateReason.Since, Remedy: is.remedy}
		switch c.Cause {
		case model.HeartbeatStopped:
			if age, ok := d.HeartbeatAge.Get(); ok {
				c.Since = f.snap.Time.Add(-time.Duration(age * float64(time.Second)))
			}
		case model.DriverUnloaded:
			c.Remedy = model.RemedyLoadDriver
		case model.Unbound:
			c.Remedy = model.RemedyKernelLog
		}
		f.add(d, c)
	}
}

// throttled finds devices that run below their clock while a process uses
// them, and by what. The driver's files do not state a reason: it is
// concluded from what is at its limit.
type limitCause struct {
	cause  model.Cause
	remedy model.Remedy
}

// limitCauses are the firmware's own reasons to hold a clock down.
var limitCauses = map[model.ClockLimit]limitCause{
	model.LimitThermal: {model.ByHeat, model.RemedyCool}, model.LimitMemoryThermal: {model.ByHeat, model.RemedyCool},
	model.LimitPower: {model.ByPower, model.RemedyPowerBudget}, model.LimitBoardPower: {model.ByPower, model.RemedyPowerBudget},
	model.LimitBoardAverage: {model.ByPower, model.RemedyPowerBudget}, model.LimitBoardCritical: {model.ByPower, model.RemedyPowerBudget},
	model.LimitCurrent: {model.ByCurrent, model.RemedyPowerBudget}, model.LimitFastCurrent: {model.ByCurrent, model.RemedyPowerBudget},
	model.LimitVoltage: {model.ByVoltage, model.RemedyPowerBudget}, model.LimitHost: {model.BySoftware, model.RemedyClockCap},
	model.LimitOther: {model.ByFirmware, ""},
}

// throttledByFirmware is what the firmware itself says of the clock; known is
// false where it says nothing.
func throttledByFirmware(d *model.Device) (c model.Condition, is, known bool) {
	if !d.Telemetry.Clock.Reason.Known() {
		return c, false, false
	}
	by, is := d.Telemetry.Clock.Throttled()
	if !is {
		return c, false, true
	}
	why, named := limitCauses[by]
	if !named {
		why = limitCauses[model.LimitOther]
	}
	c = model.Condition{Kind: model.ConditionThrottled, Cause: why.cause, Remedy: why.remedy}
	if d.AICLK.Known() && d.AICLKMax.Known() {
		c.Facts = []model.Fact{{Kind: model.FactClock, Value: d.AICLK.V, Limit: d.AICLKMax.V}}
	}
	return c, true, true
}

func throttled(f *finder) {
	f.working(func(d *model.Device) {
		if c, is, known := throttledByFirmware(d); known {
			if is {
				f.add(d, c)
			}
			return
		}
		clock, most := d.AICLK, d.AICLKMax
		if !clock.Known() || !most.Known() || clock.V >= f.limits.SlowClock*most.V || !inUse(f.snap, d) || idle(d) {
			return
		}
		c := model.Condition{Kind: model.ConditionThrottled, Concluded: true}
		reached := func(v, limit model.Reading[float64]) bool {
			return v.Known() && limit.Known() && limit.V > 0 && v.V >= f.limits.AtLimit*limit.V
		}
		switch t, limit := d.Temperature, d.TemperatureLimit; {
		case t.Known() && limit.Known() && t.V >= limit.V-heatReached:
			c.Cause, c.Remedy = model.ByHeat, model.RemedyCool
			c.Facts = []model.Fact{{Kind: model.FactTemperature, Value: t.V, Limit: limit.V}}
		case reached(d.Power, d.PowerLimit):
			c.Cause, c.Remedy = model.ByPower, model.RemedyPowerBudget
			c.Facts = []model.Fact{{Kind: model.FactPower, Value: d.Power.V, Limit: d.PowerLimit.V}}
		case reached(d.Current, d.CurrentLimit):
			c.Cause, c.Remedy = model.ByCurrent, model.RemedyPowerBudget
			c.Facts = []model.Fact{{Kind: model.FactCurrent, Value: d.Current.V, Limit: d.CurrentLimit.V}}
		default: // between programs the firmware lowers the clock by itself
			return
		}
		c.Facts = append(c.Facts, model.Fact{Kind: model.FactClock, Value: clock.V, Limit: most.V})
		f.add(d, c)
	})
}

// idle reports whether a device that a process has open is known to do nothing: no
// program ran on it, or it draws hardly more than it did while no process had it open.
// Its firmware then lowers the clock by itself, however warm it still is.
func idle(d *model.Device) bool {
	if d.Work.Measured() {
		return d.Work.Bound == model.Exact && d.Work.Busy.V == 0
	}
	activity, ok := d.Activity.Ratio.Get()
	return ok && activity < idleActivity
}

// inUse reports whether a process has a device open.
func inUse(s *model.Snapshot, d *model.Device) bool {
	return d.HiddenFDs > 0 || slices.ContainsFunc(s.Processes, func(p model.Process) bool { return uses(&p, d.Index) })
}

func uses(p *model.Process, device int) bool {
	return slices.ContainsFunc(p.Devices, func(u model.DeviceUse) bool { return u.Device == device })
}

// hot finds devices near or above the temperature where throttling begins. One
// that is throttled by heat is hot as well; withoutImplied leaves that out.
func hot(f *finder) {
	f.working(func(d *model.Device) {
		t, limit := d.Temperature, d.TemperatureLimit
		if !t.Known() || !limit.Known() {
			return
		}
		from := limit.V - f.limits.HotMargin
		if f.held(d, model.ConditionHot) {
			from -= cooled
		}
		if t.V >= from {
			f.add(d, model.Condition{
				Kind: model.ConditionHot, Remedy: model.RemedyCool,
				Facts: []model.Fact{{Kind: model.FactTemperature, Value: t.V, Limit: limit.V}},
			})
		}
	})
}

// withoutImplied removes what another condition says already: a device that is
// throttled by heat is shown as that, and not as hot as well. A Judge still
// follows the heat, so that a device which is no longer throttled is known to be
// hot since before it was.
func withoutImplied(list []model.Condition) []model.Condition {
	byHeat := map[int]bool{}
	for i := range list {
		if c := &list[i]; c.Kind == model.ConditionThrottled && c.Cause == model.ByHeat {
			byHeat[c.Device] = true
		}
	}
	return slices.DeleteFunc(list, func(c model.Condition) bool { return c.Kind == model.ConditionHot && byHeat[c.Device] })
}

func slowLinks(f *finder) {
	f.present(func(d *model.Device) {
		if !SlowLink(d) {
			return
		}
		gen, width := linkMax(d)
		fact := func(k model.FactKind, is, most model.Reading[int]) model.Fact {
			return model.Fact{Kind: k, Value: float64(is.V), Limit: float64(most.V)} // 0 where it is not known
		}
		f.add(d, model.Condition{
			Kind: model.ConditionSlowLink, Remedy: model.RemedyReseat,
			Facts: []model.Fact{fact(model.FactLinkGen, d.PCIe.Gen, gen), fact(model.FactLinkWidth, d.PCIe.Width, width)},
		})
	})
}

func trips(f *finder) {
	f.present(func(d *model.Device) {
		if n, ok := d.ThermalTrips.Get(); ok && n > 0 {
			f.add(d, model.Condition{
				Kind: model.ConditionTripped, Remedy: model.RemedyCool,
				Facts: []model.Fact{{Kind: model.FactTrips, Value: float64(n)}},
			})
		}
	})
}

// fullMemory finds devices of which one chip's DRAM is full.
func fullMemory(f *finder) {
	f.working(func(d *model.Device) {
		fullest := 0.0
		for i := range d.Chips {
			fullest = max(fullest, fill(&d.Chips[i].Memory))
		}
		if len(d.Chips) == 0 {
			fullest = fill(&d.Memory)
		}
		if fullest >= f.limits.MemoryFull {
			f.add(d, model.Condition{
				Kind: model.ConditionMemoryFull, Remedy: model.RemedyFree,
				Facts: []model.Fact{{Kind: model.FactFill, Value: fullest}},
			})
		}
	})
}

// fill is how full the DRAM is; 0 where that is not known, or may be less.
func fill(m *model.Memory) float64 {
	p := &m.Pools[model.DRAM]
	if !p.Total.Known() || p.Total.V == 0 {
		return 0
	}
	most := uint64(0)
	for _, b := range []model.Bytes{p.Used, p.Occupied} {
		if n, bound, known := b.Best(); known && bound != model.Unsure {
			most = max(most, n)
		}
	}
	return float64(most) / float64(p.Total.V)
}

func staleMemory(f *finder) {
	for i := range f.snap.Devices {
		d := &f.snap.Devices[i]
		if n, _, known := d.Memory.Stale.Best(); known && n > 0 {
			f.add(d, model.Condition{
				Kind: model.ConditionStaleMemory, Remedy: model.RemedyStale,
				Facts: []model.Fact{{Kind: model.FactBytes, Value: float64(n)}},
			})
		}
	}
}
