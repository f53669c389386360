package telemetry

import (
	"fmt"
	"math/bits"

	"github.com/ttmon/ttmon/internal/board"
	"github.com/ttmon/ttmon/internal/model"
)

// decoder turns words into readings.
type decoder struct {
	arch   model.Arch
	words  Words
	bundle board.Bundle // zero: not known
}

// Decode fills in what a table says. Readings whose tag is not published say
// so; nothing else of t is touched.
func Decode(arch model.Arch, w Words, t *model.Telemetry) {
	d := newDecoder(arch, w)
	t.BoardPower = d.number(tagBoardPower, "board power", 3000)
	t.BoardTemperature = d.boardTemperature(tagBoardTemp, "board temperature")
	t.RegulatorTemperature = d.boardTemperature(tagRegulatorTemp, "regulator temperature")
	t.MemorySpeed = d.number(tagMemorySpeed, "GDDR speed", 100_000)
	t.FanDuty = d.fanDuty()
	t.Fans = d.fans()
	t.Location = model.Map(d.plain(tagLocation, "chip location"), func(v uint32) int { return int(v & 0xFF) })
	t.Enabled = model.EnabledParts{
		Tensix: d.tensixMask(), Ethernet: d.plain(tagEnabledEthernet, "Ethernet mask"),
		Memory: d.plain(tagEnabledMemory, "GDDR mask"), L2CPU: d.plain(tagEnabledL2CPU, "L2CPU mask"),
	}
	d.memory(t)
	d.clock(&t.Clock)
	t.ThrottleStarts, t.ThrottleShare = d.throttling()
	t.MemoryPower = d.memoryPower()
	t.MemoryFW = model.Map(d.blackhole(tagMemoryFW, "GDDR firmware version"), func(v uint32) string { return fmt.Sprintf("%d.%d", v>>16, v&0xFFFF) })
	t.L2CPU = d.l2cpu()
	t.Ports = d.ports(t.Enabled.Ethernet)
}

func newDecoder(arch model.Arch, w Words) *decoder {
	d := &decoder{arch: arch, words: w}
	if v, ok := w[tagBundle]; ok && v != AllOnes && v != 0 {
		d.bundle = board.Bundle{Major: uint8(v >> 24), Minor: uint8(v >> 16), Patch: uint8(v >> 8), RC: uint8(v)}
	}
	return d
}

// since reports whether the firmware is of a series or newer; one without a
// version counts as old.
func (d *decoder) since(major, minor uint8) bool {
	return d.bundle != (board.Bundle{}) && d.bundle.Has(major, minor)
}

func (d *decoder) isBlackhole() bool { return d.arch == model.Blackhole }

// plain is a word as it is.
func (d *decoder) plain(tag uint16, what string) model.Reading[uint32] {
	switch v, ok := d.words[tag]; {
	case !ok:
		return model.Missing[uint32](model.Absent, "the firmware publishes no "+what)
	case v == AllOnes:
		return model.Missing[uint32](model.Implausible, "the firmware published all ones")
	default:
		return model.Value(v)
	}
}

// blackhole is a word that has this meaning on Blackhole only.
func (d *decoder) blackhole(tag uint16, what string) model.Reading[uint32] {
	if !d.isBlackhole() {
		return model.Missing[uint32](model.Absent, "the firmware of "+string(d.arch)+" publishes no "+what)
	}
	return d.plain(tag, what)
}

// number is a word with a limit above which it is implausible.
func (d *decoder) number(tag uint16, what string, most float64) model.Reading[float64] {
	return bounded(d.plain(tag, what), most)
}

func bounded(r model.Reading[uint32], most float64) model.Reading[float64] {
	if r.Known() && float64(r.V) > most {
		return model.Missing[float64](model.Implausible, fmt.Sprintf("the firmware published %d", r.V))
	}
	return model.Map(r, func(v uint32) float64 { return float64(v) })
}

// fixedPoint is the firmware's s16.16; ok is false for its word for an error.
func fixedPoint(v uint32) (f float64, ok bool) {
	f = float64(int32(v)) / 65536
	return f, v != 0x8000_0000 && v != AllOnes && f > -60 && f < 250
}

// boardTemperature is a s16.16 that Blackhole's firmware has a place for and
// never fills in.
func (d *decoder) boardTemperature(tag uint16, what string) model.Reading[float64] {
	r := d.plain(tag, what)
	if !r.Known() {
		return model.As[float64](r)
	}
	f, ok := fixedPoint(r.V)
	switch {
	case r.V == 0 && d.isBlackhole():
		return model.Missing[float64](model.Absent, "the firmware of blackhole measures no "+what)
	case !ok:
		return model.Missing[float64](model.Implausible, fmt.Sprintf("the firmware published %#08x", r.V))
	}
	return model.Value(f)
}

