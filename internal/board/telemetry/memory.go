package telemetry

import (
	"github.com/ttmon/ttmon/internal/model"
)

// Modules of GDDR that a chip can have.
const (
	wormholeModules  = 6
	blackholeModules = 8
)

// stuck is where the counters of corrected errors stay.
const stuck = 255

func (d *decoder) moduleCount() int {
	if d.isBlackhole() {
		return blackholeModules
	}
	return wormholeModules
}

// memory is what is known of the GDDR. Modules that are fused off are left out.
func (d *decoder) memory(t *model.Telemetry) {
	t.Modules = nil
	for i := range d.moduleCount() {
		if m := t.Enabled.Memory; m.Known() && m.V&(1<<i) == 0 {
			continue
		}
		t.Modules = append(t.Modules, d.module(i))
	}
	t.MemoryTemperature = d.hottest()
	d.errors(t)
}

func (d *decoder) module(i int) model.MemoryModule {
	m := model.MemoryModule{Index: i}
	status := d.plain(tagMemoryStatus, "GDDR status")
	bit := func(n int) func(uint32) bool { return func(v uint32) bool { return v&(1<<n) != 0 } }
	m.Trained = model.Map(status, bit(2*i))
	m.Failed = model.Map(status, bit(2*i+1))
	if d.isBlackhole() && d.since(19, 7) && status.Known() && bit(17+2*i)(status.V) {
		m.Failed = model.Value(true) // its self-test
	}
	half := func(tag uint16, what string) model.Reading[uint32] {
		return model.Map(d.blackhole(tag+uint16(i/2), what), func(v uint32) uint32 { return v >> (16 * (i % 2)) & 0xFFFF })
	}
	temps := half(tagMemoryTemp, "GDDR temperature")
	m.Bottom, m.Top = die(temps, 0), die(temps, 8)
	corrected := half(tagCorrected, "corrected GDDR errors")
	m.CorrectedReads = model.Map(corrected, func(v uint32) uint32 { return v & 0xFF })
	m.CorrectedWrites = model.Map(corrected, func(v uint32) uint32 { return v >> 8 })
	if m.CorrectedReads.V == stuck || m.CorrectedWrites.V == stuck {
		m.CorrectedBound = model.AtLeast
	}
	uncorrected := d.blackhole(tagUncorrected, "uncorrected GDDR errors")
	m.UncorrectedReads = model.Map(uncorrected, bit(2*i))
	m.UncorrectedWrite = model.Map(uncorrected, bit(2*i+1))
	return m
}

// die is one temperature of a module; a die that is not measured reads 0.
func die(temps model.Reading[uint32], shift int) model.Reading[float64] {
	v := temps.V >> shift & 0xFF
	switch {
	case temps.Known() && v == 0:
		return model.Missing[float64](model.Absent, "the firmware measures no temperature of it")
	case temps.Known() && v > 200:
		return model.Missing[float64](model.Implausible, "the firmware published an impossible temperature")
	}
	return model.Map(temps, func(uint32) float64 { return float64(v) })
}

func (d *decoder) hottest() model.Reading[float64] {
	r := bounded(d.blackhole(tagHottestMemory, "GDDR temperature"), 200)
	if r.Known() && r.V == 0 {
		return model.Missing[float64](model.Absent, "the firmware measures no GDDR temperature")
	}
	return r
}

// errors sums the counters over the modules.
func (d *decoder) errors(t *model.Telemetry) {
	var sum uint64
	t.CorrectedBound = model.Exact
	broken := 0
	for i := range t.Modules {
		m := &t.Modules[i]
		if !m.CorrectedReads.Known() {
			t.Corrected = model.As[uint64](m.CorrectedReads)
			t.Uncorrected = model.As[int](m.UncorrectedReads)
			return
		}
		sum += uint64(m.CorrectedReads.V) + uint64(m.CorrectedWrites.V)
		t.CorrectedBound = max(t.CorrectedBound, m.CorrectedBound)
		if m.UncorrectedReads.V || m.UncorrectedWrite.V {
			broken++
		}
	}
	t.Corrected, t.Uncorrected = model.Value(sum), model.Value(broken)
	if !d.has(tagUncorrected) {
		t.Uncorrected = model.Missing[int](model.Absent, "the firmware publishes no uncorrected GDDR errors")
	}
}

func (d *decoder) has(tag uint16) bool {
	_, ok := d.words[tag]
	return ok
}