func (d *decoder) fanDuty() model.Reading[float64] {
	if v, ok := d.words[tagFanDuty]; ok && v == AllOnes {
		return model.Missing[float64](model.Absent, "the firmware controls no fan")
	}
	return d.number(tagFanDuty, "fan duty", 100)
}

// fans are the speeds that are measured. Wormhole packs two into a word from
// 19.9 on, and has two more words for others.
func (d *decoder) fans() (rpm []float64) {
	add := func(v uint32, none uint32) {
		if v != none && v < 50_000 {
			rpm = append(rpm, float64(v))
		}
	}
	v, ok := d.words[tagFanSpeed]
	switch {
	case !ok || v == AllOnes:
	case d.isBlackhole():
		add(v, AllOnes)
	case d.since(19, 9):
		add(v>>16, 0xFFFF)
		add(v&0xFFFF, 0xFFFF)
	}
	return rpm
}

func (d *decoder) tensixMask() model.Reading[uint32] {
	if d.isBlackhole() {
		return d.plain(tagTensixColumns, "mask of Tensix columns")
	}
	return d.plain(tagTensixRows, "mask of Tensix rows")
}

// Cores per column of Blackhole, and per row of Wormhole.
const (
	coresPerColumn = 10
	coresPerRow    = 8
)

// cores is how many Tensix cores work.
func (d *decoder) cores() model.Reading[int] {
	mask := d.tensixMask()
	if !mask.Known() || mask.V == 0 {
		return model.As[int](orZero(mask, "the mask of Tensix cores is 0"))
	}
	each := coresPerRow
	if d.isBlackhole() {
		each = coresPerColumn
	}
	return model.Value(bits.OnesCount32(mask.V) * each)
}

// orZero is a mask that is missing, or 0 where it cannot be.
func orZero(r model.Reading[uint32], why string) model.Reading[uint32] {
	if r.Known() {
		return model.Missing[uint32](model.Implausible, why)
	}
	return r
}

// throttling is what Blackhole's firmware reports of kernels it slowed down: how
// often since boot, and for how much of its last refresh.
func (d *decoder) throttling() (starts model.Reading[uint32], share model.Reading[float64]) {
	starts = d.blackhole(tagThrottleStarts, "count of throttled kernels")
	on, every := d.blackhole(tagThrottleDuration, "time of throttled kernels"), d.plain(tagRefresh, "refresh interval")
	switch {
	case !on.Known():
		share = model.As[float64](on)
	case !every.Known():
		share = model.As[float64](every)
	case every.V == 0:
		share = model.Missing[float64](model.Implausible, "the firmware's refresh interval is 0")
	default:
		share = model.Value(min(float64(on.V)/float64(every.V), 1))
	}
	return starts, share
}

func (d *decoder) memoryPower() model.Reading[float64] {
	west := bounded(d.blackhole(tagMemoryPowerWest, "GDDR power"), 500)
	east := bounded(d.blackhole(tagMemoryPowerEast, "GDDR power"), 500)
	if !west.Known() {
		return west
	}
	return model.Map(east, func(v float64) float64 { return v + west.V })
}

// l2cpu lists the clocks of the L2CPU clusters.
func (d *decoder) l2cpu() model.Reading[string] {
	text := ""
	for i := range uint16(4) {
		clock := bounded(d.blackhole(tagL2CPUClock+i, "L2CPU clocks"), 10_000)
		if !clock.Known() {
			return model.As[string](clock)
		}
		if i > 0 {
			text += " "
		}
		text += fmt.Sprint(clock.V)
	}
	return model.Value(text)
}

// version is four bytes, the highest first; 0 is none.
func (d *decoder) version(tag uint16, what string) model.Reading[string] {
	v := d.plain(tag, what)
	if v.Known() && v.V == 0 {
		return model.Missing[string](model.Absent, "the firmware tells no "+what)
	}
	return model.Map(v, func(v uint32) string { return fmt.Sprintf("%d.%d.%d.%d", v>>24, v>>16&0xFF, v>>8&0xFF, v&0xFF) })
}

func (d *decoder) ethernetVersion() model.Reading[string] {
	v := d.plain(tagEthernetFW, "Ethernet firmware version")
	if v.Known() && v.V == 0 {
		return model.Missing[string](model.Absent, "the firmware tells no Ethernet firmware version")
	}
	return model.Map(v, func(v uint32) string { return fmt.Sprintf("%d.%d.%d", v>>16&0xFF, v>>12&0xF, v&0xFFF) })
}
